/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guests whose lists of threads are the input, and change while they are read. Each model must end
 * in bounded time, with a list of different threads that have clean names.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "guest/model.h"
#include "told_regs.h"

#define RAM_START   0x1000u
#define RAM_SIZE    0x4000u
#define MEMBERS_MAX 64
#define READS_MAX   200000u /* of pieces: 64 KiB of text for each of 512 threads would be less */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct guest {
	const uint8_t *data;
	size_t size;
	uint64_t reads;
	uint8_t twist; /* what is read changes each time: 0 it does not */
};

static void require(bool ok)
{
	if (!ok)
		abort();
}

static int ram_read(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	struct guest *g = ctx;
	uint8_t *out = buf;

	require(uni_range_contains(0, RAM_SIZE, offset, len));
	for (size_t i = 0; i < len; i++)
		out[i] = g->data[(offset + i) % g->size];
	if (g->twist != 0)
		out[g->reads % len] ^= (uint8_t)(g->twist * g->reads);
	g->reads++;
	return 0;
}

static const struct uni_gmem_ops ram_ops = { .read = ram_read };

static void check_thread(const struct uni_guest_thread *t, uint32_t nr_vcpus)
{
	char clean[UNI_THREAD_NAME_MAX];

	told_text(t->name);
	told_text(t->wait_name);
	told_u64(t->object);
	told_u64((uint64_t)t->state << 32 | (uint32_t)t->vcpu);
	tell_regs(&t->regs);
	require(t->nr_then <= UNI_THREAD_THEN_MAX);
	for (uint32_t i = 0; i < t->nr_then; i++)
		told_u64(t->then[i]);
	require(t->state < UNI_THREAD_STATE_NR && t->vcpu >= -1 && t->vcpu < (int32_t)nr_vcpus);
	require(memchr(t->name, 0, sizeof(t->name)) != NULL);
	require(memchr(t->wait_name, 0, sizeof(t->wait_name)) != NULL);
	(void)uni_text_clean(clean, sizeof(clean), t->name, strlen(t->name));
	require(strcmp(clean, t->name) == 0);
	require(t->state != UNI_THREAD_RUNNING || t->vcpu >= 0);
}

static void check(const struct uni_thread_list *list, uint32_t nr_vcpus)
{
	require(list->nr <= list->cap);
	for (uint32_t i = 0; i < list->nr; i++) {
		check_thread(&list->v[i], nr_vcpus);
		for (uint32_t k = 0; k < i; k++)
			require(list->v[k].object != list->v[i].object);
	}
}

/* A model whose symbols and offsets are where the input says, near each other. */
static void fill_model(struct uni_model *m, const struct uni_guest_ops *ops, const uint8_t *head)
{
	size_t at = 0;

	m->ops = ops;
	m->arch = &uni_arch_x86_64;
	for (size_t i = 0; i < UNI_MODEL_SYMS; i++) {
		m->sym[i] = RAM_START + head[i] * 8u;
		m->sym_size[i] = 64;
	}
	for (const struct uni_model_struct *s = ops->structs; s->tag != NULL; s++) {
		for (size_t i = 0; i < s->nr; i++, at++) {
			require(at < MEMBERS_MAX);
			m->member[at] = (struct uni_member){ .path = s->paths[i],
				.found = (head[4 + at % 8] & 1) == 0 || s->paths[i][0] != '?',
				.offset = i * 8 + (head[4 + at % 8] & 0xf8),
				.size = head[4 + at % 8] & 2 ? 4 : 8 };
		}
	}
}

static void walk(const struct uni_model *m, struct guest *g, uint32_t nr_vcpus)
{
	static const struct uni_gmem_region region = { .start = RAM_START, .size = RAM_SIZE };
	struct uni_thread_list *list = uni_thread_list_create(96);
	struct uni_regs regs[2] = { { .pc_valid = true, .sp_valid = true, .sp = RAM_START + 0x400 },
		{ .pc_valid = true } };
	struct uni_as_budget budget = uni_as_budget_default;
	struct uni_guest_thread t;
	struct uni_gmem *mem;
	struct uni_as *as;

	require(list != NULL);
	require(uni_gmem_create(&ram_ops, g, UNI_GMEM_VIRTUAL, &region, 1, &mem, NULL) == 0);
	uni_gmem_set_granule(mem, UNI_GMEM_GRANULE_MIN);
	budget.wall_ns = 0; /* the same threads, however busy the host is */
	require(uni_as_create(mem, &budget, &as, NULL) == 0);
	uni_as_begin(as, NULL);
	uni_model_walk(m, as, regs, nr_vcpus, list);
	check(list, nr_vcpus);
	if (uni_model_current(m, as, regs, 0, &t) == 0)
		check_thread(&t, nr_vcpus);
	require(g->reads < READS_MAX);
	uni_as_destroy(as);
	uni_gmem_destroy(mem);
	free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_member member[MEMBERS_MAX];

	if (size < 16)
		return 0;
	for (size_t i = 0; uni_guest_models[i] != NULL; i++) {
		struct guest g = { .data = data + 14, .size = size - 14, .twist = data[13] };
		struct uni_model m = { .member = member };

		fill_model(&m, uni_guest_models[i], data);
		m.own = calloc(1, m.ops->own_size + 1); /* as without an image */
		require(m.own != NULL);
		walk(&m, &g, 1 + (data[12] & 1));
		free(m.own);
	}
	return 0;
}
