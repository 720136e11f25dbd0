/* SPDX-License-Identifier: BSD-2-Clause */
/* Code that goes on on another stack: where it loads rsp, and which register keeps the old one. */
#include <string.h>

#include "arch/arch.h"
#include "arch/x86_64/x86_64.h"

#define REX_W	  8u
#define REX_R	  4u
#define REX_B	  1u
#define ENC_RSP	  4u
#define MOV_STORE 0x89 /* of a register, to a register or memory */
#define MOV_LOAD  0x8b

/* A move with a REX prefix. */
struct move {
	uint8_t op;
	bool is_mem;	/* else rm is a register */
	unsigned r, rm; /* numbers in the code */
};

static bool as_move(const uint8_t *code, size_t n, struct move *ret)
{
	if (n < 3 || (code[0] & 0xf0) != 0x40 || (code[0] & REX_W) == 0 ||
		(code[1] != MOV_STORE && code[1] != MOV_LOAD))
		return false;
	*ret = (struct move){ .op = code[1],
		.is_mem = code[2] >> 6 != 3,
		.r = (code[2] >> 3 & 7u) | (code[0] & REX_R) << 1,
		.rm = (code[2] & 7u) | (code[0] & REX_B) << 3 };
	return true;
}

static bool loads_sp(const uint8_t *code, size_t n)
{
	struct move m;

	return as_move(code, n, &m) && m.op == MOV_LOAD && m.is_mem && m.r == ENC_RSP;
}

bool uni_x86_64_takes_stack(const uint8_t *code, size_t n)
{
	for (size_t i = 1; i + 2 <= n; i++) {
		const uint8_t *at = memchr(code + i, MOV_LOAD, n - i - 1);

		if (at == NULL)
			return false;
		i = (size_t)(at - code);
		if (loads_sp(at - 1, n - i + 1))
			return true;
	}
	return false;
}

/* mov %rsp,%REG of a register that calls keep. */
static bool keeps_sp(const uint8_t *code, size_t n, unsigned *reg_ret)
{
	struct move m;

	if (!as_move(code, n, &m) || m.is_mem)
		return false;
	if (m.op == MOV_STORE && m.r == ENC_RSP)
		*reg_ret = uni_x86_64_dwarf(m.rm);
	else if (m.op == MOV_LOAD && m.rm == ENC_RSP)
		*reg_ret = uni_x86_64_dwarf(m.r);
	else
		return false;
	return (uni_arch_x86_64.callee_saved >> *reg_ret & 1) != 0 && *reg_ret != UNI_X86_RSP &&
	       *reg_ret != UNI_X86_RBP;
}

/* mov %REG,%rsp: the stack of before, again. */
static bool takes_back(const uint8_t *code, size_t n, unsigned reg)
{
	struct move m;

	return as_move(code, n, &m) && !m.is_mem &&
	       ((m.op == MOV_STORE && m.rm == ENC_RSP && uni_x86_64_dwarf(m.r) == reg) ||
		       (m.op == MOV_LOAD && m.r == ENC_RSP && uni_x86_64_dwarf(m.rm) == reg));
}

/* May this instruction write another register than rsp and those that calls do not keep? */
static bool may_write(const uint8_t *code, size_t n, unsigned reg)
{
	bool has_rex = (code[0] & 0xf0) == 0x40;
	const uint8_t *op = code + has_rex;
	struct move m;

	if (n <= has_rex)
		return true;
	if (as_move(code, n, &m))
		return uni_x86_64_dwarf(m.op == MOV_LOAD ? m.r : m.rm) == reg &&
		       (m.op == MOV_LOAD || !m.is_mem);
	if (op[0] == 0x8d && n >= has_rex + 2u) /* lea */
		return uni_x86_64_dwarf((op[1] >> 3 & 7u) |
					(has_rex && (code[0] & REX_R) != 0 ? 8u : 0)) == reg;
	/* call; jumps on a condition; mov and test of a number and memory */
	if (op[0] == 0xe8 || (op[0] & 0xf0) == 0x70)
		return false;
	return !((op[0] == 0xc7 || op[0] == 0xf6 || op[0] == 0xf7) && n >= has_rex + 2u &&
		 op[1] >> 6 != 3 && (op[1] >> 3 & 7u) == 0);
}

static bool ends_straight(const uint8_t *code, size_t n)
{
	return code[0] == 0xc3 || code[0] == 0xe9 || code[0] == 0xeb ||
	       (n >= 2 && code[0] == 0xff && (code[1] >> 3 & 7u) == 4);
}

void uni_x86_64_find_stack(const uint8_t *code, size_t n, struct uni_taken_stack *ret)
{
	size_t size;

	*ret = (struct uni_taken_stack){ 0 };
	for (size_t i = 0; i < n; i += size) {
		unsigned reg;

		size = uni_x86_64_insn_size(code + i, n - i);
		if (size == 0 || size > n - i || ends_straight(code + i, size)) {
			*ret = (struct uni_taken_stack){ 0 };
			size = size == 0 || size > n - i ? 1 : size;
		} else if (loads_sp(code + i, size)) {
			ret->taken = true;
		} else if (ret->kept && takes_back(code + i, size, ret->reg)) {
			ret->taken = false;
		} else if (!ret->taken && keeps_sp(code + i, size, &reg)) {
			ret->kept = true;
			ret->reg = (uint8_t)reg;
			ret->at = (uint32_t)i;
		} else if (ret->kept && may_write(code + i, size, ret->reg)) {
			ret->kept = false;
		}
	}
}
