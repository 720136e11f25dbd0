/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../support/guest.h"
#include "arch/arch.h"
#include "base/checked.h"

#define RAM   (1u << 20)
#define TABLE 0x10000ull /* a 64 KiB granule's table fills one */
#define BLOCK 1ull
#define PAGE  3ull

/* Fields of TCR_EL1. */
#define T0SZ(n) ((uint64_t)(n))
#define T1SZ(n) ((uint64_t)(n) << 16)
#define TG0(n)	((uint64_t)(n) << 14)
#define TG1(n)	((uint64_t)(n) << 30)
#define IPS(n)	((uint64_t)(n) << 32)
#define EPD0	(1ull << 7)
#define EPD1	(1ull << 23)
#define TBI0	(1ull << 37)
#define TBI1	(1ull << 38)
#define DS	(1ull << 59)
#define SMALL	(T0SZ(16) | T1SZ(16) | IPS(5)) /* 48 bits each way */
#define K4	(TG0(0) | TG1(2))
#define K16	(TG0(2) | TG1(1))
#define K64	(TG0(1) | TG1(3))

/* The form in which an entry keeps address bits above 47. */
enum high { NONE, LPA, LPA2 };

/*
 * The manual's rules for one kind of leaf, in numbers typed from its tables and not taken from the
 * code under test. They are the levels that are walked, from the one that TTBR points to.
 */
struct leaf_case {
	const char *name;
	uint64_t tcr, va;
	unsigned nr; /* levels down to the leaf */
	unsigned shift[5], bits[5];
	uint64_t kind, addr; /* of the leaf: its type and address bits */
	uint64_t base;	     /* of the guest's memory, for tables above 2^48 */
	enum high high;
};

#define LOW4   0x00006789abcdef12ull
#define HIGH4  0xffff9789abcdef12ull
#define BASE52 0x000c000000000000ull

static const struct leaf_case cases[] = {
	{ "4K page", SMALL | K4, LOW4, 4, { 39, 30, 21, 12 }, { 9, 9, 9, 9 }, PAGE,
		0x0000fffffffff000, 0, NONE },
	{ "4K page, high", SMALL | K4, HIGH4, 4, { 39, 30, 21, 12 }, { 9, 9, 9, 9 }, PAGE,
		0x0000fffffffff000, 0, NONE },
	{ "2M block", SMALL | K4, LOW4, 3, { 39, 30, 21 }, { 9, 9, 9 }, BLOCK, 0x0000ffffffe00000,
		0, NONE },
	{ "1G block, high", SMALL | K4, HIGH4, 2, { 39, 30 }, { 9, 9 }, BLOCK, 0x0000ffffc0000000,
		0, NONE },
	{ "16K page", SMALL | K16, LOW4, 4, { 47, 36, 25, 14 }, { 1, 11, 11, 11 }, PAGE,
		0x0000ffffffffc000, 0, NONE },
	{ "16K page, high", SMALL | K16, HIGH4, 4, { 47, 36, 25, 14 }, { 1, 11, 11, 11 }, PAGE,
		0x0000ffffffffc000, 0, NONE },
	{ "32M block", SMALL | K16, HIGH4, 3, { 47, 36, 25 }, { 1, 11, 11 }, BLOCK,
		0x0000fffffe000000, 0, NONE },
	{ "64K page", SMALL | K64, LOW4, 3, { 42, 29, 16 }, { 6, 13, 13 }, PAGE, 0x0000ffffffff0000,
		0, NONE },
	{ "64K page, high", SMALL | K64, HIGH4, 3, { 42, 29, 16 }, { 6, 13, 13 }, PAGE,
		0x0000ffffffff0000, 0, NONE },
	{ "512M block", SMALL | K64, HIGH4, 2, { 42, 29 }, { 6, 13 }, BLOCK, 0x0000ffffe0000000, 0,
		NONE },
	/* Smaller spaces begin further down: 39 bits (as Linux has it), 36, 25 and 30 bits. */
	{ "4K, 39 bits", K4 | T0SZ(25) | T1SZ(25) | IPS(5), 0x7654321123ull, 3, { 30, 21, 12 },
		{ 9, 9, 9 }, PAGE, 0x0000fffffffff000, 0, NONE },
	{ "4K, 39 bits, high", K4 | T0SZ(25) | T1SZ(25) | IPS(5), 0xffffff9654321123ull, 3,
		{ 30, 21, 12 }, { 9, 9, 9 }, PAGE, 0x0000fffffffff000, 0, NONE },
	{ "4K, 36 bits", K4 | T0SZ(28) | T1SZ(16) | IPS(5), 0xf54321123ull, 3, { 30, 21, 12 },
		{ 6, 9, 9 }, PAGE, 0x0000fffffffff000, 0, NONE },
	{ "4K, 25 bits", K4 | T0SZ(39) | T1SZ(16) | IPS(5), 0x1e54321ull, 2, { 21, 12 }, { 4, 9 },
		PAGE, 0x0000fffffffff000, 0, NONE },
	{ "16K, 47 bits", K16 | T0SZ(17) | T1SZ(16) | IPS(5), 0x654321123456ull, 3, { 36, 25, 14 },
		{ 11, 11, 11 }, PAGE, 0x0000ffffffffc000, 0, NONE },
	{ "64K, 30 bits", K64 | T0SZ(34) | T1SZ(16) | IPS(5), 0x3edcba98ull, 2, { 29, 16 },
		{ 1, 13 }, PAGE, 0x0000ffffffff0000, 0, NONE },
	/* 52 bits: FEAT_LPA2 and FEAT_LPA. */
	{ "4K page, 52 bits", K4 | DS | T0SZ(12) | T1SZ(12) | IPS(6), 0x000e6789abcdef12ull, 5,
		{ 48, 39, 30, 21, 12 }, { 4, 9, 9, 9, 9 }, PAGE, 0x0003fffffffff000, BASE52, LPA2 },
	{ "512G block, high", K4 | DS | T0SZ(12) | T1SZ(12) | IPS(6), 0xfff96789abcdef12ull, 2,
		{ 48, 39 }, { 4, 9 }, BLOCK, 0x0003ff8000000000, BASE52, LPA2 },
	{ "16K page, 52 bits", K16 | DS | T0SZ(12) | T1SZ(12) | IPS(6), 0x000e6789abcdef12ull, 4,
		{ 47, 36, 25, 14 }, { 5, 11, 11, 11 }, PAGE, 0x0003ffffffffc000, BASE52, LPA2 },
	{ "64G block", K16 | DS | T0SZ(12) | T1SZ(12) | IPS(6), 0xfff96789abcdef12ull, 2,
		{ 47, 36 }, { 5, 11 }, BLOCK, 0x0003fff000000000, BASE52, LPA2 },
	{ "64K page, 52 bits", K64 | T0SZ(12) | T1SZ(12) | IPS(6), 0x000e6789abcdef12ull, 3,
		{ 42, 29, 16 }, { 10, 13, 13 }, PAGE, 0x0000ffffffff0000, BASE52, LPA },
	{ "4T block", K64 | T0SZ(12) | T1SZ(12) | IPS(6), 0xfff96789abcdef12ull, 1, { 42 }, { 10 },
		BLOCK, 0x0000fc0000000000, BASE52, LPA },
};

struct walk {
	struct guest g;
	struct uni_as *as;
	struct uni_pt_root root;
	uint64_t entry_at[5];
};

static struct uni_regs sys(uint64_t tcr, uint64_t ttbr0, uint64_t ttbr1)
{
	struct uni_regs r = { 0 };

	uni_regs_set_sys(&r, UNI_A64_SCTLR, 1);
	uni_regs_set_sys(&r, UNI_A64_TCR, tcr);
	uni_regs_set_sys(&r, UNI_A64_TTBR0, ttbr0);
	uni_regs_set_sys(&r, UNI_A64_TTBR1, ttbr1);
	uni_regs_set_sys(&r, UNI_A64_PSTATE, 0x3c5); /* EL1h */
	return r;
}

/* An entry that points to addr, with everything set that is neither address nor type. */
static uint64_t entry(enum high high, uint64_t addr, uint64_t kind)
{
	uint64_t e = (addr & 0x0000ffffffffffffull) | kind;

	if (high == LPA)
		e |= addr >> 36 & 0xf000;
	if (high == LPA2)
		e = (addr & 0x0003fffffffff000ull) | kind | (addr >> 50 & 3) << 8;
	return e;
}

static void open_walk(struct walk *w, const struct leaf_case *c)
{
	struct uni_as_budget budget = uni_as_budget_default;

	budget.wall_ns = 0;
	assert_true(guest_init(&w->g, c->base, RAM, UNI_GMEM_PHYSICAL));
	assert_int_equal(uni_as_create(w->g.m, &budget, &w->as, NULL), 0);
}

static void close_walk(struct walk *w)
{
	uni_as_destroy(w->as);
	guest_deinit(&w->g);
}

/* Tables at base + 0x10000, 0x20000, ...; the leaf entry is `leaf`. ASID and CnP are set, too. */
static void build(struct walk *w, const struct leaf_case *c, uint64_t leaf)
{
	uint64_t root = c->base + TABLE, ttbr = (root & 0x0000ffffffffffffull) | 0xabcd000000000001;
	struct uni_regs regs;

	if (c->base != 0)
		ttbr |= (root >> 48 & 15) << 2;
	regs = sys(c->tcr, ttbr, ttbr);
	for (unsigned i = 0; i < c->nr; i++) {
		uint64_t index = c->va >> c->shift[i] & ((1u << c->bits[i]) - 1);
		uint64_t table = entry(c->high, c->base + TABLE * (i + 2), PAGE);

		w->entry_at[i] = c->base + TABLE * (i + 1) + index * 8;
		guest_put64(&w->g, w->entry_at[i], i + 1 == c->nr ? leaf : table);
	}
	assert_int_equal(uni_arch_aarch64.paging(&regs, &w->root), 0);
}

static int translate(struct walk *w, uint64_t va, uint64_t *gpa_ret, uint64_t *size_ret)
{
	uni_gpa gpa = { 0 };
	int rc;

	uni_as_begin(w->as, &w->root);
	rc = uni_as_translate(w->as, uni_gva_of(va), &gpa, size_ret);
	*gpa_ret = gpa.v;
	return rc;
}

static void each_leaf(void **state)
{
	for (size_t i = 0; i < uni_array_len(cases); i++) {
		const struct leaf_case *c = &cases[i];
		uint64_t size = 1ull << c->shift[c->nr - 1], gpa, got;
		uint64_t target = 0x0000a5a5a5a5a5a5ull & c->addr & ~(size - 1);
		struct walk w;

		if (c->high != NONE)
			target |= 0x000b000000000000ull & ~(size - 1);
		open_walk(&w, c);
		build(&w, c, entry(c->high, target, c->kind) | 0x0060000000000400ull);
		if (translate(&w, c->va, &gpa, &got) != 0 || got != size ||
			gpa != (target | (c->va & (size - 1))))
			fail_msg("%s: %#llx, page of %#llx", c->name, (unsigned long long)gpa,
				(unsigned long long)got);
		/* Not there: bit 0 of the leaf, then of each table above it. */
		for (unsigned l = c->nr; l-- > 0;) {
			uint64_t e;

			memcpy(&e, w.g.ram + (w.entry_at[l] - c->base), 8);
			guest_put64(&w.g, w.entry_at[l], e & ~1ull);
			assert_int_equal(translate(&w, c->va, &gpa, &got), -UNI_EFAULT);
			guest_put64(&w.g, w.entry_at[l], e);
		}
		/* An address outside of what IPS says, where it can be told. */
		w.root.phys_mask = 0xffffffff;
		if (target > 0xffffffff)
			assert_int_equal(translate(&w, c->va, &gpa, &got), -UNI_EFAULT);
		close_walk(&w);
	}
}

/* Blocks where the level has none, "pages" without bit 1 at the last level. */
static void no_such_leaf(void **state)
{
	static const struct {
		unsigned of; /* index of a case whose walk goes this way */
		unsigned level;
	} bad[] = { { 0, 0 }, { 4, 0 }, { 4, 1 }, { 7, 0 }, { 0, 3 }, { 4, 3 }, { 7, 2 }, { 16, 0 },
		{ 16, 4 }, { 18, 0 } };

	for (size_t i = 0; i < uni_array_len(bad); i++) {
		const struct leaf_case *c = &cases[bad[i].of];
		uint64_t gpa, size, e;
		struct walk w;

		open_walk(&w, c);
		build(&w, c, entry(c->high, c->base, c->kind));
		assert_int_equal(translate(&w, c->va, &gpa, &size), 0);
		e = entry(c->high, c->base, BLOCK);
		guest_put64(&w.g, w.entry_at[bad[i].level], e);
		if (translate(&w, c->va, &gpa, &size) != -UNI_EFAULT)
			fail_msg("%s: a block at level %u", c->name, bad[i].level);
		close_walk(&w);
	}
}

static void outside(struct walk *w, uint64_t va)
{
	uint64_t gpa, size;

	if (translate(w, va, &gpa, &size) != -UNI_EFAULT)
		fail_msg("%#llx is mapped", (unsigned long long)va);
}

/* Above the low half, below the high one, with tags and without. */
static void limits_of_the_halves(void **state)
{
	const struct leaf_case *low = &cases[10], *high = &cases[11]; /* 39 bits */
	uint64_t gpa, size;
	struct walk w;

	open_walk(&w, low);
	build(&w, low, PAGE | 0x5000);
	assert_int_equal(translate(&w, low->va, &gpa, &size), 0);
	outside(&w, low->va | 1ull << 39);
	outside(&w, low->va | 1ull << 54);
	outside(&w, low->va | 1ull << 55);
	outside(&w, low->va | 1ull << 63);
	outside(&w, high->va & ~(1ull << 39));
	outside(&w, high->va & ~(1ull << 63));
	close_walk(&w);
}

static void top_byte_ignored(void **state)
{
	struct leaf_case c = cases[10];
	uint64_t gpa, size, same;
	struct walk w;

	open_walk(&w, &c);
	c.tcr |= TBI0;
	build(&w, &c, PAGE | 0x5000);
	assert_int_equal(translate(&w, c.va, &same, &size), 0);
	assert_int_equal(translate(&w, c.va | 0xa5ull << 56, &gpa, &size), 0);
	assert_true(gpa == same);
	outside(&w, c.va | 1ull << 54); /* that byte is no tag */
	outside(&w, cases[11].va & ~(0xa5ull << 56));
	c = cases[11];
	c.tcr |= TBI1;
	build(&w, &c, PAGE | 0x6000);
	assert_int_equal(translate(&w, c.va, &same, &size), 0);
	assert_int_equal(translate(&w, c.va & ~(0xa5ull << 56), &gpa, &size), 0);
	assert_true(gpa == same);
	outside(&w, cases[10].va | 0xa5ull << 56);
	close_walk(&w);
}

static void half_switched_off(void **state)
{
	static const uint64_t off[] = { EPD0, EPD1 };
	uint64_t gpa, size;

	for (size_t i = 0; i < 2; i++) {
		struct leaf_case c = cases[i]; /* 4K low, 4K high */
		struct walk w;

		open_walk(&w, &c);
		c.tcr |= off[1 - i];
		build(&w, &c, PAGE | 0x5000);
		assert_int_equal(translate(&w, c.va, &gpa, &size), 0);
		c.tcr ^= EPD0 | EPD1;
		build(&w, &c, PAGE | 0x5000);
		outside(&w, c.va);
		/* Sizes and granules that there are not. */
		c.tcr = (c.tcr & ~(EPD0 | EPD1 | T0SZ(63) | T1SZ(63))) | T0SZ(2) | T1SZ(2);
		build(&w, &c, PAGE | 0x5000);
		outside(&w, c.va);
		c.tcr = SMALL | TG0(3) | TG1(0);
		build(&w, &c, PAGE | 0x5000);
		outside(&w, c.va);
		close_walk(&w);
	}
}

static void what_may_run(void **state)
{
	const struct leaf_case *c = &cases[1];
	struct uni_mapping m;
	struct walk w;
	uint64_t e;

	open_walk(&w, c);
	build(&w, c, PAGE | 0x5000 | 1ull << 54); /* UXN is of EL0 */
	uni_as_begin(w.as, &w.root);
	/* The low half has the same tables: what comes there is of no interest. */
	assert_int_equal(uni_as_next(w.as, uni_gva_of(UINT64_MAX << 48), &m), 0);
	assert_true(m.gva.v == (c->va & ~0xfffull) && m.gpa.v == 0x5000 && m.size == 4096);
	assert_true(m.exec);
	guest_put64(&w.g, w.entry_at[3], PAGE | 0x5000 | 1ull << 53);
	uni_as_begin(w.as, &w.root);
	assert_int_equal(uni_as_next(w.as, uni_gva_of(UINT64_MAX << 48), &m), 0);
	assert_false(m.exec);
	guest_put64(&w.g, w.entry_at[3], PAGE | 0x5000);
	memcpy(&e, w.g.ram + w.entry_at[2], 8);
	guest_put64(&w.g, w.entry_at[2], e | 1ull << 59);
	uni_as_begin(w.as, &w.root);
	assert_int_equal(uni_as_next(w.as, uni_gva_of(UINT64_MAX << 48), &m), 0);
	assert_false(m.exec);
	close_walk(&w);
}

static void registers_that_say_nothing(void **state)
{
	struct uni_pt_root root;
	struct uni_regs r = sys(SMALL | K4, 0, 0);

	assert_int_equal(uni_arch_aarch64.paging(&r, &root), 0);
	assert_int_equal(root.geometry->nr_levels, 4);
	r.sys[UNI_A64_PSTATE] = 0x3c9; /* EL2h */
	assert_int_equal(uni_arch_aarch64.paging(&r, &root), -UNI_EINVAL);
	r.sys[UNI_A64_PSTATE] = 0x3c5;
	for (unsigned i = UNI_A64_SCTLR; i <= UNI_A64_TCR; i++) {
		struct uni_regs less = r;

		less.sys_valid &= (uint8_t) ~(1u << i);
		assert_int_equal(uni_arch_aarch64.paging(&less, &root), -UNI_EINVAL);
	}
	r.sys[UNI_A64_SCTLR] = 0;
	assert_int_equal(uni_arch_aarch64.paging(&r, &root), 0);
	assert_int_equal(root.geometry->nr_levels, 0);
}

/* A table that points to itself, and random ones: bounded, and never a crash. */
static void hostile_tables(void **state)
{
	const struct leaf_case *c = &cases[0];
	uint64_t gpa, size, from = 0;
	struct uni_mapping m;
	struct walk w;
	int rc = 0;

	open_walk(&w, c);
	build(&w, c, PAGE);
	for (unsigned i = 0; i < 512; i++)
		guest_put64(&w.g, TABLE + i * 8, TABLE | PAGE);
	assert_int_equal(translate(&w, c->va, &gpa, &size), 0);
	assert_true(gpa == (TABLE | (c->va & 0xfff)));
	uni_as_begin(w.as, &w.root);
	for (unsigned i = 0; i < 100000 && rc == 0; i++) {
		rc = uni_as_next(w.as, uni_gva_of(from), &m);
		from = m.gva.v + m.size;
	}
	assert_int_equal(rc, -UNI_EBUDGET);
	for (unsigned turn = 0; turn < 20000; turn++) {
		struct uni_regs r =
			sys(guest_random(&w.g), guest_random(&w.g) % RAM, guest_random(&w.g) % RAM);

		guest_put64(&w.g, guest_random(&w.g) % (RAM - 8), guest_random(&w.g));
		assert_int_equal(uni_arch_aarch64.paging(&r, &w.root), 0);
		(void)translate(&w, guest_random(&w.g), &gpa, &size);
		(void)uni_as_next(w.as, uni_gva_of(guest_random(&w.g)), &m);
	}
	close_walk(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_leaf),
		cmocka_unit_test(no_such_leaf),
		cmocka_unit_test(limits_of_the_halves),
		cmocka_unit_test(top_byte_ignored),
		cmocka_unit_test(half_switched_off),
		cmocka_unit_test(what_may_run),
		cmocka_unit_test(registers_that_say_nothing),
		cmocka_unit_test(hostile_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
