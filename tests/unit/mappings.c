/* SPDX-License-Identifier: BSD-2-Clause */
/* uni_as_next(): all that page tables map, in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/tables.h"
#include "base/checked.h"
#include "mem/as.h"

static const struct uni_as_budget enough = { .bytes = 1u << 24, .table_loads = 1u << 20 };

struct world {
	struct guest g;
	struct tables t;
	struct uni_pt_root root;
	struct uni_as *as;
};

static void open_world(struct world *w, const struct uni_as_budget *budget)
{
	struct uni_regs regs = made_regs();

	assert_true(guest_init(&w->g, 0, 0x40000, UNI_GMEM_PHYSICAL));
	w->t = (struct tables){ .g = &w->g, .next = 0x2000 };
	assert_int_equal(uni_arch_x86_64.paging(&regs, &w->root), 0);
	assert_int_equal(uni_as_create(w->g.m, budget, &w->as, NULL), 0);
}

static void close_world(struct world *w)
{
	uni_as_destroy(w->as);
	guest_deinit(&w->g);
}

static void expect(struct world *w, uint64_t from, const struct uni_mapping *want)
{
	struct uni_mapping m;

	uni_as_begin(w->as, &w->root);
	assert_int_equal(uni_as_next(w->as, uni_gva_of(from), &m), 0);
	assert_int_equal(m.gva.v, want->gva.v);
	assert_int_equal(m.gpa.v, want->gpa.v);
	assert_int_equal(m.size, want->size);
	assert_int_equal(m.exec, want->exec);
}

static void test_order(void **state)
{
	static const struct uni_mapping want[] = {
		{ { 0 }, { 0x5000 }, 0x1000, true },
		{ { 0x7fffff000 }, { 0x6000 }, 0x1000, true },
		{ { 0x00007fffffe00000 }, { 0x200000 }, 0x200000, false },
		{ { 0xffff800000000000 }, { 0x40000000 }, 0x40000000, true },
		{ { 0xfffffffffffff000 }, { 0x7000 }, 0x1000, false },
	};
	struct uni_mapping m;
	struct world w;
	uint64_t next = 0;

	open_world(&w, &enough);
	made_map(&w.t, 0, 0x5000, 12, 0);
	made_map(&w.t, 0x7fffff000, 0x6000, 12, 0);
	made_map(&w.t, 0x00007fffffe00000, 0x200000, 21, MADE_NX);
	made_map(&w.t, 0xffff800000000000, 0x40000000, 30, 0);
	made_map(&w.t, 0xfffffffffffff000, 0x7000, 12, MADE_NX);
	for (size_t i = 0; i < uni_array_len(want); i++) {
		expect(&w, next, &want[i]);
		next = want[i].gva.v + want[i].size;
	}
	assert_int_equal(next, 0); /* ended exactly at the top */
	/* From inside a leaf: the rest of it. */
	expect(&w, 0xffff800000001fff,
		&(struct uni_mapping){ { 0xffff800000001000 }, { 0x40001000 }, 0x3ffff000, true });
	/* From an address that cannot exist. */
	expect(&w, 0x1234000000000000, &want[3]);
	guest_put64(&w.g, MADE_ROOT + 8 * 511, 0);
	uni_as_begin(w.as, &w.root);
	assert_int_equal(uni_as_next(w.as, uni_gva_of(0xffff800040000000), &m), -UNI_ENOENT);
	close_world(&w);
}

/* NX in a table's entry holds for all below it. */
static void test_no_exec_above(void **state)
{
	struct world w;
	uint64_t entry;

	open_world(&w, &enough);
	made_map(&w.t, 0x400000, 0x5000, 12, 0);
	memcpy(&entry, w.g.ram + MADE_ROOT, 8);
	guest_put64(&w.g, MADE_ROOT, entry | MADE_NX);
	expect(&w, 0, &(struct uni_mapping){ { 0x400000 }, { 0x5000 }, 0x1000, false });
	close_world(&w);
}

static bool is_over(void *ctx)
{
	return true;
}

/* Tables that lead to themselves map for ever: the budget ends it, or whoever knows that the guest
 * has ended. */
static void walk_endless(const struct uni_as_budget *budget)
{
	struct uni_mapping m;
	struct world w;
	uint64_t next = 0;
	unsigned n = 0;
	int rc;

	open_world(&w, budget);
	for (unsigned i = 0; i < 512; i++)
		guest_put64(&w.g, MADE_ROOT + 8 * i, MADE_ROOT | 3);
	uni_as_begin(w.as, &w.root);
	while ((rc = uni_as_next(w.as, uni_gva_of(next), &m)) == 0 && n++ < 100000)
		next = m.gva.v + m.size;
	assert_int_equal(rc, -UNI_EBUDGET);
	assert_int_equal(uni_as_stats(w.as)->table_loads,
		budget->over != NULL ? UNI_AS_ASK : budget->table_loads);
	close_world(&w);
}

static void test_endless(void **state)
{
	struct uni_as_budget budget = { .bytes = 1 << 20, .table_loads = 10000 };

	walk_endless(&budget);
	budget.over = is_over;
	walk_endless(&budget);
}

static void test_nothing(void **state)
{
	const struct uni_pt_root *none = NULL;
	struct uni_mapping m;
	struct world w;

	open_world(&w, &enough);
	uni_as_begin(w.as, &w.root);
	assert_int_equal(uni_as_next(w.as, uni_gva_of(0), &m), -UNI_ENOENT);
	uni_as_begin(w.as, none); /* no tables to tell */
	assert_int_equal(uni_as_next(w.as, uni_gva_of(0), &m), -UNI_ENOENT);
	close_world(&w);
}

/* 32 bits end where they end. */
static void test_pae(void **state)
{
	struct uni_regs regs = made_regs();
	struct uni_mapping m;
	struct world w;

	open_world(&w, &enough);
	uni_regs_set_sys(&regs, UNI_X86_EFER, 0x800);
	assert_int_equal(uni_arch_x86_64.paging(&regs, &w.root), 0);
	guest_put64(&w.g, MADE_ROOT + 8 * 3, 0x2001);
	guest_put64(&w.g, 0x2000 + 8 * 511, 0x200083 | MADE_NX);
	uni_as_begin(w.as, &w.root);
	assert_int_equal(uni_as_next(w.as, uni_gva_of(0x1000), &m), 0);
	assert_int_equal(m.gva.v, 0xffe00000);
	assert_int_equal(m.size, 0x200000);
	assert_false(m.exec);
	assert_int_equal(uni_as_next(w.as, uni_gva_of(0x100000000), &m), -UNI_ENOENT);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_no_exec_above),
		cmocka_unit_test(test_endless),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_pae),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
