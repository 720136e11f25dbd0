/* SPDX-License-Identifier: BSD-2-Clause */
/* Branches and returns, for a vCPU that stops between blocks of code (arch/skid.h). */
#include <string.h>

#include "arch/x86_64/x86_64.h"

static uint64_t target_of(const uint8_t *code, unsigned distance_at, uint64_t at)
{
	int32_t v;

	memcpy(&v, code + distance_at, sizeof(v));
	return at + distance_at + sizeof(v) + (uint64_t)(int64_t)v;
}

enum uni_branch uni_x86_64_branch(const uint8_t *code, size_t n, uint64_t at, uint64_t *target_ret)
{
	if (n >= 5 && code[0] == 0xe8) {
		*target_ret = target_of(code, 1, at);
		return UNI_BRANCH_CALL;
	}
	if (n >= 2 && (code[0] == 0xeb || (code[0] & 0xf0) == 0x70 || (code[0] & 0xfc) == 0xe0)) {
		*target_ret = at + 2 + (uint64_t)(int64_t)(int8_t)code[1];
		return UNI_BRANCH_JUMP;
	}
	if (n >= 5 && code[0] == 0xe9) {
		*target_ret = target_of(code, 1, at);
		return UNI_BRANCH_JUMP;
	}
	if (n >= 6 && code[0] == 0x0f && (code[1] & 0xf0) == 0x80) {
		*target_ret = target_of(code, 2, at);
		return UNI_BRANCH_JUMP;
	}
	if (n >= 2 && code[0] == 0xff && ((code[1] >> 3) & 7) == 4)
		return UNI_BRANCH_INDIRECT;
	return UNI_BRANCH_NONE;
}

/* The word below the stack pointer is the return address that was popped last. */
bool uni_x86_64_has_returned(struct uni_as *as, const struct uni_regs *regs)
{
	uint64_t word;

	return regs->sp_valid && uni_as_read_u64(as, uni_gva_of(regs->sp - 8), &word) == 0 &&
	       word == regs->pc;
}
