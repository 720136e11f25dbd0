/* SPDX-License-Identifier: BSD-2-Clause */
/* Branches and returns, for a vCPU that stops between blocks of code (arch/skid.h). */
#include "arch/aarch64/aarch64.h"

/* The distance in bits low and up of the instruction, in words, with its sign. */
static uint64_t target_of(uint32_t insn, unsigned low, unsigned bits, uint64_t at)
{
	uint64_t words = insn >> low & ((1u << bits) - 1);

	if ((words >> (bits - 1) & 1) != 0)
		words |= UINT64_MAX << bits;
	return at + words * UNI_A64_INSN;
}

/* ret, br, blr and those that check a signature. ret by another register than lr is a jump. */
static enum uni_branch by_register(uint32_t insn, uint64_t at, uint64_t *target_ret)
{
	switch (insn & 0xfefff800) {
	case 0xd61f0000:
	case 0xd61f0800:
	case 0xd65f0000:
	case 0xd65f0800:
		break;
	case 0xd63f0000:
	case 0xd63f0800:
		*target_ret = at + UNI_A64_INSN;
		return UNI_BRANCH_POINTER;
	default:
		return insn == 0xd69f03e0 ? UNI_BRANCH_AWAY : UNI_BRANCH_NONE; /* eret */
	}
	*target_ret = 0;
	return insn == 0xd65f03c0 || (insn & 0xfffffbff) == 0xd65f0bff ? UNI_BRANCH_RETURN
								       : UNI_BRANCH_INDIRECT;
}

/* Arm ARM C4.1.86, "Branches, Exception Generating and System instructions". */
enum uni_branch uni_aarch64_branch(const uint8_t *code, size_t n, uint64_t at, uint64_t *target_ret)
{
	uint32_t insn = n >= UNI_A64_INSN ? uni_aarch64_insn(code) : 0;

	if ((insn & 0x7c000000) == 0x14000000) { /* b, bl */
		*target_ret = target_of(insn, 0, 26, at);
		return (insn & 0x80000000) != 0 ? UNI_BRANCH_CALL : UNI_BRANCH_GOTO;
	}
	if ((insn & 0xff000000) == 0x54000000 || (insn & 0x7e000000) == 0x34000000) {
		*target_ret = target_of(insn, 5, 19, at); /* b.cond, cbz, cbnz */
		return UNI_BRANCH_JUMP;
	}
	if ((insn & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		*target_ret = target_of(insn, 5, 14, at);
		return UNI_BRANCH_JUMP;
	}
	if ((insn & 0xffe0001c) == 0xd4000000 && (insn & 3) != 0) { /* svc, hvc, smc */
		*target_ret = at + UNI_A64_INSN;
		return UNI_BRANCH_TRAP;
	}
	if (insn == 0xd503201f) /* nop */
		return UNI_BRANCH_PAD;
	if ((insn & 0xffff0000) == 0 || (insn & 0xffe0001f) == 0xd4200000) /* udf, brk */
		return UNI_BRANCH_END;
	return by_register(insn, at, target_ret);
}

/* ret jumps to the link register, which then still has the address. */
bool uni_aarch64_has_returned(struct uni_as *as, const struct uni_regs *regs)
{
	uint64_t lr;

	return uni_regs_get(regs, UNI_A64_LR, &lr) && uni_arch_aarch64.strip(regs, lr) == regs->pc;
}
