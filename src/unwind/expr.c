/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/expr.h"

struct stack {
	uint64_t v[UNI_CFI_EXPR_STACK];
	unsigned nr;
};

bool uni_cfi_register(
	const struct uni_arch *arch, const struct uni_regs *regs, unsigned reg, uint64_t *ret)
{
	if (reg == arch->sp_reg) {
		*ret = regs->sp;
		return regs->sp_valid;
	}
	if (reg == arch->pc_reg) {
		*ret = regs->pc;
		return regs->pc_valid;
	}
	return uni_regs_get(regs, reg, ret);
}

static bool push_operand(struct stack *s, uint64_t v)
{
	if (s->nr == UNI_CFI_EXPR_STACK)
		return false;
	s->v[s->nr++] = v;
	return true;
}

static int load_operand(struct uni_as *as, uint64_t *top, size_t bytes)
{
	uint8_t b[8];
	int rc = uni_as_read(as, uni_gva_of(*top), b, bytes);

	if (rc != 0)
		return rc;
	*top = 0;
	for (size_t i = 0; i < bytes; i++)
		*top |= (uint64_t)b[i] << (8 * i);
	return 0;
}

/* Division by zero has no value; the most negative number by -1 wraps. */
static bool divide_signed(uint64_t a, uint64_t b, uint64_t *ret)
{
	if (b == 0)
		return false;
	*ret = b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b);
	return true;
}

static uint64_t shift_right(uint64_t a, uint64_t by, bool sign)
{
	uint64_t fill = sign && (a >> 63) != 0 ? UINT64_MAX : 0;

	if (by == 0)
		return a;
	return by < 64 ? a >> by | fill << (64 - by) : fill;
}

/* a is below b on the stack. False: no value. */
static bool binary_op(uint32_t opcode, uint64_t a, uint64_t b, uint64_t *ret)
{
	int64_t x = (int64_t)a, y = (int64_t)b;

	switch (opcode) {
	case UNI_CFI_OP_ADD:
		*ret = a + b;
		return true;
	case UNI_CFI_OP_SUB:
		*ret = a - b;
		return true;
	case UNI_CFI_OP_MUL:
		*ret = a * b;
		return true;
	case UNI_CFI_OP_DIV:
		return divide_signed(a, b, ret);
	case UNI_CFI_OP_MOD:
		*ret = b != 0 ? a % b : 0;
		return b != 0;
	case UNI_CFI_OP_AND:
		*ret = a & b;
		return true;
	case UNI_CFI_OP_OR:
		*ret = a | b;
		return true;
	case UNI_CFI_OP_XOR:
		*ret = a ^ b;
		return true;
	case UNI_CFI_OP_SHL:
		*ret = b < 64 ? a << b : 0;
		return true;
	case UNI_CFI_OP_SHR:
		*ret = shift_right(a, b, false);
		return true;
	case UNI_CFI_OP_SHRA:
		*ret = shift_right(a, b, true);
		return true;
	case UNI_CFI_OP_EQ:
		*ret = x == y;
		return true;
	case UNI_CFI_OP_NE:
		*ret = x != y;
		return true;
	case UNI_CFI_OP_GE:
		*ret = x >= y;
		return true;
	case UNI_CFI_OP_GT:
		*ret = x > y;
		return true;
	case UNI_CFI_OP_LE:
		*ret = x <= y;
		return true;
	case UNI_CFI_OP_LT:
		*ret = x < y;
		return true;
	default:
		return false;
	}
}

static bool unary_op(const struct uni_cfi_op *op, uint64_t *top)
{
	switch (op->opcode) {
	case UNI_CFI_OP_ABS:
		*top = *top >> 63 != 0 ? 0 - *top : *top;
		return true;
	case UNI_CFI_OP_NEG:
		*top = 0 - *top;
		return true;
	case UNI_CFI_OP_NOT:
		*top = ~*top;
		return true;
	case UNI_CFI_OP_ADD_CONST:
		*top += (uint64_t)op->arg;
		return true;
	default:
		return false;
	}
}

/* Operations that move elements around. */
static bool shuffle_stack(struct stack *s, const struct uni_cfi_op *op)
{
	uint64_t *top = s->nr != 0 ? &s->v[s->nr - 1] : NULL, t;

	switch (op->opcode) {
	case UNI_CFI_OP_PICK:
		return (uint64_t)op->arg < s->nr &&
		       push_operand(s, s->v[s->nr - 1 - (size_t)op->arg]);
	case UNI_CFI_OP_DROP:
		s->nr -= s->nr != 0;
		return top != NULL;
	case UNI_CFI_OP_SWAP:
		if (s->nr < 2)
			return false;
		t = top[0];
		top[0] = top[-1];
		top[-1] = t;
		return true;
	case UNI_CFI_OP_ROT: /* the top goes below the next two */
		if (s->nr < 3)
			return false;
		t = top[0];
		top[0] = top[-1];
		top[-1] = top[-2];
		top[-2] = t;
		return true;
	default:
		return false;
	}
}

static bool compute_op(struct stack *s, const struct uni_cfi_op *op)
{
	if (op->opcode >= UNI_CFI_OP_PICK && op->opcode <= UNI_CFI_OP_ROT)
		return shuffle_stack(s, op);
	if (s->nr >= 1 && op->opcode >= UNI_CFI_OP_ABS && op->opcode <= UNI_CFI_OP_ADD_CONST)
		return unary_op(op, &s->v[s->nr - 1]);
	if (s->nr < 2 || !binary_op(op->opcode, s->v[s->nr - 2], s->v[s->nr - 1], &s->v[s->nr - 2]))
		return false;
	s->nr--;
	return true;
}

int uni_cfi_eval(const struct uni_cfi_table *t, uint32_t first, const struct uni_arch *arch,
	struct uni_as *as, const struct uni_regs *regs, const uint64_t *cfa, uint64_t *ret)
{
	struct stack s = { .nr = 0 };
	uint64_t v;
	uint32_t at = first;
	int rc;

	if (cfa != NULL)
		(void)push_operand(&s, *cfa);
	for (unsigned steps = 0; steps < UNI_CFI_EXPR_STEPS; steps++) {
		const struct uni_cfi_op *op = &t->op[at++];
		bool ok = true;

		switch (op->opcode) {
		case UNI_CFI_OP_END:
			if (s.nr == 0)
				return -UNI_EINVAL;
			*ret = s.v[s.nr - 1];
			return 0;
		case UNI_CFI_OP_CONST:
			ok = push_operand(&s, (uint64_t)op->arg);
			break;
		case UNI_CFI_OP_REG:
			ok = uni_cfi_register(arch, regs, op->arg2, &v) &&
			     push_operand(&s, v + (uint64_t)op->arg);
			break;
		case UNI_CFI_OP_LOAD:
			if (s.nr == 0)
				return -UNI_EINVAL;
			rc = load_operand(as, &s.v[s.nr - 1], (size_t)op->arg);
			if (rc != 0)
				return rc;
			break;
		case UNI_CFI_OP_SKIP:
			at = (uint32_t)op->arg;
			break;
		case UNI_CFI_OP_BRANCH:
			if (s.nr == 0)
				return -UNI_EINVAL;
			if (s.v[--s.nr] != 0)
				at = (uint32_t)op->arg;
			break;
		default:
			ok = compute_op(&s, op);
			break;
		}
		if (!ok)
			return -UNI_EINVAL;
	}
	return -UNI_EINVAL;
}
