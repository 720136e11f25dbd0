/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DWARF expressions (DWARF 5, 2.5) as they occur in call frame information, turned into checked
 * operations of fixed size: whatever the unwinder finds, no operation is cut short or unknown to it
 * and every branch leads to the start of one. Those that have no place here (objects, thread-local
 * storage, calls) make the whole expression useless, and so does an absolute address.
 */
#include <string.h>

#include "base/checked.h"
#include "obj/cfi_priv.h"

enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S = 0x09,
	OP_CONST2U = 0x0a,
	OP_CONST2S = 0x0b,
	OP_CONST4U = 0x0c,
	OP_CONST4S = 0x0d,
	OP_CONST8U = 0x0e,
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_PICK = 0x15,
	OP_PLUS_UCONST = 0x23,
	OP_BRA = 0x28,
	OP_SKIP = 0x2f,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_DEREF_SIZE = 0x94,
	OP_NOP = 0x96,
};

/* Operations without operands, by DWARF opcode. */
static const uint8_t plain[] = {
	[0x16] = UNI_CFI_OP_SWAP,
	[0x17] = UNI_CFI_OP_ROT,
	[0x19] = UNI_CFI_OP_ABS,
	[0x1a] = UNI_CFI_OP_AND,
	[0x1b] = UNI_CFI_OP_DIV,
	[0x1c] = UNI_CFI_OP_SUB,
	[0x1d] = UNI_CFI_OP_MOD,
	[0x1e] = UNI_CFI_OP_MUL,
	[0x1f] = UNI_CFI_OP_NEG,
	[0x20] = UNI_CFI_OP_NOT,
	[0x21] = UNI_CFI_OP_OR,
	[0x22] = UNI_CFI_OP_ADD,
	[0x24] = UNI_CFI_OP_SHL,
	[0x25] = UNI_CFI_OP_SHR,
	[0x26] = UNI_CFI_OP_SHRA,
	[0x27] = UNI_CFI_OP_XOR,
	[0x29] = UNI_CFI_OP_EQ,
	[0x2a] = UNI_CFI_OP_GE,
	[0x2b] = UNI_CFI_OP_GT,
	[0x2c] = UNI_CFI_OP_LE,
	[0x2d] = UNI_CFI_OP_LT,
	[0x2e] = UNI_CFI_OP_NE,
};

/* An expression while it is read: each operation with where it stood. */
struct reader {
	struct uni_cursor c;
	unsigned addr_size;
	uint64_t used;
	size_t nr;
	struct uni_cfi_op op[UNI_CFI_OPS_MAX];
	size_t at[UNI_CFI_OPS_MAX + 1];
};

static bool constant(int64_t v, struct uni_cfi_op *ret)
{
	ret->opcode = UNI_CFI_OP_CONST;
	ret->arg = v;
	return true;
}

static bool from_register(struct reader *r, uint64_t reg, struct uni_cfi_op *ret)
{
	ret->opcode = UNI_CFI_OP_REG;
	ret->arg2 = (uint32_t)reg;
	ret->arg = uni_cfi_sleb(&r->c);
	if (reg >= UNI_REG_MAX)
		return false;
	r->used |= 1ull << reg;
	return true;
}

static bool load(uint64_t bytes, struct uni_cfi_op *ret)
{
	ret->opcode = UNI_CFI_OP_LOAD;
	ret->arg = (int64_t)bytes;
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

static bool pick(uint64_t depth, struct uni_cfi_op *ret)
{
	ret->opcode = UNI_CFI_OP_PICK;
	ret->arg = (int64_t)depth;
	return depth < UNI_CFI_EXPR_STACK;
}

/* arg is the offset in the expression until link_branches() turns it into an operation's index. */
static bool jump(struct reader *r, enum uni_cfi_opcode opcode, struct uni_cfi_op *ret)
{
	int16_t by = (int16_t)uni_cursor_u16(&r->c);

	ret->opcode = opcode;
	ret->arg = (int64_t)r->c.pos + by;
	return true;
}

static bool read_constant(struct reader *r, uint8_t op, struct uni_cfi_op *ret)
{
	switch (op) {
	case OP_CONST1U:
		return constant(uni_cursor_u8(&r->c), ret);
	case OP_CONST1S:
		return constant((int8_t)uni_cursor_u8(&r->c), ret);
	case OP_CONST2U:
		return constant(uni_cursor_u16(&r->c), ret);
	case OP_CONST2S:
		return constant((int16_t)uni_cursor_u16(&r->c), ret);
	case OP_CONST4U:
		return constant(uni_cursor_u32(&r->c), ret);
	case OP_CONST4S:
		return constant((int32_t)uni_cursor_u32(&r->c), ret);
	case OP_CONST8U:
	case OP_CONST8S:
		return constant((int64_t)uni_cursor_u64(&r->c), ret);
	case OP_CONSTU:
		return constant((int64_t)uni_cfi_uleb(&r->c), ret);
	case OP_CONSTS:
		return constant(uni_cfi_sleb(&r->c), ret);
	default:
		return false;
	}
}

static bool read_op(struct reader *r, struct uni_cfi_op *ret)
{
	uint8_t op = uni_cursor_u8(&r->c);

	*ret = (struct uni_cfi_op){ 0 };
	if (op >= OP_LIT0 && op <= OP_LIT31)
		return constant(op - OP_LIT0, ret);
	if (op >= OP_BREG0 && op <= OP_BREG31)
		return from_register(r, op - OP_BREG0, ret);
	if (op < uni_array_len(plain) && plain[op] != 0) {
		ret->opcode = plain[op];
		return true;
	}
	switch (op) {
	case OP_DEREF:
		return load(r->addr_size, ret);
	case OP_DEREF_SIZE:
		return load(uni_cursor_u8(&r->c), ret);
	case OP_DUP:
		return pick(0, ret);
	case OP_OVER:
		return pick(1, ret);
	case OP_PICK:
		return pick(uni_cursor_u8(&r->c), ret);
	case OP_DROP:
		ret->opcode = UNI_CFI_OP_DROP;
		return true;
	case OP_PLUS_UCONST:
		ret->opcode = UNI_CFI_OP_ADD_CONST;
		ret->arg = (int64_t)uni_cfi_uleb(&r->c);
		return true;
	case OP_SKIP:
		return jump(r, UNI_CFI_OP_SKIP, ret);
	case OP_BRA:
		return jump(r, UNI_CFI_OP_BRANCH, ret);
	case OP_BREGX:
		return from_register(r, uni_cfi_uleb(&r->c), ret);
	case OP_NOP:
		ret->opcode = UNI_CFI_OP_ADD_CONST;
		return true;
	default:
		return read_constant(r, op, ret);
	}
}

/* Branches from offsets to indices; one may lead to the end. */
static bool link_branches(struct reader *r)
{
	for (size_t i = 0; i < r->nr; i++) {
		struct uni_cfi_op *op = &r->op[i];
		size_t to = 0;

		if (op->opcode != UNI_CFI_OP_SKIP && op->opcode != UNI_CFI_OP_BRANCH)
			continue;
		while (to <= r->nr && (int64_t)r->at[to] != op->arg)
			to++;
		if (to > r->nr)
			return false;
		op->arg = (int64_t)to;
	}
	return true;
}

static bool read_expr(struct reader *r)
{
	while (uni_cursor_left(&r->c) != 0) {
		if (r->nr == UNI_CFI_OPS_MAX - 1)
			return false;
		r->at[r->nr] = r->c.pos;
		if (!read_op(r, &r->op[r->nr]) || r->c.failed)
			return false;
		r->nr++;
	}
	r->at[r->nr] = r->c.pos;
	return r->nr != 0;
}

/* The same operations as those from op[first] on, but for where they lie? */
static bool same(const struct uni_cfi_builder *b, uint32_t first, const struct reader *r)
{
	if (first + r->nr >= b->op.nr || b->op.v[first + r->nr].opcode != UNI_CFI_OP_END)
		return false;
	for (size_t i = 0; i < r->nr; i++) {
		const struct uni_cfi_op *x = &b->op.v[first + i], *y = &r->op[i];
		int64_t arg = y->arg;

		if (y->opcode == UNI_CFI_OP_SKIP || y->opcode == UNI_CFI_OP_BRANCH)
			arg += first;
		if (x->opcode != y->opcode || x->arg2 != y->arg2 || x->arg != arg)
			return false;
	}
	return true;
}

int32_t uni_cfi_expr(
	struct uni_cfi_builder *b, const uint8_t *data, size_t size, unsigned addr_size)
{
	struct reader r = { .c = uni_cursor_make(data, size), .addr_size = addr_size };
	uint32_t first = (uint32_t)b->op.nr;

	if (!read_expr(&r) || !link_branches(&r))
		return -1;
	b->used |= r.used;
	for (size_t i = 0; i < b->expr.nr; i++) {
		if (same(b, b->expr.v[i], &r))
			return (int32_t)b->expr.v[i];
	}
	if (b->expr.nr == UNI_CFI_EXPRS_MAX)
		return -1;
	b->oom |= !uni_vec_grow(&b->op, r.nr + 1) || !uni_vec_push(&b->expr, first);
	if (b->oom)
		return -1;
	for (size_t i = 0; i < r.nr; i++) {
		if (r.op[i].opcode == UNI_CFI_OP_SKIP || r.op[i].opcode == UNI_CFI_OP_BRANCH)
			r.op[i].arg += first;
	}
	memcpy(b->op.v + first, r.op, r.nr * sizeof(*r.op));
	b->op.nr += r.nr;
	b->op.v[b->op.nr++] = (struct uni_cfi_op){ .opcode = UNI_CFI_OP_END };
	return (int32_t)first;
}
