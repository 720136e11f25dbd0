/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers of aarch64: Linux' notes, which QEMU writes as well; its dumps have no others. */
#include "backend/core/file.h"

#define PREFIX	  112u	      /* bytes of elf_prstatus before the registers */
#define NR_WORDS  33u	      /* x0 to x30, sp, pc; pstate follows */
#define SCTLR_M	  1u	      /* the MMU is on */
#define TCR_EPD0  (1ull << 7) /* no tables for this half */
#define TCR_EPD1  (1ull << 23)
#define TCR_USUAL 0x580100010ull /* 4 KiB granules, 48 bits everywhere (Arm ARM, TCR_EL1) */

static bool aarch64_prstatus(const uint8_t *desc, size_t size, struct uni_regs *ret)
{
	struct uni_cursor c = uni_cursor_make(desc, size);
	struct uni_regs r = { .state = UNI_VCPU_RUNNING };

	(void)uni_cursor_take(&c, PREFIX);
	for (unsigned i = 0; i < NR_WORDS; i++)
		uni_regs_set(&r, i, uni_cursor_u64(&c));
	uni_regs_set_sys(&r, UNI_A64_PSTATE, uni_cursor_u64(&c));
	if (c.failed)
		return false;
	r.pc_valid = uni_regs_get(&r, UNI_A64_PC, &r.pc);
	r.sp_valid = uni_regs_get(&r, UNI_A64_SP, &r.sp);
	*ret = r;
	return true;
}

static bool aarch64_complete(struct uni_regs *r)
{
	uint64_t sctlr, tcr, ttbr;
	bool low = uni_regs_get_sys(r, UNI_A64_TTBR0, &ttbr);
	bool high = uni_regs_get_sys(r, UNI_A64_TTBR1, &ttbr);

	if (!uni_regs_get_sys(r, UNI_A64_SCTLR, &sctlr)) {
		sctlr = low || high ? SCTLR_M : 0;
		uni_regs_set_sys(r, UNI_A64_SCTLR, sctlr);
	}
	if (!uni_regs_get_sys(r, UNI_A64_TCR, &tcr))
		tcr = TCR_USUAL;
	tcr |= (low ? 0 : TCR_EPD0) | (high ? 0 : TCR_EPD1);
	uni_regs_set_sys(r, UNI_A64_TCR, tcr);
	if (!low)
		uni_regs_set_sys(r, UNI_A64_TTBR0, 0);
	if (!high)
		uni_regs_set_sys(r, UNI_A64_TTBR1, 0);
	r->pc_valid = uni_regs_get(r, UNI_A64_PC, &r->pc);
	r->sp_valid = uni_regs_get(r, UNI_A64_SP, &r->sp);
	return low || high || (sctlr & SCTLR_M) == 0;
}

const struct uni_core_arch uni_core_aarch64 = {
	.arch = &uni_arch_aarch64,
	.prstatus = aarch64_prstatus,
	.qemu_notes = true,
	.complete = aarch64_complete,
	.needs_one_of = { UNI_A64_SCTLR, UNI_A64_TTBR0, UNI_A64_TTBR1 },
	.no_tables = "it does not say where the guest's page tables are, as no dump "
		     "of aarch64 does. Add ,ttbr0=ADDRESS,ttbr1=ADDRESS (gdb prints "
		     "them: p/x $TTBR1_EL1; also tcr=), or sctlr=0 if its MMU is off",
	.pc = "pc",
	.registers = "pc, sp, x29, x30, ttbr0 and ttbr1 at least, tcr if you know it",
	.wait = "\x7f\x20\x03\xd5", /* wfi */
	.wait_bytes = 4,
};
