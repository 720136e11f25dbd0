/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct vcpu_guest_context of arm64 (public/arch-arm.h). Written after the header; no such host
 * was there to run it on.
 *
 *     0  flags      8..255  x0..x30    256  pc    264  cpsr    272..295  spsr of each mode
 *   296  sp_el0   304  sp_el1   312  elr_el1   320  sctlr   328  ttbcr   336  ttbr0   344  ttbr1
 */
#include <endian.h>
#include <string.h>

#include "backend/xen/vcpu.h"

#define X0	    8u
#define PC	    256u
#define CPSR	    264u
#define SP_EL0	    296u
#define SP_EL1	    304u
#define SCTLR	    320u
#define TCR	    328u
#define TTBR0	    336u
#define TTBR1	    344u
#define CTX_BYTES   352u
#define FLAG_ONLINE 1u /* VGCF_online */
#define WFI	    0xd503207fu
#define HVC	    0xd4000002u /* its own 16 bits are above bit 5 */
#define HVC_MASK    0xffe0001fu
#define PSR_SPSEL   1ull /* the stack pointer of the exception level, not EL0's */

static uint64_t ctx_word(const uint8_t *ctx, size_t offset)
{
	uint64_t v;

	memcpy(&v, ctx + offset, sizeof(v)); /* the host has the same byte order */
	return v;
}

static void regs_of(const uint8_t *ctx, bool pv, struct uni_regs *ret)
{
	uint64_t cpsr = ctx_word(ctx, CPSR);
	uint32_t flags;

	memcpy(&flags, ctx, sizeof(flags));
	ret->valid = 0;
	ret->sys_valid = 0;
	for (unsigned i = 0; i <= UNI_A64_LR; i++)
		uni_regs_set(ret, i, ctx_word(ctx, X0 + 8 * (size_t)i));
	ret->pc = ctx_word(ctx, PC);
	ret->sp = ctx_word(ctx, (cpsr & PSR_SPSEL) != 0 ? SP_EL1 : SP_EL0);
	ret->pc_valid = ret->sp_valid = true;
	uni_regs_set(ret, UNI_A64_PC, ret->pc);
	uni_regs_set(ret, UNI_A64_SP, ret->sp);
	uni_regs_set_sys(ret, UNI_A64_PSTATE, cpsr);
	uni_regs_set_sys(ret, UNI_A64_SCTLR, ctx_word(ctx, SCTLR));
	uni_regs_set_sys(ret, UNI_A64_TCR, ctx_word(ctx, TCR));
	uni_regs_set_sys(ret, UNI_A64_TTBR0, ctx_word(ctx, TTBR0));
	uni_regs_set_sys(ret, UNI_A64_TTBR1, ctx_word(ctx, TTBR1));
	ret->state = (flags & FLAG_ONLINE) != 0 ? UNI_VCPU_RUNNING : UNI_VCPU_OFFLINE;
}

static bool may_wait(const uint8_t *before)
{
	uint32_t insn;

	_Static_assert(sizeof(insn) == UNI_XEN_WAIT_BYTES, "one instruction");
	memcpy(&insn, before, sizeof(insn));
	insn = le32toh(insn);
	return insn == WFI || (insn & HVC_MASK) == HVC;
}

const struct uni_xen_arch uni_xen_arch_aarch64 = {
	.machine = "aarch64",
	.arch = &uni_arch_aarch64,
	.ctx_bytes = CTX_BYTES,
	.regs = regs_of,
	.may_wait = may_wait,
};
