/* SPDX-License-Identifier: BSD-2-Clause */
/* A guest whose memory is the data of objects/guest_*.c, for tests of the models of threads. Their
 * argument is the folder of the images. */
#ifndef UNI_TESTS_UNIT_MODELS_H
#define UNI_TESTS_UNIT_MODELS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "guest/guest.h"
#include "obj/members.h"

static const char *images;

/* An image, and a guest whose memory is its segments. */
struct bench {
	struct uni_image *img;
	struct uni_debug *debug;
	struct uni_model *model;
	struct uni_gmem *m;
	struct uni_as *as;
	uint64_t start, size;
	uint8_t *ram;
	struct uni_regs regs[2];
	struct uni_thread_list *list;
	struct uni_err err;
	unsigned reads, fails_after; /* as many reads; 0: never */
};

static inline int ram_read(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	struct bench *b = ctx;

	if (b->reads++ >= b->fails_after && b->fails_after != 0)
		return -UNI_EFAULT;
	memcpy(buf, b->ram + offset, len);
	return 0;
}

static const struct uni_gmem_ops ram_ops = { .read = ram_read };

static inline void load_ram(struct bench *b)
{
	uint64_t end = 0;

	b->start = UINT64_MAX;
	for (size_t i = 0; i < uni_image_nr_segments(b->img); i++) {
		const struct uni_segment *s = uni_image_segment(b->img, i);

		b->start = uni_min(b->start, s->vaddr & ~4095ull);
		end = uni_max(end, (s->vaddr + s->mem_size + 4095) & ~4095ull);
	}
	b->size = end - b->start;
	b->ram = calloc(1, (size_t)b->size);
	assert_non_null(b->ram);
	for (size_t i = 0; i < uni_image_nr_segments(b->img); i++) {
		const struct uni_segment *s = uni_image_segment(b->img, i);

		memcpy(b->ram + (s->vaddr - b->start), s->bytes, s->file_size);
	}
}

static inline bool is_there(const char *name, char path[512])
{
	(void)snprintf(path, 512, "%s/%s", images, name);
	return access(path, R_OK) == 0;
}

static inline uint64_t address(const struct bench *b, const char *name)
{
	uint64_t addr, size;

	assert_int_equal(uni_image_find(b->img, name, &addr, &size), 0);
	return addr;
}

/* false: that compiler is not here. The rest as uni_model_open(). */
static inline bool load(struct bench *b, const char *name, int *rc_ret)
{
	char path[512];

	memset(b, 0, sizeof(*b));
	if (!is_there(name, path))
		return false;
	assert_int_equal(uni_image_load(path, &b->img, &b->err), 0);
	assert_int_equal(uni_debug_of_image(b->img, NULL, &b->debug, &b->err), 0);
	*rc_ret = uni_model_open(
		&(struct uni_model_from){ .img = b->img, .debug = b->debug }, &b->model, &b->err);
	return true;
}

static inline void open_guest(struct bench *b)
{
	struct uni_gmem_region region;

	load_ram(b);
	region = (struct uni_gmem_region){ .start = b->start, .size = b->size };
	assert_int_equal(
		uni_gmem_create(&ram_ops, b, UNI_GMEM_VIRTUAL, &region, 1, &b->m, &b->err), 0);
	assert_int_equal(uni_as_create(b->m, &uni_as_budget_once, &b->as, &b->err), 0);
	b->list = uni_thread_list_create(64);
	assert_non_null(b->list);
	b->regs[0].pc_valid = b->regs[0].sp_valid = true;
	b->regs[0].sys[2] = 0x77;
	b->regs[0].sys_valid = 4;
}

static inline void close_bench(struct bench *b)
{
	uni_model_close(b->model);
	uni_debug_destroy(b->debug);
	uni_image_destroy(b->img);
	uni_as_destroy(b->as);
	uni_gmem_destroy(b->m);
	free(b->list);
	free(b->ram);
}

static inline void walk(struct bench *b, uint32_t nr_vcpus)
{
	uni_as_begin(b->as, NULL);
	uni_model_walk(b->model, b->as, b->regs, nr_vcpus, b->list);
}

/* The space again, for at most so many reads. */
static inline void limit_reads(struct bench *b, uint32_t reads)
{
	const struct uni_as_budget budget = {
		.bytes = UINT32_MAX, .table_loads = UINT32_MAX, .reads = reads
	};

	uni_as_destroy(b->as);
	assert_int_equal(uni_as_create(b->m, &budget, &b->as, &b->err), 0);
}

/* A list that was not read to its end says so, wherever reading ended; nr: that of all threads. */
static inline void expect_no_short_list(struct bench *b, uint32_t nr)
{
	uint32_t i = 0;

	uni_gmem_set_granule(b->m, UNI_GMEM_GRANULE_MIN);
	limit_reads(b, 0);
	walk(b, 1);
	assert_int_equal(b->list->cut, UNI_THREADS_WHOLE);
	assert_int_equal(b->list->nr, nr);
	do {
		limit_reads(b, ++i);
		walk(b, 1);
		assert_true(b->list->nr <= nr);
		assert_true(b->list->cut == UNI_THREADS_SPENT || b->list->nr == nr);
		assert_true(i < 100000);
	} while (b->list->cut == UNI_THREADS_SPENT);
	assert_int_equal(b->list->cut, UNI_THREADS_WHOLE);
	assert_true(i > nr);
	limit_reads(b, 0);
}

/* The same where memory cannot be read at all. */
static inline void expect_unread_list(struct bench *b)
{
	b->reads = 1;
	b->fails_after = 1;
	walk(b, 1);
	assert_int_equal(b->list->nr, 0);
	assert_int_equal(b->list->cut, UNI_THREADS_FAULT);
	b->fails_after = 0;
}

static inline uint8_t *at(struct bench *b, const char *name, uint64_t offset)
{
	return b->ram + (address(b, name) + offset - b->start);
}

static inline void put64(struct bench *b, const char *name, uint64_t offset, uint64_t v)
{
	memcpy(at(b, name, offset), &v, sizeof(v)); /* tests run on little-endian hosts */
}

static inline uint64_t offset_of(struct bench *b, const char *tag, const char *path)
{
	struct uni_member m = { .path = path };

	assert_int_equal(uni_debug_members(b->debug, tag, &m, 1, NULL), 0);
	return m.offset;
}

#endif
