/* SPDX-License-Identifier: BSD-2-Clause */
/* The few instructions around calls, prologues and epilogues; encodings from the Arm ARM, C6.2. */
#include "arch/aarch64/aarch64.h"

#define PAIR_MASK      0xffc07fffu /* all but the offset */
#define STP_FP_LR      0xa9007bfdu /* stp x29, x30, [sp, #n] */
#define STP_FP_LR_PRE  0xa9807bfdu /* stp x29, x30, [sp, #n]! */
#define ADD_FP_SP_MASK 0xffc003ffu
#define ADD_FP_SP      0x910003fdu /* add x29, sp, #n: mov if n is 0 */
#define MOV_FP_XZR     0xaa1f03fdu /* mov x29, xzr */
#define MOV_FP_0       0xd280001du /* mov x29, #0 */
#define BL_MASK	       0xfc000000u
#define BL	       0x94000000u
#define BLR_MASK       0xfffffc1fu
#define BLR	       0xd63f0000u
#define BLR_AUTH_MASK  0xfefff800u /* blraa, blraaz, blrab, blrabz */
#define BLR_AUTH       0xd63f0800u
#define BRANCH_MASK    0x1c000000u /* branches, exceptions and system instructions */
#define BRANCH	       0x14000000u
#define SYSTEM_MASK    0xff000000u /* hints (bti, paciasp), barriers, mrs, msr */
#define SYSTEM	       0xd5000000u
#define RET_MASK       0xfffffc1fu
#define RET	       0xd65f0000u
#define RET_AUTH_MASK  0xfffffbffu /* retaa, retab */
#define RET_AUTH       0xd65f0bffu
#define LOAD_MASK      0x0a000000u /* loads and stores */
#define LOAD	       0x08000000u
#define FP	       29u
#define LR	       30u

uint32_t uni_aarch64_insn(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static bool is_branch(uint32_t insn)
{
	return (insn & BRANCH_MASK) == BRANCH && (insn & SYSTEM_MASK) != SYSTEM;
}

int uni_aarch64_return_reg(uint32_t insn)
{
	if ((insn & RET_AUTH_MASK) == RET_AUTH)
		return (int)LR;
	return (insn & RET_MASK) == RET ? (int)(insn >> 5 & 31) : -1;
}

/* May it write x30? Loads name x30 as either of their registers, computations as their result. */
static bool may_write_lr(uint32_t insn)
{
	unsigned first = insn & 31, second = insn >> 10 & 31;

	if ((insn & SYSTEM_MASK) == SYSTEM)
		return false; /* autiasp changes x30, but not the place that x30 leads to */
	return first == LR || ((insn & LOAD_MASK) == LOAD && second == LR);
}

bool uni_aarch64_prologue(const uint8_t *code, size_t n, size_t *set_ret)
{
	bool stored = false;

	for (size_t pos = 0; n - pos >= UNI_A64_INSN; pos += UNI_A64_INSN) {
		uint32_t insn = uni_aarch64_insn(code + pos), pair = insn & PAIR_MASK;

		if (is_branch(insn))
			return false;
		stored = stored || pair == STP_FP_LR || pair == STP_FP_LR_PRE;
		if (stored && (insn & ADD_FP_SP_MASK) == ADD_FP_SP) {
			*set_ret = pos;
			return true;
		}
	}
	return false;
}

bool uni_aarch64_sets_frame(const uint8_t *code, size_t n)
{
	size_t set;

	return uni_aarch64_prologue(code, n, &set);
}

bool uni_aarch64_after_call(const uint8_t *before, uint64_t ret_addr, uint64_t *target_ret)
{
	uint32_t insn = uni_aarch64_insn(before + (UNI_CALL_BYTES - UNI_A64_INSN));
	uint64_t words = insn & 0x03ffffff;

	*target_ret = 0;
	if ((ret_addr & (UNI_A64_INSN - 1)) != 0)
		return false;
	if ((insn & BL_MASK) == BL) {
		if ((words & 0x02000000) != 0) /* negative */
			words |= ~0x03ffffffull;
		*target_ret = ret_addr - UNI_A64_INSN + words * UNI_A64_INSN;
		return true;
	}
	return (insn & BLR_MASK) == BLR || (insn & BLR_AUTH_MASK) == BLR_AUTH;
}

bool uni_aarch64_epilogue(const uint8_t *code, size_t n)
{
	for (size_t pos = 0; n - pos >= UNI_A64_INSN; pos += UNI_A64_INSN) {
		uint32_t insn = uni_aarch64_insn(code + pos);

		if (uni_aarch64_return_reg(insn) >= 0)
			return true;
		if (is_branch(insn) || may_write_lr(insn))
			return false;
	}
	return false;
}

bool uni_aarch64_clears_fp(const uint8_t *code, size_t n)
{
	for (size_t pos = 0; n - pos >= UNI_A64_INSN; pos += UNI_A64_INSN) {
		uint32_t insn = uni_aarch64_insn(code + pos);

		if (insn == MOV_FP_XZR || insn == MOV_FP_0)
			return true;
		if ((insn & LOAD_MASK) == LOAD && ((insn & 31) == FP || (insn >> 10 & 31) == FP))
			return false;
	}
	return false;
}
