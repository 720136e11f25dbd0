/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers of aarch64: Linux' notes, which QEMU writes as well; its dumps hold no others. */
#include "backend/core/file.h"

#define PREFIX	  112u	      /* bytes of elf_prstatus before the registers */
#define NR_WORDS  33u	      /* x0 to x30, sp, pc; pstate follows */
#define SCTLR_M	  1u	      /* the MMU is on */
#define TCR_EPD0  (1ull << 7) /* no tables for this half */
#define TCR_EPD1  (1ull << 23)
#define TCR_USUAL 0x580100010ull /* 4 KiB granules, 48 bits everywhere (Arm ARM, TCR_EL1) */

bool uni_core_aarch64_prstatus(const uint8_t *desc, size_t size, struct uni_regs *ret)
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

bool uni_core_aarch64_complete(struct uni_regs *r)
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
