/* SPDX-License-Identifier: BSD-2-Clause */
/* The known parts of Xen's layouts: an arm64 vCPU's context, the stubs of the hypercall page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "arch/x86_64/x86_64.h"
#include "backend/xen/vcpu.h"

/* Against the offsets in the header, counted by hand. */
static void decodes_arm(void **state)
{
	uint64_t ctx[44] = { [0] = 1 };
	struct uni_regs r = { 0 };

	assert_int_equal(uni_xen_arch_aarch64.ctx_bytes, sizeof(ctx));
	for (uint64_t i = 0; i < 31; i++)
		ctx[1 + i] = 100 + i;
	ctx[32] = 0xffff000000080000ull; /* pc */
	ctx[33] = 5;			 /* cpsr: EL1h */
	ctx[37] = 0xe10;		 /* sp_el0 */
	ctx[38] = 0xe11;		 /* sp_el1 */
	ctx[40] = 0x5c;			 /* sctlr */
	ctx[41] = 0x7c;			 /* tcr */
	ctx[42] = 0x70;			 /* ttbr0 */
	ctx[43] = 0x71;			 /* ttbr1 */
	uni_xen_arch_aarch64.regs((const uint8_t *)ctx, false, &r);
	assert_int_equal(r.state, UNI_VCPU_RUNNING);
	assert_int_equal(r.pc, 0xffff000000080000ull);
	assert_int_equal(r.sp, 0xe11);
	assert_int_equal(r.r[UNI_A64_FP], 129);
	assert_int_equal(r.r[UNI_A64_LR], 130);
	assert_int_equal(r.sys[UNI_A64_SCTLR], 0x5c);
	assert_int_equal(r.sys[UNI_A64_TCR], 0x7c);
	assert_int_equal(r.sys[UNI_A64_TTBR0], 0x70);
	assert_int_equal(r.sys[UNI_A64_TTBR1], 0x71);
	ctx[33] = 4; /* EL1t */
	ctx[0] = 0;
	uni_xen_arch_aarch64.regs((const uint8_t *)ctx, false, &r);
	assert_int_equal(r.sp, 0xe10);
	assert_int_equal(r.state, UNI_VCPU_OFFLINE);
}

/* The other values that xenctx shows; offsets of the header counted by hand. */
static void decodes_more(void **state)
{
	uint8_t ctx[5168] = { 0 };
	struct uni_more_regs m;

	for (size_t i = 0; i < sizeof(ctx); i += 8)
		memcpy(ctx + i, &(uint64_t){ i }, sizeof(uint64_t));
	uni_xen_arch_x86_64.more(ctx, &m);
	assert_int_equal(m.v[UNI_X86_SS], 680);
	assert_int_equal(m.v[UNI_X86_ES], 688);
	assert_int_equal(m.v[UNI_X86_DS], 696);
	assert_int_equal(m.v[UNI_X86_FS], 704);
	assert_int_equal(m.v[UNI_X86_GS], 712);
	assert_int_equal(m.v[UNI_X86_CR2], 5000);
	assert_int_equal(m.v[UNI_X86_DR0], 5048);
	assert_int_equal(m.v[UNI_X86_DR7], 5104);
	assert_int_equal(m.v[UNI_X86_GS_BASE_OTHER], 5160);
	assert_int_equal(m.valid >> UNI_X86_DR0, 0xcf); /* there is no DR4, no DR5 */
}

static bool arm_may_wait(uint32_t insn)
{
	return uni_xen_arch_aarch64.may_wait((const uint8_t *)&insn);
}

static void knows_arm_waits(void **state)
{
	assert_true(arm_may_wait(0xd503207f)); /* wfi */
	assert_true(arm_may_wait(0xd4000002)); /* hvc #0 */
	assert_true(arm_may_wait(0xd4000002 | 0xea1 << 5));
	assert_false(arm_may_wait(0xd503205f)); /* wfe: only yields */
	assert_false(arm_may_wait(0xd503201f)); /* nop */
}

/* Callers of both kinds of stubs, at each of their bytes. */
static void knows_stubs(void **state)
{
	static const uint8_t pv[] = { 0x51, 0x41, 0x53, 0xb8, 29, 0, 0, 0, 0x0f, 0x05, 0x41, 0x5b,
		0x59, 0xc3 };
	static const uint8_t svm[] = { 0xb8, 29, 0, 0, 0, 0x0f, 0x01, 0xd9, 0xc3 };
	static const struct {
		size_t n;
		uint32_t offset;
	} pv_at[] = { { 0, 0 }, { 1, 8 }, { 3, 16 }, { 8, 16 }, { 10, 16 }, { 12, 8 }, { 13, 0 } };
	const struct uni_unwind_hints h = { .has_stubs = true, .stubs = 0x5000 };
	uint32_t offset;

	for (size_t i = 0; i < 7; i++) {
		assert_true(uni_x86_64_stub(pv, pv_at[i].n, &offset));
		assert_int_equal(offset, pv_at[i].offset);
	}
	assert_true(uni_x86_64_stub(svm, 5, &offset));
	assert_int_equal(offset, 0);
	assert_true(uni_x86_64_stub(svm, 8, &offset));
	assert_int_equal(offset, 0);
	assert_false(uni_x86_64_stub(svm, 9, &offset)); /* behind its end */
	assert_false(uni_x86_64_stub((const uint8_t *)"\x58", 1, &offset));
	assert_true(uni_hints_in_stubs(&h, 0x5fff));
	assert_false(uni_hints_in_stubs(&h, 0x6000));
	assert_false(uni_hints_in_stubs(NULL, 0x5000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes_arm),
		cmocka_unit_test(knows_arm_waits),
		cmocka_unit_test(decodes_more),
		cmocka_unit_test(knows_stubs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
