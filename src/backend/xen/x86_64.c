/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct vcpu_guest_context of x86_64 (public/arch-x86/xen.h), the same for PV, PVH and HVM:
 *
 *      0  FPU          720  traps             5080..5135  stacks and callbacks of PV
 *    512  flags       4984  control registers 5136        (vm_assist)
 *    520  user regs         CR0..CR7          5144        FS base, GS base of kernel and user
 *                   5048  debug registers
 */
#include <string.h>

#include "backend/xen/vcpu.h"

#define FLAGS	     512u
#define USER_REGS    520u
#define CONTROL	     4984u
#define DEBUG	     5048u
#define FS_BASE	     5144u
#define GS_BASE	     5152u /* in kernel mode */
#define GS_BASE_USER 5160u
#define CTX_BYTES    5168u
#define FLAG_ONLINE  (1u << 5) /* VGCF_online */

/* Words of the user registers, for those that are handled separately. */
enum { RIP = 16, CS, RFLAGS, RSP, SS /* then ES, DS, FS, GS */ };

#define KNOWN ((1ull << UNI_X86_NR_REGS) - 1)

#define CR0_PE	 (1ull << 0)
#define CR0_PG	 (1ull << 31)
#define CR4_PAE	 (1ull << 5)
#define CR4_LA57 (1ull << 12)
/* A PV guest always runs in long mode, whatever its control registers say: it has no choice. */
#define EFER_PV (1ull << 8 | 1ull << 10 | 1ull << 11) /* LME, LMA, NXE */

static uint64_t context_word(const uint8_t *ctx, size_t offset)
{
	uint64_t v;

	memcpy(&v, ctx + offset, sizeof(v)); /* the host has the same byte order */
	return v;
}

static void regs_of(const uint8_t *ctx, bool pv, struct uni_regs *ret)
{
	static const uint8_t order[] = { UNI_X86_R15, UNI_X86_R14, UNI_X86_R13, UNI_X86_R12,
		UNI_X86_RBP, UNI_X86_RBX, UNI_X86_R11, UNI_X86_R10, UNI_X86_R9, UNI_X86_R8,
		UNI_X86_RAX, UNI_X86_RCX, UNI_X86_RDX, UNI_X86_RSI, UNI_X86_RDI };
	uint64_t cr0 = context_word(ctx, CONTROL), cr4 = context_word(ctx, CONTROL + 4 * 8);
	size_t i;

	ret->valid = KNOWN;
	ret->sys_valid = 0;
#pragma GCC unroll 16
	for (i = 0; i < sizeof(order); i++)
		ret->r[order[i]] = context_word(ctx, USER_REGS + 8 * i);
	ret->pc = context_word(ctx, USER_REGS + RIP * 8);
	ret->sp = context_word(ctx, USER_REGS + RSP * 8);
	ret->pc_valid = ret->sp_valid = true;
	ret->r[UNI_X86_RIP] = ret->pc;
	ret->r[UNI_X86_RSP] = ret->sp;
	uni_regs_set_sys(ret, UNI_X86_CS, context_word(ctx, USER_REGS + CS * 8) & 0xffff);
	uni_regs_set_sys(ret, UNI_X86_RFLAGS, context_word(ctx, USER_REGS + RFLAGS * 8));
	uni_regs_set_sys(ret, UNI_X86_FS_BASE, context_word(ctx, FS_BASE));
	uni_regs_set_sys(ret, UNI_X86_GS_BASE, context_word(ctx, GS_BASE));
	uni_regs_set_sys(ret, UNI_X86_CR3, context_word(ctx, CONTROL + 3 * 8));
	uni_regs_set_sys(ret, UNI_X86_CR0, pv ? cr0 | CR0_PG | CR0_PE : cr0);
	uni_regs_set_sys(ret, UNI_X86_CR4, pv ? (cr4 & ~CR4_LA57) | CR4_PAE : cr4);
	if (pv)
		uni_regs_set_sys(ret, UNI_X86_EFER, EFER_PV);
	ret->state =
		(context_word(ctx, FLAGS) & FLAG_ONLINE) != 0 ? UNI_VCPU_RUNNING : UNI_VCPU_OFFLINE;
}

static void more_of(const uint8_t *ctx, struct uni_more_regs *ret)
{
	static const uint8_t order[] = { UNI_X86_SS, UNI_X86_ES, UNI_X86_DS, UNI_X86_FS,
		UNI_X86_GS };

	*ret = (struct uni_more_regs){ 0 };
	for (size_t i = 0; i < sizeof(order); i++)
		uni_more_regs_set(
			ret, order[i], context_word(ctx, USER_REGS + (SS + i) * 8) & 0xffff);
	uni_more_regs_set(ret, UNI_X86_GS_BASE_OTHER, context_word(ctx, GS_BASE_USER));
	uni_more_regs_set(ret, UNI_X86_CR2, context_word(ctx, CONTROL + 2 * 8));
	for (unsigned i = 0; i < 8; i++) {
		if (i != 4 && i != 5)
			uni_more_regs_set(
				ret, UNI_X86_DR0 + i, context_word(ctx, DEBUG + 8 * (size_t)i));
	}
}

static bool may_wait(const uint8_t *before)
{
	static const uint8_t hlt[] = { 0xf4 }, syscall_insn[] = { 0x0f, 0x05 },
			     vmcall[] = { 0x0f, 0x01, 0xc1 }, vmmcall[] = { 0x0f, 0x01, 0xd9 };
	const uint8_t *end = before + UNI_XEN_WAIT_BYTES;

	return memcmp(end - 1, hlt, 1) == 0 || memcmp(end - 2, syscall_insn, 2) == 0 ||
	       memcmp(end - 3, vmcall, 3) == 0 || memcmp(end - 3, vmmcall, 3) == 0;
}

const struct uni_xen_arch uni_xen_arch_x86_64 = {
	.machine = "x86_64",
	.arch = &uni_arch_x86_64,
	.ctx_bytes = CTX_BYTES,
	.regs = regs_of,
	.more = more_of,
	.may_wait = may_wait,
};
