/* SPDX-License-Identifier: BSD-2-Clause */
/* A guest of a few functions with unwind rows made by hand. Include it behind cmocka.h. */
#ifndef UNI_TESTS_CFIGUEST_H
#define UNI_TESTS_CFIGUEST_H

#include <string.h>

#include "guest.h"
#include "arch/cfi.h"
#include "base/checked.h"
#include "unwind/unwind.h"

#define BASE  0x100000ull
#define SIZE  (1u << 17)
#define STACK (BASE + 0x10000)
#define FN(i) (BASE + 0x100u * (i))

/* Functions of 0x100 bytes each; PLAIN has no rows. */
enum { OUTER, BY_SP, BY_FP, SIGNAL, SIGNAL_ELSEWHERE, BY_EXPR, PLAIN, BY_R10, POPPED, TAKES, NR };

#define CFA(reg_, arg_)                                          \
	{                                                        \
		.how = UNI_CFI_REG, .reg = (reg_), .arg = (arg_) \
	}
#define AT(arg_)                                     \
	{                                            \
		.how = UNI_CFI_AT_CFA, .arg = (arg_) \
	}
#define SAME                        \
	{                           \
		.how = UNI_CFI_SAME \
	}

static const struct uni_cfi_rule rules[] = {
	{ .cfa.how = UNI_CFI_NONE },
	[OUTER + 1] = { .cfa = CFA(UNI_X86_RSP, 8) }, /* return address lost: the root */
	[BY_SP + 1] = { .cfa = CFA(UNI_X86_RSP, 32), .ra = AT(-8), .fp = AT(-16) },
	[BY_FP + 1] = { .cfa = CFA(UNI_X86_RBP, 16), .ra = AT(-8), .fp = AT(-16) },
	[SIGNAL + 1] = { .cfa = CFA(UNI_X86_RSP, 40),
		.ra = AT(-40),
		.fp = SAME,
		.other = 0,
		.nr_other = 1,
		.flags = UNI_CFI_SIGNAL },
	[SIGNAL_ELSEWHERE + 1] = { .cfa = CFA(UNI_X86_RSP, 40),
		.ra = AT(-40),
		.fp = SAME,
		.other = 0,
		.nr_other = 2,
		.flags = UNI_CFI_SIGNAL },
	[BY_EXPR + 1] = { .cfa = { .how = UNI_CFI_IS_EXPR, .arg = 0 },
		.ra = { .how = UNI_CFI_AT_EXPR, .arg = 3 },
		.fp = { .how = UNI_CFI_IS_EXPR, .arg = 5 } },
	[BY_R10 + 1] = { .cfa = CFA(UNI_X86_R10, 0), .ra = AT(-8), .fp = SAME },
	[POPPED + 1] = { .cfa = CFA(UNI_X86_RSP, 0), .ra = AT(-8), .fp = SAME },
	[TAKES + 1] = { .cfa = CFA(UNI_X86_RSP, 8),
		.ra = AT(-8),
		.fp = SAME,
		.flags = UNI_CFI_TAKES_STACK },
};

static const struct uni_cfi_val others[] = {
	{ .how = UNI_CFI_AT_CFA, .arg = -16, .of = UNI_X86_RSP },
	{ .how = UNI_CFI_AT_CFA, .arg = -48, .of = UNI_X86_R10 },
};

static const struct uni_cfi_op ops[] = {
	/* [rbp - 8] */
	{ .opcode = UNI_CFI_OP_REG, .arg2 = UNI_X86_RBP, .arg = -8 },
	{ .opcode = UNI_CFI_OP_LOAD, .arg = 8 },
	{ .opcode = UNI_CFI_OP_END },
	/* CFA - 8 */
	{ .opcode = UNI_CFI_OP_ADD_CONST, .arg = -8 },
	{ .opcode = UNI_CFI_OP_END },
	/* the CFA itself */
	{ .opcode = UNI_CFI_OP_END },
};

static const struct uni_cfi_row rows[] = { { 0, OUTER + 1 }, { 0x100, BY_SP + 1 },
	{ 0x200, BY_FP + 1 }, { 0x300, SIGNAL + 1 }, { 0x400, SIGNAL_ELSEWHERE + 1 },
	{ 0x500, BY_EXPR + 1 }, { 0x600, 0 }, { 0x700, BY_R10 + 1 }, { 0x800, POPPED + 1 },
	{ 0x900, TAKES + 1 }, { 0xa00, 0 } };
static const uint32_t bucket[] = { 0, 4, 8 };

static const struct uni_cfi_table table = { .base = BASE,
	.row = rows,
	.bucket = bucket,
	.rule = rules,
	.other = others,
	.op = ops,
	.nr_rows = uni_array_len(rows),
	.nr_buckets = 3,
	.nr_rules = uni_array_len(rules),
	.nr_others = 2,
	.nr_ops = uni_array_len(ops),
	.size = 0xa00,
	.shift = 10,
	.regs = 1u << UNI_X86_R10 | 1u << UNI_X86_R13 };

struct fixture {
	struct guest g;
	struct uni_as *as;
	struct uni_unwinder u;
	struct uni_func_hint func[NR];
	struct uni_unwind_hints hints;
	struct uni_regs regs;
	struct uni_chain chain;
};

static inline void open_fixture(struct fixture *f)
{
	struct uni_as_budget budget = uni_as_budget_default;

	memset(f, 0, sizeof(*f));
	budget.wall_ns = 0;
	assert_true(guest_init(&f->g, BASE, SIZE, UNI_GMEM_VIRTUAL));
	for (unsigned i = 0; i < NR; i++)
		f->func[i] = (struct uni_func_hint){
			.start = FN(i), .size = 0x100, .flags = UNI_FUNC_FRAMELESS
		};
	f->hints = (struct uni_unwind_hints){ f->func, NR, BASE, NR * 0x100, &table };
	assert_int_equal(uni_as_create(f->g.m, &budget, &f->as, NULL), 0);
	uni_unwinder_init(&f->u, &uni_arch_x86_64, &f->hints);
	f->regs = (struct uni_regs){ .pc_valid = true, .sp_valid = true, .sp = STACK };
	uni_regs_set(&f->regs, UNI_X86_RBP, 0);
}

static inline void close_fixture(struct fixture *f)
{
	uni_as_destroy(f->as);
	guest_deinit(&f->g);
}

/* A return address into function i: behind a call of `callee`. */
static inline uint64_t ret_into(struct fixture *f, unsigned i, unsigned callee)
{
	uint64_t ret = FN(i) + 0x20 + 0x10 * callee;

	guest_put(&f->g, ret - 5, 0xe8, 1);
	guest_put(&f->g, ret - 4, FN(callee) - ret, 4);
	return ret;
}

static inline void word(struct fixture *f, int at, uint64_t v)
{
	guest_put64(&f->g, STACK + (uint64_t)(int64_t)at, v);
}

/* The short way through plain rules finds what the long one does, stack pointers included. */
static inline void unwind(struct fixture *f, uint64_t pc)
{
	struct uni_unwinder long_way = f->u;
	struct uni_unwinder_ops steps = *f->u.stepper[0].ops;
	struct uni_chain c = { 0 };

	f->regs.pc = pc;
	memset(&f->chain, 0, sizeof(f->chain));
	uni_unwind(&f->u, f->as, &f->regs, &f->chain);
	steps.run = NULL;
	long_way.stepper[0].ops = &steps;
	uni_unwind(&long_way, f->as, &f->regs, &c);
	assert_memory_equal(&c, &f->chain, sizeof(c));
}

static inline void expect(const struct fixture *f, enum uni_stop stop, unsigned nr, ...)
{
	va_list ap;

	assert_string_equal(uni_stop_name(f->chain.stop), uni_stop_name(stop));
	assert_int_equal(f->chain.nr, nr);
	va_start(ap, nr);
	for (unsigned i = 0; i < nr; i++) {
		assert_true(f->chain.pc[i] == va_arg(ap, uint64_t));
		assert_int_equal(f->chain.flags[i], va_arg(ap, int));
	}
	va_end(ap);
}

#define EXACT UNI_FRAME_EXACT
#define GUESS UNI_FRAME_GUESS

#endif
