/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unikraft's trace buffer out of a guest's memory: whatever its pointers say, and whatever of it
 * can be read. Run with the folder of the images that the build made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "format/uktrace/fetch.h"
#include "format/uktrace/order.h"
#include "ukt_make.h"

#define SIZE 256

static char path[4096];

/* A guest: the image at `bias`, with these three variables. */
struct guest {
	const struct uni_image *img;
	uint64_t bias, buffer, writep, free;
	uint64_t at_writep, at_free;
	struct ukt_bytes data; /* of the buffer */
	unsigned moving;       /* so many reads of the pointer find it further on */
	int fails;	       /* 1: the pointer cannot be read, 2: the buffer */
};

static int read_memory(void *ctx, uint64_t va, void *buf, size_t len)
{
	struct guest *g = ctx;

	if (va == g->at_writep && len == 8) {
		if (g->fails == 1)
			return -UNI_EFAULT;
		memcpy(buf, &g->writep, 8);
		if (g->moving != 0) {
			g->moving--;
			g->writep += 28;
		}
		return 0;
	}
	if (va == g->at_free && len == 8) {
		memcpy(buf, &g->free, 8);
		return 0;
	}
	if (g->fails == 2 || va != g->buffer || len > sizeof(g->data.b))
		return -UNI_EFAULT;
	memcpy(buf, g->data.b, len);
	return 0;
}

static struct guest make(const struct uni_image *img, uint64_t bias)
{
	struct guest g = { .img = img, .bias = bias };
	uint64_t size;

	assert_int_equal(uni_image_find(img, "uk_trace_buffer", &g.buffer, &size), 0);
	assert_int_equal(size, SIZE);
	assert_int_equal(uni_image_find(img, "uk_trace_buffer_writep", &g.at_writep, &size), 0);
	assert_int_equal(uni_image_find(img, "uk_trace_buffer_free", &g.at_free, &size), 0);
	g.buffer += bias;
	g.at_writep += bias;
	g.at_free += bias;
	g.writep = g.buffer;
	g.free = SIZE;
	return g;
}

/* Records of the only tracepoint, as many as n says. */
static void record(struct guest *g, unsigned n, uint64_t cookie)
{
	for (unsigned i = 0; i < n; i++) {
		size_t at = ukt_begin(&g->data, 100 + i, cookie, 8);

		ukt_put(&g->data, i, 4);
		ukt_end(&g->data, at);
	}
	g->writep = g->buffer + g->data.n;
	g->free = SIZE - g->data.n;
}

static int fetch(struct guest *g, struct uni_ukt_file *ret, struct uni_err *err)
{
	const struct uni_ring_source memory = { read_memory, g };

	return uni_ukt_fetch(g->img, g->bias, &memory, ret, err);
}

static size_t records(const struct uni_ukt_file *f)
{
	struct uni_ukt_trace t;
	size_t nr;

	assert_int_equal(uni_ukt_trace_open(f, &t, NULL), 0);
	assert_int_equal(t.stats.unknown + t.stats.damaged, 0);
	nr = t.records.nr;
	uni_ukt_trace_close(&t);
	return nr;
}

static void look(const struct uni_image *img, uint64_t bias)
{
	struct guest g = make(img, bias);
	struct uni_err err = { 0 };
	struct uni_ukt_defs defs;
	struct uni_ukt_file f;
	uint64_t cookie;

	assert_int_equal(uni_ukt_image_defs(img, &f, &err), 0);
	assert_int_equal(f.version, 1);
	assert_int_equal(f.ptr_size, 8);
	assert_int_equal(uni_ukt_defs_parse(f.defs, f.defs_size, &defs, NULL), 0);
	assert_int_equal(defs.all.nr, 1);
	assert_string_equal(defs.all.v[0].name, "tp");
	cookie = defs.all.v[0].cookie + bias;
	uni_ukt_defs_free(&defs);
	uni_ukt_file_free(&f);

	/* Nothing was recorded; the guest has not even come to set the pointer. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fetch(&g, &f, &err), 0);
		assert_int_equal(f.buffer_size, 0);
		assert_int_equal(f.capacity, SIZE);
		assert_false(f.full);
		uni_ukt_file_free(&f);
		g.writep = 0;
	}

	record(&g, 3, cookie);
	assert_int_equal(fetch(&g, &f, &err), 0);
	assert_int_equal(records(&f), 3);
	uni_ukt_file_free(&f);

	/* It goes on while it is looked at; and stops when it is full. */
	g.data.n = 0;
	record(&g, 5, cookie);
	g.writep = g.buffer + 28;
	g.moving = 3;
	assert_int_equal(fetch(&g, &f, &err), 0);
	assert_int_equal(records(&f), 4);
	uni_ukt_file_free(&f);
	/* Unikraft gives up where there is no room for a record's head, and leaves that as it is.
	 */
	for (g.free = 0; g.free < 48; g.free += 23 + g.free / 23) {
		assert_int_equal(fetch(&g, &f, &err), 0);
		assert_int_equal(f.full, g.free < 24);
		uni_ukt_file_free(&f);
	}
}

/* Pointers that are none, memory that cannot be read. */
static void wrong(const struct uni_image *img)
{
	struct guest g = make(img, 0);
	struct uni_ukt_file f;

	/* Old Unikraft wrote past the end: what is in the buffer counts. */
	g.writep = g.buffer + SIZE + 40;
	assert_int_equal(fetch(&g, &f, NULL), 0);
	assert_int_equal(f.buffer_size, SIZE);
	uni_ukt_file_free(&f);
	g.writep = g.buffer - 1;
	assert_int_equal(fetch(&g, &f, NULL), -UNI_EFORMAT);
	g.writep = UINT64_MAX;
	assert_int_equal(fetch(&g, &f, NULL), -UNI_EFORMAT);
	for (int fails = 1; fails <= 2; fails++) {
		struct uni_err err = { 0 };

		g = make(img, 0);
		record(&g, 1, 0);
		g.fails = fails;
		assert_int_equal(fetch(&g, &f, &err), -UNI_EFAULT);
		assert_non_null(strstr(err.msg, fails == 1 ? "writep" : "buffer at"));
	}
}

static void images(void **state)
{
	static const char *const names[] = { "ukt-x86_64", "ukt-aarch64", "ukt-clang" };
	unsigned nr = 0;

	for (size_t i = 0; i < 3; i++) {
		struct uni_image *img;
		struct uni_err err = { 0 };
		char file[4200];

		(void)snprintf(file, sizeof(file), "%s/%s", path, names[i]);
		if (access(file, R_OK) != 0)
			continue;
		nr++;
		assert_int_equal(uni_image_load(file, &img, &err), 0);
		look(img, 0);
		look(img, 0x7f0000000000);
		wrong(img);
		uni_image_destroy(img);
	}
	assert_true(nr != 0);
	(void)state;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(images),
	};

	(void)snprintf(path, sizeof(path), "%s", argc > 1 ? argv[1] : ".");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
