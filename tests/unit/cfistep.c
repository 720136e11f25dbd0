/* SPDX-License-Identifier: BSD-2-Clause */
/* Stepping by unwind rows made by hand, expressions, mixed chains, and the scan for the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/cfiguest.h"
#include "unwind/expr.h"

static void by_rows(void **state)
{
	struct fixture f;
	uint64_t a, b;

	open_fixture(&f);
	a = ret_into(&f, BY_FP, BY_SP);
	b = ret_into(&f, OUTER, BY_FP);
	word(&f, 24, a);
	word(&f, 16, STACK + 64); /* rbp of BY_FP */
	word(&f, 64, 0x1234);
	word(&f, 72, b);
	unwind(&f, FN(BY_SP) + 0x80);
	expect(&f, UNI_STOP_ROOT, 3, FN(BY_SP) + 0x80, EXACT, a, 0, b, 0);
	assert_int_equal(f.chain.sp[0], STACK);
	assert_int_equal(f.chain.sp[1], STACK + 32);
	assert_int_equal(f.chain.sp[2], STACK + 80);
	/* A call that never returns may be a function's last instruction. */
	word(&f, 24, FN(BY_FP) + 0x100);
	unwind(&f, FN(BY_SP));
	expect(&f, UNI_STOP_ROOT, 3, FN(BY_SP), EXACT, FN(BY_FP) + 0x100, 0, b, 0);
	word(&f, 72, 0);
	unwind(&f, FN(BY_SP));
	expect(&f, UNI_STOP_ROOT, 2, FN(BY_SP), EXACT, FN(BY_FP) + 0x100, 0);
	close_fixture(&f);
}

static void interrupted(void **state)
{
	struct fixture f;
	uint64_t b;

	open_fixture(&f);
	b = ret_into(&f, OUTER, BY_SP);
	word(&f, 0, FN(BY_SP)); /* the first byte: one less would be another function */
	word(&f, 24, STACK + 128);
	word(&f, 128 + 24, b);
	unwind(&f, FN(SIGNAL) + 1);
	expect(&f, UNI_STOP_ROOT, 3, FN(SIGNAL) + 1, EXACT, FN(BY_SP), EXACT, b, 0);
	/* On a stack below this one, and with r10 where the interrupted function needs it. */
	f.regs.sp = STACK + 0x4000;
	word(&f, 0x4000, FN(BY_R10) + 5);
	word(&f, 0x4000 + 24, STACK + 16);
	word(&f, 0x4000 - 8, STACK + 0x100);
	word(&f, 0xf8, b);
	unwind(&f, FN(SIGNAL_ELSEWHERE));
	expect(&f, UNI_STOP_ROOT, 3, FN(SIGNAL_ELSEWHERE), EXACT, FN(BY_R10) + 5, EXACT, b, 0);
	close_fixture(&f);
}

/* A function on a lower stack called this one, and kept that stack's pointer in r10. */
static void caller_on_a_lower_stack(void **state)
{
	struct fixture f;
	uint64_t a, b;

	open_fixture(&f);
	a = ret_into(&f, BY_R10, BY_FP);
	b = ret_into(&f, OUTER, BY_R10);
	f.regs.sp = STACK + 0x4000;
	uni_regs_set(&f.regs, UNI_X86_RBP, STACK + 0x4040);
	uni_regs_set(&f.regs, UNI_X86_R10, STACK + 0x100);
	word(&f, 0x4048, a);
	word(&f, 0xf8, b);
	unwind(&f, FN(BY_FP) + 0x80);
	expect(&f, UNI_STOP_ROOT, 3, FN(BY_FP) + 0x80, EXACT, a, 0, b, 0);
	assert_int_equal(f.chain.sp[1], STACK + 0x4050);
	assert_int_equal(f.chain.sp[2], STACK + 0x100);
	/* Each of the two is the other's caller. */
	word(&f, 0x4040, STACK + 0x4040);
	word(&f, 0xf8, ret_into(&f, BY_FP, BY_R10));
	assert_int_equal(uni_unwinder_use(&f.u, "cfi", NULL), 0);
	unwind(&f, FN(BY_FP) + 0x80);
	assert_int_equal(f.chain.stop, UNI_STOP_LOOP);
	assert_in_range(f.chain.nr, 3, 8);
	close_fixture(&f);
}

static void interrupts_for_ever(void **state)
{
	struct fixture f;

	open_fixture(&f);
	word(&f, 0, FN(SIGNAL));
	word(&f, 24, STACK);
	assert_int_equal(uni_unwinder_use(&f.u, "cfi", NULL), 0);
	unwind(&f, FN(SIGNAL));
	assert_int_equal(f.chain.stop, UNI_STOP_LOOP);
	assert_in_range(f.chain.nr, 1, 12);
	close_fixture(&f);
}

static void expressions_in_rules(void **state)
{
	struct fixture f;
	uint64_t b;

	open_fixture(&f);
	b = ret_into(&f, OUTER, BY_EXPR);
	uni_regs_set(&f.regs, UNI_X86_RBP, STACK + 8);
	word(&f, 0, STACK + 64);
	word(&f, 56, b);
	unwind(&f, FN(BY_EXPR));
	expect(&f, UNI_STOP_ROOT, 2, FN(BY_EXPR), EXACT, b, 0);
	uni_regs_set(&f.regs, UNI_X86_RBP, 8); /* no such address: b on this stack is no caller */
	unwind(&f, FN(BY_EXPR));
	expect(&f, UNI_STOP_FAULT, 1, FN(BY_EXPR), EXACT);
	close_fixture(&f);
}

/* Rows here, a frame pointer there, rows again. */
static void mixed_chain(void **state)
{
	struct fixture f;
	uint64_t a, b, c;

	open_fixture(&f);
	a = ret_into(&f, PLAIN, BY_SP);
	b = ret_into(&f, BY_SP, PLAIN);
	c = ret_into(&f, OUTER, BY_SP);
	word(&f, 24, a);
	word(&f, 16, STACK + 64); /* rbp of PLAIN */
	word(&f, 64, 0x1234);
	word(&f, 72, b);
	word(&f, 80 + 24, c);
	unwind(&f, FN(BY_SP) + 0x80);
	expect(&f, UNI_STOP_ROOT, 4, FN(BY_SP) + 0x80, EXACT, a, 0, b, 0, c, 0);
	/* A word that no call left is not believed; the scan finds the true one above it. */
	word(&f, 72, FN(BY_SP) + 0x77);
	word(&f, 88, b);
	word(&f, 96 + 24, c);
	unwind(&f, FN(BY_SP) + 0x80);
	expect(&f, UNI_STOP_ROOT, 4, FN(BY_SP) + 0x80, EXACT, a, 0, b, GUESS, c, GUESS);
	close_fixture(&f);
}

static void scanning(void **state)
{
	struct fixture f;
	uint64_t stale, b, p;

	open_fixture(&f);
	stale = ret_into(&f, BY_SP, BY_FP);
	b = ret_into(&f, OUTER, PLAIN);
	assert_int_equal(uni_unwinder_use(&f.u, "scan", NULL), 0);
	f.func[OUTER].flags |= UNI_FUNC_ENTRY;
	uni_regs_set(&f.regs, UNI_X86_RBP, 0x33);
	/* The caller of this function goes before callers of others; numbers are no addresses. */
	word(&f, 0, FN(PLAIN) + 3);
	word(&f, 8, stale);
	word(&f, 40, b);
	unwind(&f, FN(PLAIN) + 0x80);
	expect(&f, UNI_STOP_ROOT, 2, FN(PLAIN) + 0x80, EXACT, b, GUESS);
	/* Through a pointer: call *%rax. */
	p = FN(OUTER) + 0xf0;
	guest_put(&f.g, p - 2, 0xd0ff, 2);
	word(&f, 8, 0);
	word(&f, 40, p);
	unwind(&f, FN(PLAIN) + 0x80);
	expect(&f, UNI_STOP_ROOT, 2, FN(PLAIN) + 0x80, EXACT, p, GUESS);
	/* No call leads into the middle of a function, or out of the code. */
	for (unsigned i = 0; i < 2; i++) {
		p = FN(OUTER) + 0xe0;
		guest_put(&f.g, p - 5, 0xe8, 1);
		guest_put(&f.g, p - 4, (i == 0 ? FN(PLAIN) + 0x10 : FN(NR) + 0x1000) - p, 4);
		word(&f, 40, p);
		unwind(&f, FN(PLAIN) + 0x80);
		expect(&f, UNI_STOP_BADPC, 1, FN(PLAIN) + 0x80, EXACT);
	}
	/* Not further than 4 KiB. */
	word(&f, 40, 0);
	word(&f, 4096, b);
	unwind(&f, FN(PLAIN) + 0x80);
	expect(&f, UNI_STOP_BADPC, 1, FN(PLAIN) + 0x80, EXACT);
	word(&f, 4088, b);
	unwind(&f, FN(PLAIN) + 0x80);
	expect(&f, UNI_STOP_ROOT, 2, FN(PLAIN) + 0x80, EXACT, b, GUESS);
	/* A few words below the end of what is mapped, where shallow stacks are. */
	f.regs.sp = BASE + SIZE - 24;
	guest_put64(&f.g, BASE + SIZE - 16, b);
	unwind(&f, FN(PLAIN) + 0x80);
	expect(&f, UNI_STOP_ROOT, 2, FN(PLAIN) + 0x80, EXACT, b, GUESS);
	close_fixture(&f);
}

/* Rows lead to no code. Guesses go on to a root, but the chain is not complete. */
static void rows_lead_astray(void **state)
{
	struct fixture f;
	uint64_t b;

	open_fixture(&f);
	b = ret_into(&f, OUTER, BY_SP);
	word(&f, 24, BASE + SIZE + 16);
	word(&f, 40, b);
	unwind(&f, FN(BY_SP) + 0x80);
	expect(&f, UNI_STOP_BADPC, 2, FN(BY_SP) + 0x80, EXACT, b, GUESS);
	word(&f, 24, b);
	unwind(&f, FN(BY_SP) + 0x80);
	expect(&f, UNI_STOP_ROOT, 2, FN(BY_SP) + 0x80, EXACT, b, 0);
	close_fixture(&f);
}

static void broken_chains(void **state)
{
	struct fixture f;

	open_fixture(&f);
	assert_int_equal(uni_unwinder_use(&f.u, "cfi,fp", NULL), 0);
	uni_regs_set(&f.regs, UNI_X86_RBP, STACK);
	word(&f, 0, STACK); /* its own caller */
	word(&f, 8, FN(BY_FP) + 9);
	unwind(&f, FN(BY_FP));
	expect(&f, UNI_STOP_LOOP, 2, FN(BY_FP), EXACT, FN(BY_FP) + 9, 0);
	uni_regs_set(&f.regs, UNI_X86_RBP, BASE + SIZE);
	unwind(&f, FN(BY_FP));
	expect(&f, UNI_STOP_FAULT, 1, FN(BY_FP), EXACT);
	unwind(&f, FN(BY_R10)); /* a register that is not known */
	assert_int_equal(f.chain.nr, 1);
	f.g.gone_at = 1;
	uni_regs_set(&f.regs, UNI_X86_RBP, STACK);
	unwind(&f, FN(BY_FP));
	expect(&f, UNI_STOP_GONE, 1, FN(BY_FP), EXACT);
	close_fixture(&f);
}

/* The value of up to 8 operations; 0xdead if they have none. */
static uint64_t eval(struct fixture *f, const struct uni_cfi_op *op, const uint64_t *cfa)
{
	struct uni_cfi_table t = table;
	uint64_t v;

	t.op = op;
	return uni_cfi_eval(&t, 0, &uni_arch_x86_64, f->as, &f->regs, cfa, &v) == 0 ? v : 0xdead;
}

static void operators(void **state)
{
	static const struct {
		uint32_t opcode;
		int64_t a, b;
		uint64_t want;
	} tab[] = { { UNI_CFI_OP_ADD, 5, -7, (uint64_t)-2 }, { UNI_CFI_OP_SUB, 5, 7, (uint64_t)-2 },
		{ UNI_CFI_OP_MUL, -3, 7, (uint64_t)-21 }, { UNI_CFI_OP_DIV, -21, 4, (uint64_t)-5 },
		{ UNI_CFI_OP_DIV, INT64_MIN, -1, 1ull << 63 }, { UNI_CFI_OP_DIV, 1, 0, 0xdead },
		{ UNI_CFI_OP_MOD, 21, 4, 1 }, { UNI_CFI_OP_MOD, 21, 0, 0xdead },
		{ UNI_CFI_OP_AND, 12, 10, 8 }, { UNI_CFI_OP_OR, 12, 10, 14 },
		{ UNI_CFI_OP_XOR, 12, 10, 6 }, { UNI_CFI_OP_SHL, 1, 63, 1ull << 63 },
		{ UNI_CFI_OP_SHL, 1, 64, 0 }, { UNI_CFI_OP_SHR, -1, 60, 15 },
		{ UNI_CFI_OP_SHR, -1, 64, 0 }, { UNI_CFI_OP_SHRA, -16, 2, (uint64_t)-4 },
		{ UNI_CFI_OP_SHRA, -16, 99, UINT64_MAX }, { UNI_CFI_OP_SHRA, 16, 0, 16 },
		{ UNI_CFI_OP_EQ, 3, 3, 1 }, { UNI_CFI_OP_NE, 3, 3, 0 }, { UNI_CFI_OP_GE, -1, 0, 0 },
		{ UNI_CFI_OP_GT, 1, 0, 1 }, { UNI_CFI_OP_LE, -1, 0, 1 }, { UNI_CFI_OP_LT, 1, 1, 0 },
		{ UNI_CFI_OP_SWAP, 1, 2, 1 }, { UNI_CFI_OP_DROP, 1, 2, 1 } };
	struct fixture f;

	open_fixture(&f);
	for (size_t i = 0; i < uni_array_len(tab); i++) {
		const struct uni_cfi_op op[] = { { .opcode = UNI_CFI_OP_CONST, .arg = tab[i].a },
			{ .opcode = UNI_CFI_OP_CONST, .arg = tab[i].b },
			{ .opcode = tab[i].opcode }, { .opcode = UNI_CFI_OP_END } };

		assert_true(eval(&f, op, NULL) == tab[i].want);
		assert_true(eval(&f, op + 2, NULL) == 0xdead); /* nothing on the stack */
	}
	close_fixture(&f);
}

static void operators_of_one(void **state)
{
	static const struct {
		uint32_t opcode;
		int64_t a, arg;
		uint64_t want;
	} tab[] = { { UNI_CFI_OP_ABS, -5, 0, 5 }, { UNI_CFI_OP_ABS, 5, 0, 5 },
		{ UNI_CFI_OP_ABS, INT64_MIN, 0, 1ull << 63 },
		{ UNI_CFI_OP_NEG, 5, 0, (uint64_t)-5 }, { UNI_CFI_OP_NEG, -5, 0, 5 },
		{ UNI_CFI_OP_NOT, 5, 0, (uint64_t)-6 },
		{ UNI_CFI_OP_ADD_CONST, 5, -7, (uint64_t)-2 } };
	struct fixture f;

	open_fixture(&f);
	for (size_t i = 0; i < uni_array_len(tab); i++) {
		const struct uni_cfi_op op[] = { { .opcode = UNI_CFI_OP_CONST, .arg = tab[i].a },
			{ .opcode = tab[i].opcode, .arg = tab[i].arg },
			{ .opcode = UNI_CFI_OP_END } };

		assert_true(eval(&f, op, NULL) == tab[i].want);
		assert_true(eval(&f, op + 1, NULL) == 0xdead);
	}
	close_fixture(&f);
}

/* An operation that wants more than there is has no value, nor has one of a newer version. */
static void too_few_operands(void **state)
{
	static const struct {
		uint32_t opcode;
		unsigned wants;
	} tab[] = { { UNI_CFI_OP_END, 1 }, { UNI_CFI_OP_LOAD, 1 }, { UNI_CFI_OP_BRANCH, 1 },
		{ UNI_CFI_OP_DROP, 1 }, { UNI_CFI_OP_SWAP, 2 }, { UNI_CFI_OP_ROT, 3 },
		{ UNI_CFI_OP_ADD, 2 }, { UINT32_MAX, 4 } };
	struct uni_cfi_op op[6];
	struct fixture f;

	open_fixture(&f);
	for (size_t i = 0; i < uni_array_len(tab); i++) {
		for (unsigned nr = 0; nr < tab[i].wants; nr++) {
			for (unsigned k = 0; k < nr; k++)
				op[k] = (struct uni_cfi_op){ .opcode = UNI_CFI_OP_CONST, .arg = 1 };
			op[nr] = (struct uni_cfi_op){ .opcode = tab[i].opcode, .arg = 1 };
			op[nr + 1] = (struct uni_cfi_op){ .opcode = UNI_CFI_OP_END };
			assert_true(eval(&f, op, NULL) == 0xdead);
		}
	}
	close_fixture(&f);
}

/* rsp + 8 + ((rip & 15) >= 11) * 8: what linkers write for procedure linkage tables. */
static void linkage_table(void **state)
{
	static const struct uni_cfi_op op[] = {
		{ .opcode = UNI_CFI_OP_REG, .arg2 = UNI_X86_RSP, .arg = 8 },
		{ .opcode = UNI_CFI_OP_REG, .arg2 = UNI_X86_RIP },
		{ .opcode = UNI_CFI_OP_CONST, .arg = 15 },
		{ .opcode = UNI_CFI_OP_AND },
		{ .opcode = UNI_CFI_OP_CONST, .arg = 11 },
		{ .opcode = UNI_CFI_OP_GE },
		{ .opcode = UNI_CFI_OP_CONST, .arg = 3 },
		{ .opcode = UNI_CFI_OP_SHL },
		{ .opcode = UNI_CFI_OP_ADD },
		{ .opcode = UNI_CFI_OP_END },
	};
	struct fixture f;

	open_fixture(&f);
	f.regs.pc = BASE + 10;
	assert_true(eval(&f, op, NULL) == STACK + 8);
	f.regs.pc = BASE + 11;
	assert_true(eval(&f, op, NULL) == STACK + 16);
	close_fixture(&f);
}

static void expressions_end(void **state)
{
	static const struct uni_cfi_op loop[] = { { .opcode = UNI_CFI_OP_SKIP, .arg = 0 } };
	static const struct uni_cfi_op grow[] = { { .opcode = UNI_CFI_OP_PICK },
		{ .opcode = UNI_CFI_OP_SKIP, .arg = 0 } };
	/* Counts the CFA down to 0, and then takes what lies below it. */
	static const struct uni_cfi_op count[] = { { .opcode = UNI_CFI_OP_ADD_CONST, .arg = -1 },
		{ .opcode = UNI_CFI_OP_PICK }, { .opcode = UNI_CFI_OP_BRANCH, .arg = 0 },
		{ .opcode = UNI_CFI_OP_END } };
	static const struct uni_cfi_op rot[] = { { .opcode = UNI_CFI_OP_CONST, .arg = 2 },
		{ .opcode = UNI_CFI_OP_CONST, .arg = 3 }, { .opcode = UNI_CFI_OP_ROT },
		{ .opcode = UNI_CFI_OP_END } };
	static const struct uni_cfi_op load[] = { { .opcode = UNI_CFI_OP_LOAD, .arg = 2 },
		{ .opcode = UNI_CFI_OP_END } };
	const uint64_t few = 30, many = 300, here = STACK;
	struct fixture f;

	open_fixture(&f);
	word(&f, 0, 0x123456789);
	assert_true(eval(&f, loop, NULL) == 0xdead);
	assert_true(eval(&f, grow, &few) == 0xdead);
	assert_true(eval(&f, count, &few) == 0);
	assert_true(eval(&f, count, &many) == 0xdead);
	assert_true(eval(&f, rot, &few) == 2);
	assert_true(eval(&f, load, &here) == 0x6789);
	close_fixture(&f);
}

static void choosing_steppers(void **state)
{
	static const char *const bad[] = { "", "cfi,", ",fp", "fp,fp", "dwarf", "cfi,fp,scan,fp" };
	struct uni_unwinder u;

	uni_unwinder_init(&u, &uni_arch_x86_64, NULL);
	for (size_t i = 0; i < uni_array_len(bad); i++) {
		struct uni_err err = { 0 };

		assert_int_equal(uni_unwinder_use(&u, bad[i], &err), -UNI_EUSAGE);
		assert_ptr_equal(u.stepper[0].ops, &uni_unwind_cfi);
		assert_ptr_equal(u.stepper[2].ops, &uni_unwind_scan);
	}
	assert_int_equal(uni_unwinder_use(&u, "scan,fp", NULL), 0);
	assert_ptr_equal(u.stepper[0].ops, &uni_unwind_scan);
	assert_ptr_equal(u.stepper[1].ops, &uni_unwind_fp);
	assert_null(u.stepper[2].ops);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_rows),
		cmocka_unit_test(interrupted),
		cmocka_unit_test(caller_on_a_lower_stack),
		cmocka_unit_test(interrupts_for_ever),
		cmocka_unit_test(expressions_in_rules),
		cmocka_unit_test(mixed_chain),
		cmocka_unit_test(scanning),
		cmocka_unit_test(rows_lead_astray),
		cmocka_unit_test(broken_chains),
		cmocka_unit_test(operators),
		cmocka_unit_test(operators_of_one),
		cmocka_unit_test(too_few_operands),
		cmocka_unit_test(linkage_table),
		cmocka_unit_test(expressions_end),
		cmocka_unit_test(choosing_steppers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
