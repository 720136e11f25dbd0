/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DWARF expressions (DWARF 5, 2.5) as they occur in call frame information, turned into checked
 * operations of fixed size. So the unwinder never meets an incomplete or unknown operation, and
 * every branch leads to the start of one. Operations that do not belong here (objects, thread-local
 * storage, calls) make the whole expression useless; so does an absolute address.
 */
#include <dwarf.h>
#include <string.h>

#include "base/checked.h"
#include "obj/cfi_priv.h"

/* Operations without operands, by DWARF opcode. */
static const uint8_t plain[] = {
	[DW_OP_swap] = UNI_CFI_OP_SWAP,
	[DW_OP_rot] = UNI_CFI_OP_ROT,
	[DW_OP_abs] = UNI_CFI_OP_ABS,
	[DW_OP_and] = UNI_CFI_OP_AND,
	[DW_OP_div] = UNI_CFI_OP_DIV,
	[DW_OP_minus] = UNI_CFI_OP_SUB,
	[DW_OP_mod] = UNI_CFI_OP_MOD,
	[DW_OP_mul] = UNI_CFI_OP_MUL,
	[DW_OP_neg] = UNI_CFI_OP_NEG,
	[DW_OP_not] = UNI_CFI_OP_NOT,
	[DW_OP_or] = UNI_CFI_OP_OR,
	[DW_OP_plus] = UNI_CFI_OP_ADD,
	[DW_OP_shl] = UNI_CFI_OP_SHL,
	[DW_OP_shr] = UNI_CFI_OP_SHR,
	[DW_OP_shra] = UNI_CFI_OP_SHRA,
	[DW_OP_xor] = UNI_CFI_OP_XOR,
	[DW_OP_eq] = UNI_CFI_OP_EQ,
	[DW_OP_ge] = UNI_CFI_OP_GE,
	[DW_OP_gt] = UNI_CFI_OP_GT,
	[DW_OP_le] = UNI_CFI_OP_LE,
	[DW_OP_lt] = UNI_CFI_OP_LT,
	[DW_OP_ne] = UNI_CFI_OP_NE,
};

/* An expression while it is read: each operation with its offset in the expression. */
struct reader {
	struct uni_cursor c;
	unsigned addr_size;
	uint64_t used;
	size_t nr;
	struct uni_cfi_op op[UNI_CFI_OPS_MAX];
	size_t at[UNI_CFI_OPS_MAX + 1];
};

static bool decode_constant(int64_t v, struct uni_cfi_op *ret)
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

static bool decode_load(uint64_t bytes, struct uni_cfi_op *ret)
{
	ret->opcode = UNI_CFI_OP_LOAD;
	ret->arg = (int64_t)bytes;
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

static bool decode_pick(uint64_t depth, struct uni_cfi_op *ret)
{
	ret->opcode = UNI_CFI_OP_PICK;
	ret->arg = (int64_t)depth;
	return depth < UNI_CFI_EXPR_STACK;
}

/* arg is an offset in the expression; link_branches() replaces it by an operation's index. */
static bool decode_jump(struct reader *r, enum uni_cfi_opcode opcode, struct uni_cfi_op *ret)
{
	int16_t by = (int16_t)uni_cursor_u16(&r->c);

	ret->opcode = opcode;
	ret->arg = (int64_t)r->c.pos + by;
	return true;
}

static bool read_constant(struct reader *r, uint8_t op, struct uni_cfi_op *ret)
{
	switch (op) {
	case DW_OP_const1u:
		return decode_constant(uni_cursor_u8(&r->c), ret);
	case DW_OP_const1s:
		return decode_constant((int8_t)uni_cursor_u8(&r->c), ret);
	case DW_OP_const2u:
		return decode_constant(uni_cursor_u16(&r->c), ret);
	case DW_OP_const2s:
		return decode_constant((int16_t)uni_cursor_u16(&r->c), ret);
	case DW_OP_const4u:
		return decode_constant(uni_cursor_u32(&r->c), ret);
	case DW_OP_const4s:
		return decode_constant((int32_t)uni_cursor_u32(&r->c), ret);
	case DW_OP_const8u:
	case DW_OP_const8s:
		return decode_constant((int64_t)uni_cursor_u64(&r->c), ret);
	case DW_OP_constu:
		return decode_constant((int64_t)uni_cfi_uleb(&r->c), ret);
	case DW_OP_consts:
		return decode_constant(uni_cfi_sleb(&r->c), ret);
	default:
		return false;
	}
}

static bool read_op(struct reader *r, struct uni_cfi_op *ret)
{
	uint8_t op = uni_cursor_u8(&r->c);

	*ret = (struct uni_cfi_op){ 0 };
	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		return decode_constant(op - DW_OP_lit0, ret);
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		return from_register(r, op - DW_OP_breg0, ret);
	if (op < uni_array_len(plain) && plain[op] != 0) {
		ret->opcode = plain[op];
		return true;
	}
	switch (op) {
	case DW_OP_deref:
		return decode_load(r->addr_size, ret);
	case DW_OP_deref_size:
		return decode_load(uni_cursor_u8(&r->c), ret);
	case DW_OP_dup:
		return decode_pick(0, ret);
	case DW_OP_over:
		return decode_pick(1, ret);
	case DW_OP_pick:
		return decode_pick(uni_cursor_u8(&r->c), ret);
	case DW_OP_drop:
		ret->opcode = UNI_CFI_OP_DROP;
		return true;
	case DW_OP_plus_uconst:
		ret->opcode = UNI_CFI_OP_ADD_CONST;
		ret->arg = (int64_t)uni_cfi_uleb(&r->c);
		return true;
	case DW_OP_skip:
		return decode_jump(r, UNI_CFI_OP_SKIP, ret);
	case DW_OP_bra:
		return decode_jump(r, UNI_CFI_OP_BRANCH, ret);
	case DW_OP_bregx:
		return from_register(r, uni_cfi_uleb(&r->c), ret);
	case DW_OP_nop:
		ret->opcode = UNI_CFI_OP_ADD_CONST;
		return true;
	default:
		return read_constant(r, op, ret);
	}
}

/* Turns branches from offsets to indices; a branch may lead to the end. */
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

/* Are the operations from op[first] on the same, except for their place? */
static bool is_same_expr(const struct uni_cfi_builder *b, uint32_t first, const struct reader *r)
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
		if (is_same_expr(b, b->expr.v[i], &r))
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
