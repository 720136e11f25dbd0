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

#define PG   0x80000000ull
#define PE   1ull
#define PSE  0x10ull
#define PAE  0x20ull
#define LA57 0x1000ull
#define LME  0x100ull
#define LMA  0x400ull
#define NXE  0x800ull

static struct uni_regs sys(uint64_t cr0, uint64_t cr3, uint64_t cr4, uint64_t efer)
{
	struct uni_regs r = { 0 };

	uni_regs_set_sys(&r, UNI_X86_CR0, cr0);
	uni_regs_set_sys(&r, UNI_X86_CR3, cr3);
	uni_regs_set_sys(&r, UNI_X86_CR4, cr4);
	uni_regs_set_sys(&r, UNI_X86_EFER, efer);
	return r;
}

/*
 * The manual's rules for one kind of leaf, in numbers typed from its tables and not taken from the
 * code under test. They say which bits of the leaf entry are its address, and which must be 0.
 */
struct leaf_case {
	const char *name;
	uint64_t cr4, efer;
	unsigned entry, nr_levels, leaf_level; /* leaf_level counts from the root, 0 first */
	unsigned shift[5], bits[5];
	uint64_t addr, reserved;
	uint64_t table_reserved[4]; /* of the entries above, by level */
	uint64_t va;
};

#define LONG4 .cr4 = PAE, .efer = LME | LMA | NXE, .entry = 8, .shift = { 39, 30, 21, 12 }
#define LONG5 \
	.cr4 = PAE | LA57, .efer = LME | LMA | NXE, .entry = 8, .shift = { 48, 39, 30, 21, 12 }
#define NINES	 .bits = { 9, 9, 9, 9, 9 }
#define ADDR_4K	 0x000ffffffffff000ull
#define ADDR_2M	 0x000fffffffe00000ull
#define ADDR_1G	 0x000fffffc0000000ull
#define HIGH	 0xffffffff80345678ull
#define PAE_TOP	 0xfff00000000001e6ull
#define PAE_RSVD 0x7ff0000000000000ull

static const struct leaf_case cases[] = {
	{ "4-level 4K", LONG4, .nr_levels = 4, .leaf_level = 3, NINES, .addr = ADDR_4K,
		.table_reserved = { 0x80 }, .va = HIGH },
	{ "4-level 2M", LONG4, .nr_levels = 4, .leaf_level = 2, NINES, .addr = ADDR_2M,
		.reserved = 0x1fe000, .table_reserved = { 0x80 }, .va = HIGH },
	{ "4-level 1G", LONG4, .nr_levels = 4, .leaf_level = 1, NINES, .addr = ADDR_1G,
		.reserved = 0x3fffe000, .table_reserved = { 0x80 }, .va = HIGH },
	{ "4-level low", LONG4, .nr_levels = 4, .leaf_level = 3, NINES, .addr = ADDR_4K,
		.table_reserved = { 0x80 }, .va = 0x00007ffffffff123ull },
	{ "5-level 4K", LONG5, .nr_levels = 5, .leaf_level = 4, NINES, .addr = ADDR_4K,
		.table_reserved = { 0x80, 0x80 }, .va = 0xff23456789abcdefull },
	{ "5-level 2M", LONG5, .nr_levels = 5, .leaf_level = 3, NINES, .addr = ADDR_2M,
		.reserved = 0x1fe000, .table_reserved = { 0x80, 0x80 },
		.va = 0x00fedcba98765432ull },
	{ "5-level 1G", LONG5, .nr_levels = 5, .leaf_level = 2, NINES, .addr = ADDR_1G,
		.reserved = 0x3fffe000, .table_reserved = { 0x80, 0x80 }, .va = HIGH },
	{ "PAE 4K", .cr4 = PAE, .efer = NXE, .entry = 8, .nr_levels = 3, .leaf_level = 2,
		.shift = { 30, 21, 12 }, .bits = { 2, 9, 9 }, .addr = ADDR_4K, .reserved = PAE_RSVD,
		.table_reserved = { PAE_TOP, PAE_RSVD }, .va = 0xc0801234 },
	{ "PAE 2M", .cr4 = PAE, .efer = NXE, .entry = 8, .nr_levels = 3, .leaf_level = 1,
		.shift = { 30, 21, 12 }, .bits = { 2, 9, 9 }, .addr = ADDR_2M,
		.reserved = PAE_RSVD | 0x1fe000, .table_reserved = { PAE_TOP }, .va = 0xc0801234 },
	{ "32-bit 4K", .cr4 = PSE, .entry = 4, .nr_levels = 2, .leaf_level = 1, .shift = { 22, 12 },
		.bits = { 10, 10 }, .addr = 0xfffff000, .va = 0xfff01234 },
	{ "32-bit 4K, no PSE", .entry = 4, .nr_levels = 2, .leaf_level = 1, .shift = { 22, 12 },
		.bits = { 10, 10 }, .addr = 0xfffff000, .va = 0xfff01234 },
	{ "32-bit 4M", .cr4 = PSE, .entry = 4, .nr_levels = 2, .leaf_level = 0, .shift = { 22, 12 },
		.bits = { 10, 10 }, .addr = 0xffc00000, .reserved = 0x200000, .va = 0xfff01234 },
};

struct walk {
	struct guest g;
	struct uni_as *as;
	struct uni_pt_root root;
	uint64_t entry_at[5];
};

/* Tables at 0x1000, 0x2000, ...; the leaf says `leaf`. */
static void build(struct walk *w, const struct leaf_case *c, uint64_t leaf)
{
	struct uni_regs regs = sys(PG | PE, 0x1000, c->cr4, c->efer);

	memset(w->g.ram, 0, w->g.size);
	for (unsigned i = 0; i <= c->leaf_level; i++) {
		uint64_t index = c->va >> c->shift[i] & ((1u << c->bits[i]) - 1);

		w->entry_at[i] = 0x1000 * (i + 1) + index * c->entry;
		guest_put(&w->g, w->entry_at[i], i == c->leaf_level ? leaf : 0x1000 * (i + 2) | 1,
			c->entry);
	}
	assert_int_equal(uni_arch_x86_64.paging(&regs, &w->root), 0);
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

static void walk_open(struct walk *w)
{
	assert_true(guest_init(&w->g, 0, 0x8000, UNI_GMEM_PHYSICAL));
	assert_int_equal(uni_as_create(w->g.m, &uni_as_budget_once, &w->as, NULL), 0);
}

static void walk_close(struct walk *w)
{
	uni_as_destroy(w->as);
	guest_deinit(&w->g);
}

/* Each bit of each leaf, alone: fault, or exactly this address. */
static void each_bit_of_each_leaf(void **state)
{
	struct walk w;
	uint64_t gpa, size;

	walk_open(&w);
	for (size_t k = 0; k < uni_array_len(cases); k++) {
		const struct leaf_case *c = &cases[k];
		uint64_t leaf_size = 1ull << c->shift[c->leaf_level];
		bool large = c->leaf_level + 1 < c->nr_levels;
		uint64_t base = 1 | (large ? 0x80 : 0);

		for (unsigned bit = 0; bit < c->entry * 8; bit++) {
			uint64_t leaf = base ^ 1ull << bit, addr = leaf & c->addr;
			int rc;

			if (large && bit == 7)
				continue; /* a table then */
			/* PSE-36: 20:13 of the entry are 39:32 of the address. */
			if (c->addr == 0xffc00000)
				addr |= (leaf >> 13 & 0xff) << 32;
			build(&w, c, leaf);
			rc = translate(&w, c->va, &gpa, &size);
			if (bit == 0 || (leaf & c->reserved) != 0) {
				assert_int_equal(rc, -UNI_EFAULT);
				continue;
			}
			assert_int_equal(rc, 0);
			assert_true(gpa == (addr | (c->va & (leaf_size - 1))));
			assert_true(size == leaf_size);
		}
	}
	walk_close(&w);
}

/* Each bit of each entry above the leaf. */
static void each_bit_of_each_table_entry(void **state)
{
	struct walk w;
	uint64_t gpa, size;

	walk_open(&w);
	for (size_t k = 0; k < uni_array_len(cases); k++) {
		const struct leaf_case *c = &cases[k];
		uint64_t leaf = 0x6001 | (c->leaf_level + 1 < c->nr_levels ? 0x80 : 0);
		uint64_t want;

		leaf &= ~c->reserved; /* 0x6000 is in a reserved field of large leaves */
		build(&w, c, leaf);
		assert_int_equal(translate(&w, c->va, &want, &size), 0);
		for (unsigned i = 0; i < c->leaf_level; i++) {
			for (unsigned bit = 0; bit < c->entry * 8; bit++) {
				uint64_t e = 0x1000 * (i + 2) | 1, flip = 1ull << bit;
				bool ps = bit == 7 && (c->table_reserved[i] & 0x80) == 0 &&
					  (c->cr4 & (PSE | PAE)) != 0;
				bool fault = bit == 0 || (c->table_reserved[i] & flip) != 0;
				int rc;

				build(&w, c, leaf);
				guest_put(&w.g, w.entry_at[i], e ^ flip, c->entry);
				rc = translate(&w, c->va, &gpa, &size);
				if (fault) {
					assert_int_equal(rc, -UNI_EFAULT);
				} else if (ps || (ADDR_4K & flip) != 0) {
					assert_true(rc != 0 || gpa != want || ps);
				} else {
					assert_int_equal(rc, 0);
					assert_true(gpa == want);
				}
			}
		}
	}
	walk_close(&w);
}

static void addresses_are_canonical(void **state)
{
	static const struct {
		const struct leaf_case *c;
		uint64_t va;
	} bad[] = {
		{ &cases[0], 0x0000800000000000ull },
		{ &cases[0], 0xffff7fffffffffffull },
		{ &cases[0], 0x7fffffff80345678ull },
		{ &cases[4], 0x0100000000000000ull },
		{ &cases[4], 0xfeffffffffffffffull },
		{ &cases[7], 0x1c0801234ull },
		{ &cases[9], 0xfffffffffff01234ull },
	};
	struct walk w;
	uint64_t gpa, size;

	walk_open(&w);
	for (size_t i = 0; i < uni_array_len(bad); i++) {
		build(&w, bad[i].c, 0x6001);
		/* Whatever index the address has: every entry is there, and leads on. */
		for (uint64_t at = 0x1000; at < 0x6000; at += bad[i].c->entry)
			guest_put(&w.g, at, (at & ~0xfffull) + 0x1001, bad[i].c->entry);
		assert_int_equal(translate(&w, bad[i].va, &gpa, &size), -UNI_EFAULT);
		assert_int_equal(translate(&w, bad[i].c->va, &gpa, &size), 0);
	}
	/* The last bytes of the space are an address like any other. */
	build(&w, &cases[0], 1);
	for (uint64_t at = 0x1000; at < 0x5000; at += 8)
		guest_put64(&w.g, at, (at & ~0xfffull) + 0x1001);
	assert_int_equal(translate(&w, UINT64_MAX, &gpa, &size), 0);
	assert_true(gpa == 0x5fff);
	walk_close(&w);
}

/* A table that is its own child, at every level and as data too. */
static void tables_may_point_at_themselves(void **state)
{
	struct walk w;
	uint64_t gpa, size, word;

	walk_open(&w);
	build(&w, &cases[0], 0x6001);
	guest_put64(&w.g, 0x1000 + 8 * 510, 0x1001);
	assert_int_equal(translate(&w, 0xffffff7fbfdfe000ull, &gpa, &size), 0);
	assert_true(gpa == 0x1000);
	assert_int_equal(uni_as_read_u64(w.as, uni_gva_of(0xffffff7fbfdfeff0ull), &word), 0);
	assert_true(word == 0x1001);
	assert_int_equal(uni_as_stats(w.as)->table_loads, 4);
	walk_close(&w);
}

static void tables_outside_memory_fault(void **state)
{
	struct walk w;
	uint64_t gpa, size;

	walk_open(&w);
	build(&w, &cases[0], 0x6001);
	guest_put64(&w.g, w.entry_at[1], 0xffffffffff001);
	assert_int_equal(translate(&w, HIGH, &gpa, &size), -UNI_EFAULT);
	build(&w, &cases[0], 0x6001);
	w.root.root.v = 0x9000;
	assert_int_equal(translate(&w, HIGH, &gpa, &size), -UNI_EFAULT);
	build(&w, &cases[0], 0x8000000006001ull);
	w.root.phys_mask = (1ull << 51) - 1;
	assert_int_equal(translate(&w, HIGH, &gpa, &size), -UNI_EFAULT);
	walk_close(&w);
}

static void modes_are_chosen(void **state)
{
	static const struct {
		uint64_t cr0, cr3, cr4, efer;
		const char *name; /* NULL: contradiction */
		uint64_t root;
	} t[] = {
		{ PE, 0x5000, PAE, LME, "x86 unpaged", 0 }, { 0, 0, 0, 0, "x86 unpaged", 0 },
		{ PG | PE, 0x12345fff, 0, 0, "x86 32-bit 2-level", 0x12345000 },
		{ PG | PE, 0x12345fff, PSE, 0, "x86 32-bit 2-level with 4 MiB pages", 0x12345000 },
		{ PG | PE, 0x12345fff, PSE | PAE, 0, "x86 PAE", 0x12345fe0 },
		{ PG | PE, 0x12345fff, PAE, LME | LMA, "x86_64 4-level", 0x12345000 },
		{ PG | PE, ~0ull, PAE | LA57, LME | LMA, "x86_64 5-level", ADDR_4K },
		{ PG, 0, PAE, LME | LMA, NULL, 0 },    /* paging without protection */
		{ PG | PE, 0, 0, LME | LMA, NULL, 0 }, /* long mode without PAE */
		{ PG | PE, 0, PAE, LMA, NULL, 0 },     /* active but not enabled */
		{ PG | PE, 0, PAE, LME, NULL, 0 },     /* paging on, enabled, not active */
	};
	struct uni_pt_root root;
	struct uni_regs regs;

	for (size_t i = 0; i < uni_array_len(t); i++) {
		regs = sys(t[i].cr0, t[i].cr3, t[i].cr4, t[i].efer);
		assert_int_equal(
			uni_arch_x86_64.paging(&regs, &root), t[i].name == NULL ? -UNI_EINVAL : 0);
		if (t[i].name == NULL)
			continue;
		assert_string_equal(root.geometry->name, t[i].name);
		assert_true(root.root.v == t[i].root);
	}
	regs = sys(PG | PE, 0, PAE, 0);
	regs.sys_valid &= (uint8_t) ~(1u << UNI_X86_EFER); /* a stub that does not tell */
	assert_int_equal(uni_arch_x86_64.paging(&regs, &root), 0);
	assert_string_equal(root.geometry->name, "x86_64 4-level");
	regs.sys_valid &= (uint8_t) ~(1u << UNI_X86_CR3);
	assert_int_equal(uni_arch_x86_64.paging(&regs, &root), -UNI_EINVAL);
	regs.sys_valid = 0;
	assert_int_equal(uni_arch_x86_64.paging(&regs, &root), -UNI_EINVAL);
}

/* Bit 63 is reserved while EFER.NXE is 0, at every level. */
static void nx_needs_nxe(void **state)
{
	struct walk w;
	uint64_t gpa, size;

	walk_open(&w);
	for (unsigned level = 0; level < 4; level++) {
		for (unsigned nxe = 0; nxe < 2; nxe++) {
			struct leaf_case c = cases[0];

			c.efer = LME | LMA | (nxe ? NXE : 0);
			build(&w, &c, 0x6001);
			w.g.ram[w.entry_at[level] + 7] |= 0x80;
			assert_int_equal(translate(&w, c.va, &gpa, &size), nxe ? 0 : -UNI_EFAULT);
			assert_int_equal(uni_as_check_exec(w.as, uni_gva_of(c.va)), -UNI_EFAULT);
			w.g.ram[w.entry_at[level] + 7] &= 0x7f;
			assert_int_equal(translate(&w, c.va, &gpa, &size), 0);
			assert_int_equal(uni_as_check_exec(w.as, uni_gva_of(c.va)), 0);
		}
	}
	walk_close(&w);
}

static void unpaged_is_flat(void **state)
{
	struct uni_regs regs = sys(PE, 0x1000, 0, 0);
	struct walk w;
	uint64_t gpa, size;

	walk_open(&w);
	assert_int_equal(uni_arch_x86_64.paging(&regs, &w.root), 0);
	assert_int_equal(translate(&w, 0xffffffff, &gpa, &size), 0);
	assert_true(gpa == 0xffffffff);
	assert_int_equal(translate(&w, 0x100000000, &gpa, &size), -UNI_EFAULT);
	walk_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_bit_of_each_leaf),
		cmocka_unit_test(each_bit_of_each_table_entry),
		cmocka_unit_test(addresses_are_canonical),
		cmocka_unit_test(tables_may_point_at_themselves),
		cmocka_unit_test(tables_outside_memory_fault),
		cmocka_unit_test(modes_are_chosen),
		cmocka_unit_test(nx_needs_nxe),
		cmocka_unit_test(unpaged_is_flat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
