/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers of aarch64 threads that are on no CPU, from the end of the switch that they are in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../support/guest.h"
#include "arch/arch.h"
#include "mem/as.h"

#define TEXT   0x40100000ull
#define SIZE   (1u << 16)
#define STACK  (TEXT + 0x8000)
#define CALLER (TEXT + 0x4000)
#define PAC    0x0035000000000000ull

/* From the assembler. */
#define LDP_X19	   0xa94153f3u /* ldp x19, x20, [sp, #16] */
#define LDP_LR	   0xa8c67bfdu /* ldp x29, x30, [sp], #96 */
#define LDP_PRE	   0xa9ff5bf5u /* ldp x21, x22, [sp, #-16]! */
#define LDR_X23	   0xf94007f7u /* ldr x23, [sp, #8] */
#define LDR_LR	   0xf84107feu /* ldr x30, [sp], #16 */
#define LDR_PRE	   0xf85f8ff8u /* ldr x24, [sp, #-8]! */
#define LDP_D8	   0x6d4227e8u /* ldp d8, d9, [sp, #32] */
#define LDP_D_POST 0x6cc12feau /* ldp d10, d11, [sp], #16 */
#define LDP_Q_PRE  0xadc227e8u /* ldp q8, q9, [sp, #64]! */
#define LDR_D	   0xfd4017ecu /* ldr d12, [sp, #40] */
#define ADD_SP	   0x910083ffu /* add sp, sp, #32 */
#define ADD_SP_12  0x914007ffu /* add sp, sp, #1, lsl #12 */
#define CLEAR_X29  0xd280001du /* mov x29, #0 */
#define CLEAR_X1   0xaa1f03e1u /* mov x1, xzr */
#define CLEAR_W2   0x2a1f03e2u /* mov w2, wzr */
#define CLEAR_X0   0xd2800000u
#define RET	   0xd65f03c0u
#define RET_X9	   0xd65f0120u
#define RETAA	   0xd65f0bffu
#define AUTIASP	   0xd50323bfu
#define BTI	   0xd503245fu
#define ISB	   0xd5033fdfu
#define MSR	   0xd51bd043u
#define MRS	   0xd53bd043u
#define MOV_X0_X1  0xaa0103e0u
#define LDP_X0	   0xa9415013u /* ldp x19, x20, [x0, #16] */
#define LDP_XZR	   0xa8c17bffu /* ldp xzr, x30, [sp], #16 */

struct fixture {
	struct guest g;
	struct uni_as *as;
	struct uni_regs regs;
};

static int set_up(void **state)
{
	static struct fixture f;

	assert_true(guest_init(&f.g, TEXT, SIZE, UNI_GMEM_VIRTUAL));
	assert_int_equal(uni_as_create(f.g.m, &uni_as_budget_once, &f.as, NULL), 0);
	/* Each word of the stack has a value of its own; those that are returned to, addresses. */
	for (unsigned i = 0; i < 64; i++)
		guest_put64(&f.g, STACK + 8 * i, 0x1000 + i);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	uni_as_destroy(f->as);
	guest_deinit(&f->g);
	return 0;
}

static int run(struct fixture *f, const uint32_t *code, size_t nr)
{
	const struct uni_pt_root flat = { 0 };

	for (size_t i = 0; i < nr; i++)
		guest_put(&f->g, TEXT + 4 * i, code[i], 4);
	memset(&f->regs, 0, sizeof(f->regs));
	f->regs.pc = TEXT;
	f->regs.pc_valid = f->regs.sp_valid = true;
	f->regs.sp = STACK;
	uni_as_begin(f->as, &flat);
	return uni_arch_aarch64.restore(f->as, &f->regs);
}
#define RUN(f, ...)                           \
	run((f), (uint32_t[]){ __VA_ARGS__ }, \
		sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static uint64_t reg(const struct fixture *f, unsigned n)
{
	uint64_t v;

	assert_true(uni_regs_get(&f->regs, n, &v));
	return v;
}

static bool has(const struct fixture *f, unsigned n)
{
	uint64_t v;

	return uni_regs_get(&f->regs, n, &v);
}

static void test_a_switch(void **state)
{
	struct fixture *f = *state;

	guest_put64(&f->g, STACK + 8, CALLER);
	assert_int_equal(RUN(f, LDP_X19, LDP_D8, LDP_LR, RET), 0);
	assert_int_equal(f->regs.pc, CALLER);
	assert_int_equal(f->regs.sp, STACK + 96);
	assert_int_equal(reg(f, UNI_A64_SP), STACK + 96);
	assert_int_equal(reg(f, 19), 0x1002);
	assert_int_equal(reg(f, 20), 0x1003);
	assert_int_equal(reg(f, UNI_A64_FP), 0x1000);
	assert_int_equal(reg(f, UNI_A64_LR), CALLER);
	assert_false(has(f, 8)); /* d8 is not x8 */
	assert_false(has(f, 21));
}

static void test_every_way_to_load(void **state)
{
	struct fixture *f = *state;

	guest_put64(&f->g, STACK + 16, CALLER);
	assert_int_equal(RUN(f, ADD_SP, LDP_PRE, LDR_X23, LDR_PRE, LDR_D, ADD_SP, LDR_LR, RET), 0);
	/* sp: +32, -16 (x21, x22 at +16), x23 at +24, -8 (x24 at +8), +32 (x30 at +40), +16 */
	assert_int_equal(reg(f, 21), CALLER);
	assert_int_equal(reg(f, 22), 0x1003);
	assert_int_equal(reg(f, 23), 0x1003);
	assert_int_equal(reg(f, 24), 0x1001);
	assert_int_equal(reg(f, UNI_A64_LR), 0x1005);
	assert_int_equal(f->regs.pc, 0x1005);
	assert_int_equal(f->regs.sp, STACK + 56);

	guest_put64(&f->g, STACK + 0x50 + 8, CALLER);
	assert_int_equal(RUN(f, LDP_D_POST, LDP_Q_PRE, LDP_XZR, RET), 0);
	assert_int_equal(f->regs.pc, CALLER);
	assert_int_equal(f->regs.sp, STACK + 16 + 64 + 16);
	assert_int_equal(reg(f, UNI_A64_SP), f->regs.sp); /* xzr is not sp */

	guest_put64(&f->g, STACK + 0x1008, CALLER);
	assert_int_equal(RUN(f, ADD_SP_12, LDP_XZR, RET), 0);
	assert_int_equal(f->regs.pc, CALLER);
}

static void test_signed_return_addresses(void **state)
{
	struct fixture *f = *state;

	guest_put64(&f->g, STACK + 8, CALLER | PAC);
	assert_int_equal(RUN(f, BTI, LDP_LR, AUTIASP, RET), 0);
	assert_int_equal(f->regs.pc, CALLER);
	assert_int_equal(RUN(f, ISB, MSR, LDP_LR, RETAA), 0);
	assert_int_equal(f->regs.pc, CALLER);
}

/* A thread's first turn: code that clears registers, and returns into its function. */
static void test_a_thread_that_has_not_run(void **state)
{
	static const uint32_t begin[] = { CLEAR_X29, CLEAR_X1, CLEAR_W2, LDR_LR, RET };
	struct fixture *f = *state;

	for (size_t i = 0; i < 5; i++)
		guest_put(&f->g, TEXT + 0x1000 + 4 * i, begin[i], 4);
	guest_put(&f->g, CALLER, MOV_X0_X1, 4);
	guest_put64(&f->g, STACK + 8, TEXT + 0x1000);
	guest_put64(&f->g, STACK + 96, CALLER);
	assert_int_equal(RUN(f, CLEAR_X0, LDP_LR, RET), 0); /* a result; the return is the end */
	assert_int_equal(f->regs.pc, TEXT + 0x1000);
	assert_int_equal(RUN(f, CLEAR_X1, LDP_LR, RET), 0);
	assert_int_equal(f->regs.pc, CALLER);
	assert_int_equal(f->regs.sp, STACK + 112);
	assert_int_equal(reg(f, UNI_A64_FP), 0);
	assert_int_equal(reg(f, 2), 0);
}

static void test_where_it_ends(void **state)
{
	struct fixture *f = *state;

	/* In front of what it does not know, with what was loaded until there. */
	assert_int_equal(RUN(f, LDP_X19, MOV_X0_X1, LDP_LR, RET), 0);
	assert_int_equal(f->regs.pc, TEXT + 4);
	assert_int_equal(f->regs.sp, STACK);
	assert_int_equal(reg(f, 19), 0x1002);
	assert_int_equal(RUN(f, MRS, RET), 0);
	assert_int_equal(f->regs.pc, TEXT);
	assert_int_equal(RUN(f, LDP_X0, RET), 0); /* not from the stack */
	assert_int_equal(f->regs.pc, TEXT);
	assert_int_equal(RUN(f, LDP_X19, RET), 0); /* x30 is not known */
	assert_int_equal(f->regs.pc, TEXT + 4);
	assert_int_equal(RUN(f, RET_X9), 0);
	assert_int_equal(f->regs.pc, TEXT);
	/* Loads without end. */
	for (unsigned i = 0; i < 0x1000; i += 4)
		guest_put(&f->g, TEXT + i, LDP_X19, 4);
	assert_int_equal(RUN(f, LDP_X19), 0);
	assert_true(f->regs.pc > TEXT && f->regs.pc <= TEXT + 128);
}

static void test_a_stack_that_cannot_be_read(void **state)
{
	struct fixture *f = *state;
	struct uni_regs r;

	(void)RUN(f, LDR_PRE, LDP_LR, RET);
	r = f->regs;
	r.pc = TEXT;
	r.sp = TEXT + SIZE - 8; /* the pair reaches behind the end */
	r.valid = 0;
	assert_true(RUN(f, LDP_LR, RET) == 0);
	assert_true(uni_arch_aarch64.restore(f->as, &r) < 0);
	assert_int_equal(r.pc, TEXT);
	assert_int_equal(r.sp, TEXT + SIZE - 8);
	assert_int_equal(r.valid, 0);
	r.pc = 0x1000; /* nor code */
	assert_int_equal(uni_arch_aarch64.restore(f->as, &r), 0);
	assert_int_equal(r.pc, 0x1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_switch, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_every_way_to_load, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_signed_return_addresses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_thread_that_has_not_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_where_it_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_stack_that_cannot_be_read, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
