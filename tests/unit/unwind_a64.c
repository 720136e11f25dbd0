/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../support/guest.h"
#include "base/checked.h"
#include "unwind/unwind.h"

#define TEXT  0x40100000ull
#define SIZE  (1u << 20)
#define STACK (TEXT + 0x80000)

/* Instructions, from the assembler. */
#define NOP	 0xd503201fu
#define PACIASP	 0xd503233fu
#define AUTIASP	 0xd50323bfu
#define STP_PRE	 0xa9be7bfdu /* stp x29, x30, [sp, #-32]! */
#define STP_SAVE 0xa90153f3u /* stp x19, x20, [sp, #16] */
#define SUB_SP	 0xd10083ffu /* sub sp, sp, #32 */
#define STP_OFF	 0xa9017bfdu /* stp x29, x30, [sp, #16] */
#define MOV_FP	 0x910003fdu /* mov x29, sp */
#define ADD_FP	 0x910043fdu /* add x29, sp, #16 */
#define LDP_POST 0xa8c27bfdu /* ldp x29, x30, [sp], #32 */
#define LDR_LR	 0xf84107feu /* ldr x30, [sp], #16 */
#define MOV_LR	 0xaa0303feu /* mov x30, x3 */
#define ADD	 0x8b000020u /* add x0, x1, x0 */
#define LDR	 0xf9400020u /* ldr x0, [x1] */
#define RET	 0xd65f03c0u
#define RETAA	 0xd65f0bffu
#define B	 0x14000002u
#define B_NE	 0x54000041u
#define CBZ	 0xb4000040u
#define BLR	 0xd63f0060u /* blr x3 */
#define BLRAAZ	 0xd63f087fu /* blraaz x3 */
#define BR	 0xd61f0060u

/* Functions of 0x100 bytes. */
enum { ENTRY, CALLER, FRAMED, LEAF, SHRINK, NR };

static uint64_t fn(unsigned i)
{
	return TEXT + i * 0x100;
}

static const uint64_t in_caller = TEXT + CALLER * 0x100 + 0x80;
static const uint64_t in_entry = TEXT + ENTRY * 0x100 + 0x80;

struct fixture {
	struct guest g;
	struct uni_as *as;
	struct uni_unwinder u;
	struct uni_func_hint func[NR];
	struct uni_unwind_hints hints;
	struct uni_regs regs;
	struct uni_chain chain;
};

static void put_code(struct fixture *f, uint64_t at, size_t n, const uint32_t *insn)
{
	for (size_t i = 0; i < n; i++)
		guest_put(&f->g, at + 4 * i, insn[i], 4);
}
#define PUT_CODE(f, at, ...) \
	put_code((f), (at), sizeof((uint32_t[]){ __VA_ARGS__ }) / 4, (uint32_t[]){ __VA_ARGS__ })

/* bl that returns to ret. */
static void put_call(struct fixture *f, uint64_t ret, uint64_t callee)
{
	guest_put(&f->g, ret - 4, 0x94000000u | ((callee - (ret - 4)) >> 2 & 0x3ffffff), 4);
}

static void put_record(struct fixture *f, uint64_t at, uint64_t next, uint64_t ret)
{
	guest_put64(&f->g, at, next);
	guest_put64(&f->g, at + 8, ret);
}

/* entry -> caller -> whatever: the caller's record at STACK + 0x100, entry's at + 0x200. */
static void open_fixture(struct fixture *f)
{
	struct uni_as_budget budget = uni_as_budget_default;

	budget.wall_ns = 0;
	memset(f, 0, sizeof(*f));
	assert_true(guest_init(&f->g, TEXT, SIZE, UNI_GMEM_VIRTUAL));
	for (unsigned i = 0; i < NR * 0x40; i++)
		guest_put(&f->g, TEXT + 4 * i, NOP, 4);
	for (unsigned i = 0; i < NR; i++)
		f->func[i] = (struct uni_func_hint){ .start = fn(i), .size = 0x100 };
	f->func[ENTRY].flags = UNI_FUNC_ENTRY;
	f->func[LEAF].flags = f->func[SHRINK].flags = UNI_FUNC_FRAMELESS;
	for (unsigned i = ENTRY; i <= FRAMED; i++)
		PUT_CODE(f, fn(i), PACIASP, STP_PRE, STP_SAVE, MOV_FP);
	put_call(f, in_entry, fn(CALLER));
	put_record(f, STACK + 0x100, STACK + 0x200, in_entry);
	f->hints = (struct uni_unwind_hints){ f->func, NR, TEXT, NR * 0x100 };
	assert_int_equal(uni_as_create(f->g.m, &budget, &f->as, NULL), 0);
	uni_unwinder_init(&f->u, &uni_arch_aarch64, &f->hints);
}

static void close_fixture(struct fixture *f)
{
	uni_as_destroy(f->as);
	guest_deinit(&f->g);
}

static void unwind(struct fixture *f, uint64_t pc, uint64_t fp, uint64_t lr)
{
	f->regs = (struct uni_regs){
		.pc = pc, .sp = STACK + 0x40, .pc_valid = true, .sp_valid = true
	};
	uni_regs_set(&f->regs, UNI_A64_FP, fp);
	uni_regs_set(&f->regs, UNI_A64_LR, lr);
	uni_unwind(&f->u, f->as, &f->regs, &f->chain);
}

static void expect(const struct fixture *f, enum uni_stop stop, unsigned nr, ...)
{
	va_list ap;

	assert_string_equal(uni_stop_name(f->chain.stop), uni_stop_name(stop));
	assert_int_equal(f->chain.nr, nr);
	va_start(ap, nr);
	for (unsigned i = 0; i < nr; i++)
		assert_true(f->chain.pc[i] == va_arg(ap, uint64_t));
	va_end(ap);
}

/* In the prologue x30 is the way out and x29 the caller's; then there is a record. */
static void each_instruction_of_a_prologue(void **state)
{
	struct fixture f;

	open_fixture(&f);
	put_call(&f, in_caller, fn(FRAMED));
	put_record(&f, STACK + 0x60, STACK + 0x100, in_caller);
	for (uint64_t at = fn(FRAMED); at <= fn(FRAMED) + 12; at += 4) {
		unwind(&f, at, STACK + 0x100, in_caller);
		expect(&f, UNI_STOP_ROOT, 3, at, in_caller, in_entry);
	}
	/* Behind it: x30 may be anything, such as what a call left. */
	unwind(&f, fn(FRAMED) + 16, STACK + 0x60, in_caller);
	expect(&f, UNI_STOP_ROOT, 3, fn(FRAMED) + 16, in_caller, in_entry);
	unwind(&f, fn(FRAMED) + 0x40, STACK + 0x60, fn(FRAMED) + 0x30);
	expect(&f, UNI_STOP_ROOT, 3, fn(FRAMED) + 0x40, in_caller, in_entry);
	close_fixture(&f);
}

static void each_instruction_of_an_epilogue(void **state)
{
	uint64_t at = fn(FRAMED) + 0x40;
	struct fixture f;

	open_fixture(&f);
	put_call(&f, in_caller, fn(FRAMED));
	put_record(&f, STACK + 0x60, STACK + 0x100, in_caller);
	PUT_CODE(&f, at, LDR, LDP_POST, AUTIASP, RET);
	for (unsigned i = 0; i < 4; i++) {
		bool down = i >= 2; /* the record has been taken down */

		unwind(&f, at + 4 * i, STACK + (down ? 0x100 : 0x60), down ? in_caller : at - 8);
		expect(&f, UNI_STOP_ROOT, 3, at + 4 * i, in_caller, in_entry);
	}
	close_fixture(&f);
}

static void leaf_without_a_record(void **state)
{
	struct fixture f;

	open_fixture(&f);
	put_call(&f, in_caller, fn(LEAF));
	PUT_CODE(&f, fn(LEAF), ADD, B_NE, ADD, RET);
	for (unsigned i = 0; i < 4; i++) {
		unwind(&f, fn(LEAF) + 4 * i, STACK + 0x100, in_caller);
		expect(&f, UNI_STOP_ROOT, 3, fn(LEAF) + 4 * i, in_caller, in_entry);
	}
	close_fixture(&f);
}

/* A function that sets its record up later on: x30 and the record together tell. */
static void record_set_up_late(void **state)
{
	uint64_t pc = fn(SHRINK) + 0x20;
	struct fixture f;

	open_fixture(&f);
	put_call(&f, in_caller, fn(SHRINK));
	PUT_CODE(&f, fn(SHRINK), CBZ, STP_PRE, MOV_FP);
	PUT_CODE(&f, pc, ADD, B);
	/* Not yet. */
	unwind(&f, pc, STACK + 0x100, in_caller);
	expect(&f, UNI_STOP_ROOT, 3, pc, in_caller, in_entry);
	/* Just now: x30 is the same still. */
	put_record(&f, STACK + 0x60, STACK + 0x100, in_caller);
	unwind(&f, pc, STACK + 0x60, in_caller);
	expect(&f, UNI_STOP_ROOT, 3, pc, in_caller, in_entry);
	/* After a call. */
	unwind(&f, pc, STACK + 0x60, fn(SHRINK) + 0x1c);
	expect(&f, UNI_STOP_ROOT, 3, pc, in_caller, in_entry);
	close_fixture(&f);
}

/* Codes and tags above the address: in the records, in x30, in pc. */
static void signed_addresses(void **state)
{
	const uint64_t code = 0x5a2f000000000000; /* bit 55 is 0 */
	struct fixture f;

	open_fixture(&f);
	put_call(&f, in_caller, fn(LEAF));
	put_record(&f, STACK + 0x100, STACK + 0x200, in_entry | code);
	PUT_CODE(&f, fn(LEAF), ADD, RETAA);
	unwind(&f, fn(LEAF), STACK + 0x100, in_caller | code);
	expect(&f, UNI_STOP_ROOT, 3, fn(LEAF), in_caller, in_entry);
	close_fixture(&f);
}

static void strip_by_the_size_of_the_space(void **state)
{
	uint64_t (*strip)(const struct uni_regs *, uint64_t) = uni_arch_aarch64.strip;
	struct uni_regs r = { 0 };

	assert_true(strip(&r, 0x123456789abc) == 0x123456789abc);
	assert_true(strip(&r, 0xffff823456789abc) == 0xffff823456789abc);
	assert_true(strip(&r, 0xa57f123456789abc) == 0x123456789abc);
	assert_true(strip(&r, 0x5aad823456789abc) == 0xffff823456789abc);
	uni_regs_set_sys(&r, UNI_A64_TCR, 25 | 16 << 16); /* 39 bits below, 48 above */
	assert_true(strip(&r, 0xa57f123456789abc) == 0x3456789abc);
	assert_true(strip(&r, 0x5aad823456789abc) == 0xffff823456789abc);
	uni_regs_set_sys(&r, UNI_A64_TCR, 63); /* nonsense: what all have */
	assert_true(strip(&r, 0xa57f123456789abc) == 0x123456789abc);
}

static void broken_records(void **state)
{
	uint64_t pc = fn(FRAMED) + 0x40, lr = fn(FRAMED) + 0x20;
	struct fixture f;

	open_fixture(&f);
	uni_unwinder_use(&f.u, "fp", NULL);
	put_call(&f, in_caller, fn(FRAMED));
	unwind(&f, pc, STACK + 0x101, lr);
	expect(&f, UNI_STOP_BADPTR, 1, pc);
	unwind(&f, pc, UINT64_MAX - 7, lr);
	expect(&f, UNI_STOP_BADPTR, 1, pc);
	unwind(&f, pc, STACK, lr); /* below sp */
	expect(&f, UNI_STOP_LOOP, 1, pc);
	unwind(&f, pc, TEXT + SIZE, lr);
	expect(&f, UNI_STOP_FAULT, 1, pc);
	unwind(&f, pc, 0, lr); /* nobody saved it: it may be any number */
	expect(&f, UNI_STOP_BADPTR, 1, pc);
	put_record(&f, STACK + 0x60, STACK + 0x60, in_caller); /* its own caller */
	unwind(&f, pc, STACK + 0x60, lr);
	expect(&f, UNI_STOP_LOOP, 2, pc, in_caller);
	put_record(&f, STACK + 0x60, STACK + 0x100, 0);
	unwind(&f, pc, STACK + 0x60, lr);
	expect(&f, UNI_STOP_ROOT, 1, pc);
	close_fixture(&f);
}

static bool sets_frame(size_t n, const uint32_t *insn)
{
	uint8_t code[64];

	for (size_t i = 0; i < 4 * n; i++)
		code[i] = (uint8_t)(insn[i / 4] >> 8 * (i % 4));
	for (size_t short_of = 0; short_of < 4 * n; short_of++)
		(void)uni_arch_aarch64.sets_frame(code, short_of);
	return uni_arch_aarch64.sets_frame(code, 4 * n);
}
#define SETS_FRAME(...) \
	sets_frame(sizeof((uint32_t[]){ __VA_ARGS__ }) / 4, (uint32_t[]){ __VA_ARGS__ })

static void how_functions_begin(void **state)
{
	assert_true(SETS_FRAME(STP_PRE, MOV_FP));
	assert_true(SETS_FRAME(PACIASP, STP_PRE, STP_SAVE, MOV_FP));
	assert_true(SETS_FRAME(SUB_SP, STP_OFF, LDR, ADD_FP));
	assert_false(SETS_FRAME(STP_PRE, STP_SAVE)); /* no frame pointer */
	assert_false(SETS_FRAME(CBZ, STP_PRE, MOV_FP));
	assert_false(SETS_FRAME(STP_PRE, 0x94000010, MOV_FP));
	assert_false(SETS_FRAME(MOV_FP, STP_PRE)); /* some other mov */
	assert_false(SETS_FRAME(STP_SAVE, MOV_FP));
	assert_false(SETS_FRAME(ADD, RET));
}

static bool after_call(uint32_t insn, uint64_t ret, uint64_t *target_ret)
{
	uint8_t before[UNI_CALL_BYTES] = { 0 };

	for (unsigned i = 0; i < 4; i++)
		before[UNI_CALL_BYTES - 4 + i] = (uint8_t)(insn >> 8 * i);
	return uni_arch_aarch64.after_call(before, ret, target_ret);
}

static void what_calls_look_like(void **state)
{
	static const uint32_t none[] = { B, B_NE, CBZ, RET, RETAA, BR, NOP, ADD };
	uint64_t target;

	assert_true(after_call(0x94000010, 0x1004, &target) && target == 0x1040);
	assert_true(after_call(0x97ffffff, 0x1004, &target) && target == 0xffc);
	assert_true(after_call(BLR, 0x1004, &target) && target == 0);
	assert_true(after_call(BLRAAZ, 0x1004, &target) && target == 0);
	assert_false(after_call(BLR, 0x1002, &target));
	for (size_t i = 0; i < uni_array_len(none); i++)
		assert_false(after_call(none[i], 0x1004, &target));
}

/* If x30 changes on the way to a return, it is not believed. */
static void x30_that_is_loaded(void **state)
{
	static const uint32_t loads[] = { LDR_LR, MOV_LR, LDP_POST, BLR };
	struct fixture f;

	open_fixture(&f);
	put_call(&f, in_caller, fn(FRAMED));
	put_record(&f, STACK + 0x60, STACK + 0x100, in_caller);
	for (size_t i = 0; i < uni_array_len(loads); i++) {
		PUT_CODE(&f, fn(FRAMED) + 0x40, ADD, loads[i], RET);
		unwind(&f, fn(FRAMED) + 0x40, STACK + 0x60, in_entry);
		expect(&f, UNI_STOP_ROOT, 3, fn(FRAMED) + 0x40, in_caller, in_entry);
	}
	close_fixture(&f);
}

static void vcpu_that_never_ran(void **state)
{
	struct uni_regs r = { .pc = 0x40200000, .pc_valid = true };

	assert_false(uni_arch_aarch64.never_started(&r));
	uni_regs_set_sys(&r, UNI_A64_SCTLR, 0x30d00800);
	assert_true(uni_arch_aarch64.never_started(&r));
	r.r[30] = 1;
	assert_false(uni_arch_aarch64.never_started(&r));
	r.r[30] = 0;
	r.sp = 8;
	assert_false(uni_arch_aarch64.never_started(&r));
	r.sp = 0;
	r.sys[UNI_A64_SCTLR] |= 1;
	assert_false(uni_arch_aarch64.never_started(&r));
}

/* Page tables say what is code: 2 MiB that may be executed, and behind them 2 that may not. */
static void code_of_other_images(void **state)
{
	const uint64_t pc = 0x10050, record = 0x40000, other = 0x20000, data = 0x220000;
	struct uni_regs sys = { 0 };
	struct fixture f;

	memset(&f, 0, sizeof(f));
	assert_true(guest_init(&f.g, 0, SIZE, UNI_GMEM_PHYSICAL));
	assert_int_equal(uni_as_create(f.g.m, &uni_as_budget_once, &f.as, NULL), 0);
	guest_put64(&f.g, 0x1000, 0x2003);
	guest_put64(&f.g, 0x2000, 0x3003);
	guest_put64(&f.g, 0x3000, 0x401);
	guest_put64(&f.g, 0x3008, 3ull << 53 | 0x401);
	uni_regs_set_sys(&sys, UNI_A64_SCTLR, 1);
	uni_regs_set_sys(&sys, UNI_A64_TCR, 16 | 16 << 16 | 2ull << 30 | 5ull << 32);
	uni_regs_set_sys(&sys, UNI_A64_TTBR0, 0x1000);
	uni_regs_set_sys(&sys, UNI_A64_TTBR1, 0x1000);
	uni_regs_set_sys(&sys, UNI_A64_PSTATE, 0x3c5);
	f.hints = (struct uni_unwind_hints){ .text_start = 0x10000, .text_size = 0x100 };
	uni_unwinder_init(&f.u, &uni_arch_aarch64, &f.hints);
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t ret[] = { other, data, pc - 0x10 };

		f.regs = sys;
		f.regs.pc = pc;
		f.regs.sp = record - 0x20;
		f.regs.pc_valid = f.regs.sp_valid = true;
		uni_regs_set(&f.regs, UNI_A64_FP, record);
		put_record(&f, record, 0, ret[i]);
		uni_unwind(&f.u, f.as, &f.regs, &f.chain);
		if (ret[i] == data)
			expect(&f, UNI_STOP_BADPC, 1, pc);
		else
			expect(&f, UNI_STOP_ROOT, 2, pc, ret[i]);
	}
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_instruction_of_a_prologue),
		cmocka_unit_test(each_instruction_of_an_epilogue),
		cmocka_unit_test(leaf_without_a_record),
		cmocka_unit_test(record_set_up_late),
		cmocka_unit_test(signed_addresses),
		cmocka_unit_test(strip_by_the_size_of_the_space),
		cmocka_unit_test(broken_records),
		cmocka_unit_test(how_functions_begin),
		cmocka_unit_test(what_calls_look_like),
		cmocka_unit_test(x30_that_is_loaded),
		cmocka_unit_test(code_of_other_images),
		cmocka_unit_test(vcpu_that_never_ran),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
