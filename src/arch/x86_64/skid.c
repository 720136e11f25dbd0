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

/* FF /2 and /4. jmp *table(,index,8) is a switch, whose table is known. */
static enum uni_branch by_pointer(const uint8_t *code, size_t n, uint64_t at, uint64_t *target_ret)
{
	size_t size = n >= 2 ? uni_x86_64_modrm_size(code + 1, n - 1) : 0;
	uint32_t table;

	if (size == 0)
		return UNI_BRANCH_NONE;
	switch (code[1] >> 3 & 7) {
	case 2:
		*target_ret = at + 1 + size;
		return UNI_BRANCH_POINTER;
	case 4:
		*target_ret = 0;
		if (code[1] == 0x24 && (code[2] & 0xc7) == 0xc5) {
			memcpy(&table, code + 3, sizeof(table));
			*target_ret = (uint64_t)(int64_t)(int32_t)table;
		}
		return UNI_BRANCH_INDIRECT;
	case 6: /* push */
		return UNI_BRANCH_TOP;
	default:
		return UNI_BRANCH_NONE;
	}
}

/* push; mov or xchg to (%rsp). */
static bool writes_top(const uint8_t *code, size_t n)
{
	bool is_store = code[0] == 0x87 || code[0] == 0x89 || code[0] == 0xc7;

	return (code[0] & 0xf8) == 0x50 || code[0] == 0x68 || code[0] == 0x6a ||
	       (is_store && n >= 3 && (code[1] & 0xc7) == 0x04 && code[2] == 0x24);
}

/* sub $SIZE,%rsp */
static bool makes_room(const uint8_t *code, size_t n)
{
	return n >= 3 && code[0] == 0x48 && (code[1] == 0x81 || code[1] == 0x83) && code[2] == 0xec;
}

/* add $8,%rsp; lea 8(%rsp),%rsp; pop. */
static bool drops_top(const uint8_t *code, size_t n)
{
	static const uint8_t add[] = { 0x48, 0x83, 0xc4, 8 }, lea[] = { 0x48, 0x8d, 0x64, 0x24, 8 };

	return (n >= sizeof(add) && memcmp(code, add, sizeof(add)) == 0) ||
	       (n >= sizeof(lea) && memcmp(code, lea, sizeof(lea)) == 0) ||
	       (code[n >= 2 && (code[0] & 0xf0) == 0x40] & 0xf8) == 0x58;
}

static enum uni_branch of_two_bytes(
	const uint8_t *code, size_t n, uint64_t at, uint64_t *target_ret)
{
	if (n >= 6 && (code[1] & 0xf0) == 0x80) {
		*target_ret = target_of(code, 2, at);
		return UNI_BRANCH_JUMP;
	}
	if (n >= 2 && code[1] == 0x1f)
		return UNI_BRANCH_PAD;
	if (n >= 2 && code[1] == 0x05) { /* syscall */
		*target_ret = at + 2;
		return UNI_BRANCH_TRAP;
	}
	if (n >= 2 && code[1] == 0x07) /* sysret */
		return UNI_BRANCH_AWAY;
	return n >= 2 && code[1] == 0x0b ? UNI_BRANCH_END : UNI_BRANCH_NONE; /* ud2 */
}

static enum uni_branch of_one_byte(const uint8_t *code, size_t n, uint64_t at, uint64_t *target_ret)
{
	if (n >= 2 && (code[0] == 0xeb || (code[0] & 0xf0) == 0x70 || (code[0] & 0xfc) == 0xe0)) {
		*target_ret = at + 2 + (uint64_t)(int64_t)(int8_t)code[1];
		return code[0] == 0xeb ? UNI_BRANCH_GOTO : UNI_BRANCH_JUMP;
	}
	if (n >= 5 && (code[0] == 0xe8 || code[0] == 0xe9)) {
		*target_ret = target_of(code, 1, at);
		return code[0] == 0xe8 ? UNI_BRANCH_CALL : UNI_BRANCH_GOTO;
	}
	if (n >= 2 && code[0] == 0xcd) { /* int N */
		*target_ret = at + 2;
		return UNI_BRANCH_TRAP;
	}
	if (code[0] == 0xc2 || code[0] == 0xc3)
		return UNI_BRANCH_RETURN;
	if (code[0] == 0x90)
		return UNI_BRANCH_PAD;
	if (code[0] == 0xcf) /* iret */
		return UNI_BRANCH_AWAY;
	if (code[0] == 0xcc || code[0] == 0xf4) /* int3, hlt */
		return UNI_BRANCH_END;
	return writes_top(code, n) ? UNI_BRANCH_TOP : UNI_BRANCH_NONE;
}

/* A string instruction that a prefix repeats: each turn but the first comes from itself. */
static bool is_repeated(const uint8_t *prefix, size_t nr, uint8_t op)
{
	bool is_string = (op & 0xfc) == 0x6c || (op & 0xfc) == 0xa4 || (op >= 0xaa && op <= 0xaf);

	return is_string && nr != 0 &&
	       (memchr(prefix, 0xf2, nr) != NULL || memchr(prefix, 0xf3, nr) != NULL);
}

enum uni_branch uni_x86_64_branch(const uint8_t *code, size_t n, uint64_t at, uint64_t *target_ret)
{
	size_t prefixes = uni_x86_64_prefixes(code, n);

	if (n == prefixes)
		return UNI_BRANCH_NONE;
	if (drops_top(code, n))
		return UNI_BRANCH_DROP;
	if (makes_room(code, n))
		return UNI_BRANCH_ROOM;
	if (is_repeated(code, prefixes, code[prefixes])) {
		*target_ret = at;
		return UNI_BRANCH_JUMP;
	}
	code += prefixes;
	n -= prefixes;
	at += prefixes;
	if (code[0] == 0x0f)
		return of_two_bytes(code, n, at, target_ret);
	if (code[0] == 0xff)
		return by_pointer(code, n, at, target_ret);
	return of_one_byte(code, n, at, target_ret);
}

/* The word below the stack pointer is the return address that was popped last. */
bool uni_x86_64_has_returned(struct uni_as *as, const struct uni_regs *regs)
{
	uint64_t word;

	return regs->sp_valid && uni_as_read_u64(as, uni_gva_of(regs->sp - 8), &word) == 0 &&
	       word == regs->pc;
}
