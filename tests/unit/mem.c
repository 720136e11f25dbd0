/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <time.h>

#include "../support/guest.h"
#include "base/checked.h"
#include "mem/as.h"

#define TOP (UINT64_MAX - 0xffff) /* the last 64 KiB of the space */

/* Regions read from one counter-filled array; the cookie is the offset in it. */
static int read_array(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	assert_true(offset < r->size && len <= r->size - offset);
	memcpy(buf, (const uint8_t *)ctx + r->cookie + offset, len);
	return 0;
}

static const struct uni_gmem_ops array_ops = { .read = read_array };

static void regions_are_checked(void **state)
{
	static const struct uni_gmem_region bad[][2] = {
		{ { 0, 0x1000 }, { 0xfff, 1 } },	    /* overlap */
		{ { 0x1000, 0 }, { 0, 1 } },		    /* empty */
		{ { UINT64_MAX - 1, 3 }, { 0, 1 } },	    /* wraps */
		{ { 0x2000, 0x1000 }, { 0x1000, 0x1001 } }, /* overlap, unsorted */
	};
	struct uni_gmem_region good[] = { { TOP, 0x10000 }, { 0, 0x1000 }, { 0x1000, 1 } };
	struct uni_err err;
	struct uni_gmem *m;

	for (size_t i = 0; i < uni_array_len(bad); i++) {
		err.code = 0;
		assert_int_equal(
			uni_gmem_create(&array_ops, NULL, UNI_GMEM_PHYSICAL, bad[i], 2, &m, &err),
			-UNI_EINVAL);
		assert_int_equal(err.code, UNI_EINVAL);
	}
	assert_int_equal(
		uni_gmem_create(&array_ops, NULL, UNI_GMEM_PHYSICAL, good, 3, &m, NULL), 0);
	assert_int_equal(uni_gmem_nr_regions(m), 3);
	assert_true(uni_gmem_region(m, 1)->start == 0x1000);
	assert_null(uni_gmem_region(m, 3));
	assert_int_equal(uni_gmem_set_regions(m, bad[0], 2, NULL), -UNI_EINVAL);
	assert_int_equal(uni_gmem_nr_regions(m), 3); /* untouched by the failure */
	assert_int_equal(uni_gmem_set_regions(m, NULL, 0, NULL), 0);
	assert_int_equal(uni_gmem_read(m, uni_gpa_of(0), &err, 1), -UNI_ERANGE);
	assert_int_equal(uni_gmem_read(m, uni_gpa_of(0), &err, 0), 0);
	uni_gmem_destroy(m);
	uni_gmem_destroy(NULL);
}

/* Every (start, length) over adjacent, separate and top-most regions, against plain counting. */
static void reads_are_exact(void **state)
{
	static const struct uni_gmem_region regions[] = {
		{ TOP + 0xffe0, 16, 100 }, { TOP + 0xfff0, 16, 0 }, /* adjacent, end at 2^64 */
		{ TOP + 0xffb0, 32, 50 },			    /* then a hole of 16 bytes */
	};
	uint8_t array[128], buf[96];
	struct uni_gmem *m;

	for (size_t i = 0; i < sizeof(array); i++)
		array[i] = (uint8_t)i;
	assert_int_equal(
		uni_gmem_create(&array_ops, array, UNI_GMEM_PHYSICAL, regions, 3, &m, NULL), 0);
	for (unsigned start = 0; start < 96; start++) {
		for (unsigned len = 1; len <= 96; len++) {
			bool want = (start >= 16 && start + len <= 48) ||
				    (start >= 64 && start + len <= 96);
			int rc = uni_gmem_read(m, uni_gpa_of(TOP + 0xffa0 + start), buf, len);

			assert_int_equal(rc, want ? 0 : -UNI_ERANGE);
			for (unsigned i = 0; want && i < len; i++) {
				unsigned at = start + i;

				assert_int_equal(buf[i], at < 48   ? 50 + at - 16
							 : at < 80 ? 100 + at - 64
								   : at - 80);
			}
		}
	}
	uni_gmem_destroy(m);
}

/* The smallest geometry: one table of 4 entries, pages of 4 KiB. */
static const struct uni_pt_geometry one_level = {
	.name = "test",
	.nr_levels = 1,
	.entry_size = 8,
	.va_bits = 14,
	.present_mask = 1,
	.present_value = 1,
	.table_addr = 0xfffff000,
	.leaf_addr = 0xfffff000,
	.level = { { .shift = 12, .bits = 2, .leaf_allowed = true } },
};

struct space {
	struct guest g;
	struct uni_as *as;
	struct uni_pt_root root;
};

static void space_open(struct space *s, const struct uni_as_budget *budget)
{
	assert_true(guest_init(&s->g, 0, 0x10000, UNI_GMEM_PHYSICAL));
	for (size_t i = 0; i < s->g.size; i++)
		s->g.ram[i] = (uint8_t)(i ^ i >> 8);
	s->root = (struct uni_pt_root){ .geometry = &one_level, .phys_mask = UINT32_MAX };
	for (unsigned i = 0; i < 4; i++) /* pages in reverse order; page 3 is not there */
		guest_put64(&s->g, i * 8, (0x8000 - i * 0x1000) | (i < 3));
	assert_int_equal(uni_as_create(s->g.m, budget, &s->as, NULL), 0);
	uni_as_begin(s->as, &s->root);
}

static void space_close(struct space *s)
{
	uni_as_destroy(s->as);
	guest_deinit(&s->g);
}

static void reads_straddle_pages(void **state)
{
	struct space s;
	uint8_t buf[0x3000];
	uint64_t v;

	space_open(&s, &uni_as_budget_once);
	for (unsigned i = 0; i < 0x3000 - 8; i += 7) {
		unsigned n = 1 + i % (0x3000 - i);

		assert_int_equal(uni_as_read(s.as, uni_gva_of(i), buf, n), 0);
		for (unsigned k = 0; k < n; k++) {
			unsigned gpa = 0x8000 - ((i + k) & ~0xfffu) + ((i + k) & 0xfff);

			assert_int_equal(buf[k], s.g.ram[gpa]);
		}
		uni_as_begin(s.as, &s.root);
	}
	assert_int_equal(uni_as_read(s.as, uni_gva_of(0x2fff), buf, 2), -UNI_EFAULT);
	assert_int_equal(uni_as_read_some(s.as, uni_gva_of(0x1800), buf, sizeof(buf)), 0x1800);
	assert_int_equal(uni_as_read_some(s.as, uni_gva_of(0x3000), buf, sizeof(buf)), 0);
	assert_int_equal(uni_as_read_some(s.as, uni_gva_of(0x4000), buf, 1), 0); /* above va_bits */
	assert_int_equal(uni_as_read_u64(s.as, uni_gva_of(0xffd), &v), 0);
	for (unsigned k = 0; k < 8; k++)
		assert_int_equal(v >> (8 * k) & 0xff, s.g.ram[k < 3 ? 0x8ffd + k : 0x7000 + k - 3]);
	space_close(&s);
}

static void caches_last_one_sample(void **state)
{
	struct space s;
	uint64_t a, b;

	space_open(&s, &uni_as_budget_once);
	assert_int_equal(uni_as_read_u64(s.as, uni_gva_of(0x10), &a), 0);
	guest_put64(&s.g, 0, 0x5000 | 1); /* the guest remaps the page and changes the old one */
	guest_put64(&s.g, 0x8010, ~a);
	assert_int_equal(uni_as_read_u64(s.as, uni_gva_of(0x10), &b), 0);
	assert_true(a == b);
	assert_int_equal(uni_as_stats(s.as)->reads, 2); /* the table, the page */
	assert_int_equal(uni_as_stats(s.as)->bytes, 8192);
	assert_int_equal(uni_as_stats(s.as)->table_loads, 1);
	uni_as_begin(s.as, &s.root);
	assert_int_equal(uni_as_stats(s.as)->bytes, 0);
	assert_int_equal(uni_as_read_u64(s.as, uni_gva_of(0x10), &b), 0);
	assert_memory_equal(&b, s.g.ram + 0x5010, 8);
	space_close(&s);
}

/* Every word of the copy is in the window, and no byte behind it. */
static void a_window_is_the_copy(void **state)
{
	struct uni_as_window w;
	struct space s;
	uint64_t v;

	space_open(&s, &uni_as_budget_once);
	uni_as_look(s.as, &w);
	assert_int_equal(w.words, 0);
	assert_int_equal(uni_as_read_u64(s.as, uni_gva_of(0x10), &v), 0);
	uni_as_look(s.as, &w);
	assert_int_equal(w.words, uni_gmem_granule(uni_as_gmem(s.as)) - 7);
	assert_true(w.va <= 0x10 && 0x10 - w.va < w.words);
	assert_memory_equal(w.bytes, s.g.ram + 0x8000 + w.va, w.words + 7);
	assert_int_equal(uni_as_read_u64(s.as, uni_gva_of(0x1008), &v), 0);
	uni_as_look(s.as, &w);
	assert_true(w.va <= 0x1008 && 0x1008 - w.va < w.words);
	assert_memory_equal(w.bytes, s.g.ram + 0x7000 + (w.va - 0x1000), w.words + 7);
	uni_as_begin(s.as, &s.root);
	uni_as_look(s.as, &w);
	assert_int_equal(w.words, 0);
	space_close(&s);
}

static void budgets_hold(void **state)
{
	static const struct uni_as_budget bytes = { .bytes = 8192 + 4095, .table_loads = 100 };
	static const struct uni_as_budget loads = { .bytes = 1 << 20, .table_loads = 2 };
	static const struct uni_as_budget reads = { 1 << 20, 100, .reads = 3 };
	static const struct uni_as_budget wall = { 1 << 20, 100, .wall_ns = 1 };
	struct space s;
	uint8_t b;

	space_open(&s, &bytes);
	assert_int_equal(uni_as_read(s.as, uni_gva_of(0), &b, 1), 0);
	assert_int_equal(uni_as_read(s.as, uni_gva_of(0x1000), &b, 1), -UNI_EBUDGET);
	assert_int_equal(uni_as_stats(s.as)->bytes, 8192);
	space_close(&s);

	space_open(&s, &loads);
	assert_int_equal(uni_as_read(s.as, uni_gva_of(0), &b, 1), 0);
	assert_int_equal(uni_as_read(s.as, uni_gva_of(0x1000), &b, 1), 0);
	assert_int_equal(uni_as_read(s.as, uni_gva_of(0x2000), &b, 1), -UNI_EBUDGET);
	assert_int_equal(uni_as_read(s.as, uni_gva_of(0x1fff), &b, 1), 0); /* translated before */
	space_close(&s);

	/* One for the table; a page that is not there is no limit that was reached. */
	space_open(&s, &reads);
	assert_int_equal(uni_as_read(s.as, uni_gva_of(0x3000), &b, 1), -UNI_EFAULT);
	assert_int_equal(uni_as_read(s.as, uni_gva_of(0), &b, 1), 0);
	assert_int_equal(uni_as_read(s.as, uni_gva_of(0x1000), &b, 1), 0);
	assert_false(uni_as_is_spent(s.as));
	assert_int_equal(uni_as_read(s.as, uni_gva_of(0x2000), &b, 1), -UNI_EBUDGET);
	assert_true(uni_as_is_spent(s.as));
	uni_as_begin(s.as, &s.root);
	assert_false(uni_as_is_spent(s.as));
	assert_int_equal(uni_as_read(s.as, uni_gva_of(0x2000), &b, 1), 0);
	space_close(&s);

	space_open(&s, &wall);
	assert_int_equal(uni_as_read(s.as, uni_gva_of(0), &b, 1), -UNI_EBUDGET);
	assert_true(uni_as_is_spent(s.as));
	space_close(&s);
}

static int read_late(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	const struct timespec busy = { .tv_nsec = 25000000 };

	(void)nanosleep(&busy, NULL);
	return read_array(ctx, r, offset, buf, len);
}

/* Time that a busy host takes from us counts for a sample, but not for what is read once. */
static void busy_hosts_are_no_limit(void **state)
{
	static const struct uni_gmem_ops late_ops = { .read = read_late };
	static const struct uni_gmem_region ram = { .size = 0x4000 };
	static uint8_t bytes[0x4000];
	struct uni_gmem *m;
	struct uni_as *as;
	uint64_t v;

	assert_int_equal(uni_gmem_create(&late_ops, bytes, UNI_GMEM_VIRTUAL, &ram, 1, &m, NULL), 0);
	assert_int_equal(uni_as_create(m, &uni_as_budget_once, &as, NULL), 0);
	for (uint64_t at = 0; at < ram.size; at += 0x1000)
		assert_int_equal(uni_as_read_u64(as, uni_gva_of(at), &v), 0);
	uni_as_destroy(as);
	assert_int_equal(uni_as_create(m, NULL, &as, NULL), 0);
	(void)uni_as_read_u64(as, uni_gva_of(0), &v);
	assert_int_equal(uni_as_read_u64(as, uni_gva_of(0x1000), &v), -UNI_EBUDGET);
	uni_as_destroy(as);
	uni_gmem_destroy(m);
}

/* Its clock is asked at each sixteenth read. */
static void cpu_time_is_a_limit(void **state)
{
	static const struct uni_as_budget cpu = { 1 << 20, 100, .cpu_ns = 1 };
	static const struct uni_gmem_region ram = { .size = 0x11000 };
	static uint8_t bytes[0x11000];
	struct uni_gmem *m;
	struct uni_as *as;
	uint64_t v, at = 0;

	assert_int_equal(
		uni_gmem_create(&array_ops, bytes, UNI_GMEM_VIRTUAL, &ram, 1, &m, NULL), 0);
	assert_int_equal(uni_as_create(m, &cpu, &as, NULL), 0);
	while (at < ram.size && uni_as_read_u64(as, uni_gva_of(at), &v) == 0)
		at += 0x1000;
	assert_int_equal(at, 0xf000);
	assert_int_equal(uni_as_read_u64(as, uni_gva_of(at), &v), -UNI_EBUDGET);
	uni_as_destroy(as);
	uni_gmem_destroy(m);
}

static void gone_is_passed_on(void **state)
{
	struct space s;
	uint64_t v;

	space_open(&s, &uni_as_budget_once);
	s.g.gone_at = 2;
	assert_int_equal(uni_as_read_u64(s.as, uni_gva_of(0), &v), -UNI_EGONE);
	space_close(&s);
}

/* No paging: the last bytes of the space, regions that fill a part of a granule, every granule. */
static void exact_ends_without_paging(void **state)
{
	for (size_t granule = 1; granule <= 8192; granule *= 2) {
		struct guest g;
		struct uni_as *as;
		uint8_t buf[64];

		assert_true(guest_init(&g, UINT64_MAX - 99, 100, UNI_GMEM_VIRTUAL));
		for (size_t i = 0; i < g.size; i++)
			g.ram[i] = (uint8_t)i;
		uni_gmem_set_granule(g.m, granule);
		assert_true(uni_gmem_granule(g.m) >= 64 && uni_gmem_granule(g.m) <= 4096);
		assert_int_equal(uni_as_create(g.m, &uni_as_budget_once, &as, NULL), 0);
		assert_int_equal(uni_as_read(as, uni_gva_of(UINT64_MAX - 63), buf, 64), 0);
		assert_memory_equal(buf, g.ram + 36, 64);
		assert_int_equal(uni_as_read(as, uni_gva_of(UINT64_MAX), buf, 1), 0);
		assert_int_equal(uni_as_read(as, uni_gva_of(UINT64_MAX), buf, 2), -UNI_EFAULT);
		assert_int_equal(uni_as_read(as, uni_gva_of(UINT64_MAX - 99), buf, 8), 0);
		assert_int_equal(
			uni_as_read(as, uni_gva_of(UINT64_MAX - 100), buf, 8), -UNI_EFAULT);
		assert_int_equal(
			uni_as_read_some(as, uni_gva_of(UINT64_MAX - 15), buf, sizeof(buf)), 16);
		uni_as_destroy(as);
		guest_deinit(&g);
	}
}

/* The byte at 0 does not follow the last byte of the space. */
static void the_space_does_not_wrap(void **state)
{
	static const struct uni_gmem_region both[] = { { 0, 4096 }, { TOP, 0x10000 } };
	static uint8_t array[0x10000];
	struct uni_gmem *m;
	struct uni_as *as;
	uint8_t buf[64];

	assert_int_equal(
		uni_gmem_create(&array_ops, array, UNI_GMEM_VIRTUAL, both, 2, &m, NULL), 0);
	assert_int_equal(uni_as_create(m, &uni_as_budget_once, &as, NULL), 0);
	assert_int_equal(uni_gmem_read(m, uni_gpa_of(UINT64_MAX), buf, 2), -UNI_ERANGE);
	/* Without page tables, code is where there is memory. */
	assert_int_equal(uni_as_check_exec(as, uni_gva_of(4095)), 0);
	assert_int_equal(uni_as_check_exec(as, uni_gva_of(TOP)), 0);
	assert_int_equal(uni_as_check_exec(as, uni_gva_of(4096)), -UNI_EFAULT);
	assert_int_equal(uni_as_read(as, uni_gva_of(UINT64_MAX), buf, 2), -UNI_EFAULT);
	assert_int_equal(uni_as_read_some(as, uni_gva_of(UINT64_MAX - 9), buf, 64), 10);
	uni_as_destroy(as);
	uni_gmem_destroy(m);
}

static void high_half_has_its_own_table(void **state)
{
	struct uni_mapping m;
	struct space s;
	uni_gpa gpa;
	uint64_t size;

	space_open(&s, &uni_as_budget_once);
	for (unsigned i = 0; i < 4; i++)
		guest_put64(&s.g, 0xf000 + i * 8, 0x3001);
	s.root.geometry_high = &one_level;
	s.root.root_high.v = 0xf000;
	uni_as_begin(s.as, &s.root);
	assert_int_equal(uni_as_translate(s.as, uni_gva_of(0x123), &gpa, &size), 0);
	assert_true(gpa.v == 0x8123 && size == 4096);
	assert_int_equal(uni_as_translate(s.as, uni_gva_of(UINT64_MAX), &gpa, NULL), 0);
	assert_true(gpa.v == 0x3fff);
	assert_int_equal(uni_as_translate(s.as, uni_gva_of(0x4000), &gpa, NULL), -UNI_EFAULT);
	assert_int_equal(uni_as_translate(s.as, uni_gva_of(1ull << 63), &gpa, NULL), -UNI_EFAULT);
	/* Addresses above the low half go on where the high one begins, with its own number of
	 * bits. */
	assert_int_equal(uni_as_next(s.as, uni_gva_of(0x3000), &m), 0);
	assert_true(m.gva.v == ~UINT64_C(0x3fff) && m.gpa.v == 0x3000);
	s.root.va_bits_high = 13;
	uni_as_begin(s.as, &s.root);
	assert_int_equal(uni_as_next(s.as, uni_gva_of(0x3000), &m), 0);
	assert_true(m.gva.v == ~UINT64_C(0x1fff));
	space_close(&s);
}

/* More pages than the cache has lines, many times over, each byte still right. */
static void cache_replaces_lines(void **state)
{
	static const struct uni_as_budget budget = { .bytes = UINT32_MAX, .table_loads = 1 };
	const size_t size = 1 << 20;
	struct guest g;
	struct uni_as *as;
	uint64_t v;

	assert_true(guest_init(&g, 0, size, UNI_GMEM_VIRTUAL));
	for (size_t i = 0; i < size; i += 8)
		guest_put64(&g, i, i * 0x9e3779b97f4a7c15ull);
	uni_gmem_set_granule(g.m, 512);
	assert_int_equal(uni_as_create(g.m, &budget, &as, NULL), 0);
	for (unsigned i = 0; i < 200000; i++) {
		uint64_t at = guest_random(&g) % (size - 7);

		assert_int_equal(uni_as_read_u64(as, uni_gva_of(at), &v), 0);
		assert_memory_equal(&v, g.ram + at, 8);
	}
	uni_as_destroy(as);
	guest_deinit(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_are_checked),
		cmocka_unit_test(reads_are_exact),
		cmocka_unit_test(reads_straddle_pages),
		cmocka_unit_test(caches_last_one_sample),
		cmocka_unit_test(a_window_is_the_copy),
		cmocka_unit_test(budgets_hold),
		cmocka_unit_test(busy_hosts_are_no_limit),
		cmocka_unit_test(cpu_time_is_a_limit),
		cmocka_unit_test(gone_is_passed_on),
		cmocka_unit_test(exact_ends_without_paging),
		cmocka_unit_test(the_space_does_not_wrap),
		cmocka_unit_test(high_half_has_its_own_table),
		cmocka_unit_test(cache_replaces_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
