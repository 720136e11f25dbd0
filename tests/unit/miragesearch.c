/* SPDX-License-Identifier: BSD-2-Clause */
/* A ring of MirageOS in a guest's memory is found, and nothing else is taken for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "format/mirage/mirage.h"

#define SIZE (1u << 20)
#define BASE 0x7fff00000000

struct memory {
	uint8_t *v;	     /* SIZE bytes at `base` */
	uint64_t base, hole; /* hole: a page that cannot be read; 0: none */
	unsigned left;	     /* of questions whether the time is up */
};

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct memory *m = ctx;

	assert_true(addr >= m->base && addr - m->base <= SIZE && len <= SIZE - (addr - m->base));
	if (m->hole != 0 && addr < m->hole + 4096 && addr + len > m->hole)
		return -UNI_EFAULT;
	memcpy(buf, m->v + (addr - m->base), len);
	return 0;
}

static bool is_over(void *ctx)
{
	struct memory *m = ctx;

	return m->left == 0 || m->left-- == 0;
}

static struct memory make_memory(void)
{
	struct memory m = { .v = malloc(SIZE + 32), .base = BASE, .left = 1u << 20 };

	assert_non_null(m.v);
	memset(m.v, 0xc1, SIZE);
	return m;
}

static void put_number(uint8_t *to, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (uint8_t)(v >> 8 * i);
}

static void put_head(struct memory *m, uint64_t at, uint32_t bits, uint32_t content)
{
	static const uint8_t uuid[16] = { 0x05, 0x88, 0x3b, 0x8d, 0x52, 0x1a, 0x48, 0x7b, 0xb3,
		0x97, 0x45, 0x6a, 0xb1, 0x50, 0x68, 0x0c };

	put_number(m->v + at, 0xc1fc1fc1, 4);
	memcpy(m->v + at + 4, uuid, 16);
	put_number(m->v + at + 20, bits, 4);
	put_number(m->v + at + 24, 0, 2);
	put_number(m->v + at + 26, content, 4);
}

/* Packets of `bytes` each, all with this content. */
static void put_ring(struct memory *m, uint64_t at, unsigned nr, uint32_t bytes, uint32_t content)
{
	for (unsigned i = 0; i < nr; i++)
		put_head(m, at + (uint64_t)i * bytes, bytes * 8, content * 8);
}

static void expect(struct memory *m, uint64_t at, uint64_t size)
{
	const struct uni_mirage_memory memory = { read_memory, is_over, m };
	struct uni_mirage_found f = { 0 };

	assert_int_equal(uni_mirage_search(&memory, m->base, SIZE, &f), 0);
	assert_int_equal(f.size, size);
	if (size != 0)
		assert_int_equal(f.addr - m->base, at);
}

/* Wherever it lies among the pieces in which memory is read; also at both ends. */
static void a_ring_anywhere(void **state)
{
	const uint64_t places[] = { 0, 1, 4096, 262144 - 19, 262144 - 20, 262144 - 1, 262144,
		262144 + 1, 524288 - 40, SIZE - 4 * 4096 };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct memory m = make_memory();

		put_ring(&m, places[i], 4, 4096, 500);
		expect(&m, places[i], UINT64_C(4) * 4096);
		free(m.v);
	}
}

/* The mark in a program, in a header of size 0; sizes that no packet has. */
static void no_rings(void **state)
{
	const struct {
		uint32_t bits, content;
	} heads[] = { { 0, 0 }, { 8 * 4096, 0 }, { 8 * 4096, 8 * 29 }, { 8 * 4096 + 1, 8 * 40 },
		{ 8 * 4096, 8 * 40 + 1 }, { 8 * 40, 8 * 41 }, { UINT32_MAX - 7, 8 * 40 },
		{ 0xc1c1c1c1, 0xc1c1c1c1 } };

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct memory m = make_memory();

		put_head(&m, 5000, heads[i].bits, heads[i].content);
		expect(&m, 0, 0);
		put_ring(&m, 300000, 2, 8192, 100);
		expect(&m, 300000, 16384);
		free(m.v);
	}
}

/* A packet whose end lies behind the memory is none. */
static void cut_off(void **state)
{
	struct memory m = make_memory();

	put_ring(&m, SIZE - 8192, 1, 8193, 100);
	expect(&m, 0, 0);
	put_ring(&m, SIZE - 8192 - 4096, 1, 4096, 100);
	expect(&m, SIZE - 8192 - 4096, 4096);
	put_head(&m, SIZE - 25, 8 * 25, 8 * 25);
	expect(&m, SIZE - 8192 - 4096, 4096);
	free(m.v);
}

/* A ring that was given up, and the one that is in use. */
static void most_events(void **state)
{
	struct memory m = make_memory();

	put_ring(&m, 8192, 4, 4096, 30);
	put_ring(&m, 100000, 4, 4096, 700);
	put_ring(&m, 400000, 8, 4096, 300);
	expect(&m, 100000, 16384);
	free(m.v);
}

static void a_page_cannot_be_read(void **state)
{
	struct memory m = make_memory();

	m.hole = m.base + 98304;
	put_ring(&m, 98304 + 4096, 2, 4096, 300);
	put_ring(&m, 98304 - 2 * 4096, 3, 4096, 200); /* its third packet is in there */
	expect(&m, 98304 + 4096, 8192);
	put_ring(&m, 98304 - 2 * 4096 - 10, 2, 4096, 400);
	expect(&m, 98304 - 2 * 4096 - 10, 8192);
	put_ring(&m, 98304 - 2 * 4096 - 10, 2, 0, 0);
	put_ring(&m, 98304 - 2 * 4096, 4, 4096, 200);
	m.hole = m.base + 98304 + 8192;
	expect(&m, 98304 - 2 * 4096, UINT64_C(4) * 4096);
	free(m.v);
}

/* As many packets as possible, and then a mark in each place: no place is looked at twice. */
static void hostile(void **state)
{
	struct memory m = make_memory();

	for (uint64_t at = 0; at + 30 <= SIZE; at += 30)
		put_head(&m, at, 8 * 30, 8 * 30);
	expect(&m, 0, SIZE / 30 * 30);
	assert_true(m.left > (1u << 20) - SIZE / 30 - 100);
	for (uint64_t at = 0; at + 30 <= SIZE; at += 30)
		put_head(&m, at, at % 60 == 0 ? 8 * 30 : 0, 8 * 30);
	m.left = 1u << 20;
	expect(&m, 0, 30);
	assert_true(m.left > (1u << 20) - 4 * (SIZE / 30) - 100);
	m.left = 10;
	expect(&m, 0, 30);
	m.left = 0;
	expect(&m, 0, 0);
	free(m.v);
}

/* The last byte of all addresses. */
static void the_end_of_addresses(void **state)
{
	struct memory m = make_memory();

	m.base = UINT64_MAX - SIZE + 1;
	put_ring(&m, SIZE - 8192, 2, 4096, 100);
	expect(&m, SIZE - 8192, 8192);
	free(m.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_anywhere),
		cmocka_unit_test(no_rings),
		cmocka_unit_test(cut_off),
		cmocka_unit_test(most_events),
		cmocka_unit_test(a_page_cannot_be_read),
		cmocka_unit_test(hostile),
		cmocka_unit_test(the_end_of_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
