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

/* The length of FF /2 with its ModRM byte, SIB and displacement; 0: it does not fit. SDM 2.1.3. */
static size_t pointer_call_size(const uint8_t *code, size_t n)
{
	unsigned mod = n >= 2 ? code[1] >> 6 : 0, rm = n >= 2 ? code[1] & 7 : 0;
	size_t size = 2;

	if (mod != 3 && rm == 4)
		size++;
	if (mod == 1)
		size++;
	else if (mod == 2 || (mod == 0 && (rm == 5 || (rm == 4 && n >= 3 && (code[2] & 7) == 5))))
		size += 4;
	return size <= n ? size : 0;
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
	if (n >= 2 && code[0] == 0xff && ((code[1] >> 3) & 7) == 2 &&
		pointer_call_size(code, n) != 0) {
		*target_ret = at + pointer_call_size(code, n);
		return UNI_BRANCH_POINTER;
	}
	return UNI_BRANCH_NONE;
}

/* The word below the stack pointer is the return address that was popped last. */
bool uni_x86_64_has_returned(struct uni_as *as, const struct uni_regs *regs)
{
	uint64_t word;

	return regs->sp_valid && uni_as_read_u64(as, uni_gva_of(regs->sp - 8), &word) == 0 &&
	       word == regs->pc;
}
