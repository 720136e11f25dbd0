/* SPDX-License-Identifier: BSD-2-Clause */
/* Call frame instructions (DWARF 5, 6.4.2), run from a function's start to its end. */
#include <string.h>

#include "base/checked.h"
#include "obj/cfi_priv.h"

#define REMEMBER_MAX 16 /* compilers nest them twice at most */

/* The upper two bits of an opcode, or all of it. */
enum {
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_MIPS_ADVANCE_LOC8 = 0x1d,
	CFA_AARCH64_NEGATE_RA_STATE = 0x2d, /* addresses are stripped whether signed or not */
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

struct machine {
	struct uni_cfi_builder *b;
	const struct uni_cfi_section *s;
	const struct uni_cfi_cie *cie;
	const struct uni_cfi_fde *fde;
	struct uni_cursor c;
	uint64_t loc;
	bool ended; /* the rest tells of code behind the function */
	size_t depth;
	struct uni_cfi_state cur, initial, saved[REMEMBER_MAX];
};

static bool wants(const struct machine *m, uint64_t reg)
{
	const struct uni_arch *a = m->b->arch;

	return reg < UNI_REG_MAX && (reg == m->cie->ra || reg == a->fp_reg || reg == a->sp_reg ||
					    (m->b->follow >> reg & 1) != 0);
}

/* A number that must fit a rule. */
static bool fits(int64_t v, int32_t *ret)
{
	*ret = (int32_t)v;
	return v == *ret;
}

/* An offset in units of the CIE's data alignment. */
static bool factored(const struct machine *m, int64_t n, int32_t *ret)
{
	int64_t v;

	return !__builtin_mul_overflow(n, m->cie->data_align, &v) && fits(v, ret);
}

static bool set_offset(struct machine *m, uint64_t reg, enum uni_cfi_how how, int64_t n)
{
	struct uni_cfi_val v = { .how = (uint8_t)how };

	if (!wants(m, reg))
		return true;
	if (!factored(m, n, &v.arg))
		return false;
	m->cur.reg[reg] = v;
	return true;
}

static bool set_how(struct machine *m, uint64_t reg, enum uni_cfi_how how)
{
	if (wants(m, reg))
		m->cur.reg[reg] = (struct uni_cfi_val){ .how = (uint8_t)how };
	return true;
}

static bool set_register(struct machine *m, uint64_t reg, uint64_t from)
{
	if (!wants(m, reg))
		return true;
	if (from >= UNI_REG_MAX)
		return set_how(m, reg, UNI_CFI_UNDEF);
	m->cur.reg[reg] = (struct uni_cfi_val){ .how = UNI_CFI_REG, .reg = (uint8_t)from };
	return true;
}

static bool restore(struct machine *m, uint64_t reg)
{
	if (reg < UNI_REG_MAX)
		m->cur.reg[reg] = m->initial.reg[reg];
	return true;
}

static bool def_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
	struct uni_cfi_val v = { .how = UNI_CFI_REG, .reg = (uint8_t)reg };

	if (reg >= UNI_REG_MAX || !fits(offset, &v.arg))
		return false;
	m->cur.cfa = v;
	return true;
}

static bool def_cfa_offset(struct machine *m, int64_t offset)
{
	return m->cur.cfa.how == UNI_CFI_REG && def_cfa(m, m->cur.cfa.reg, offset);
}

static bool def_cfa_register(struct machine *m, uint64_t reg)
{
	return m->cur.cfa.how == UNI_CFI_REG && def_cfa(m, reg, m->cur.cfa.arg);
}

/* The next block is an expression; -1 if it cannot be used. */
static int32_t take_expr(struct machine *m, bool wanted)
{
	uint64_t len = uni_cfi_uleb(&m->c);
	const uint8_t *p = uni_cursor_take(&m->c, len);

	return p != NULL && wanted ? uni_cfi_expr(m->b, p, len, m->cie->addr_size) : -1;
}

static bool set_expr(struct machine *m, uint64_t reg, enum uni_cfi_how how)
{
	bool wanted = wants(m, reg);
	int32_t at = take_expr(m, wanted);

	if (!wanted)
		return true;
	if (at < 0) {
		/* No caller without its address; other registers are just lost. */
		return reg != m->cie->ra && set_how(m, reg, UNI_CFI_UNDEF);
	}
	m->cur.reg[reg] = (struct uni_cfi_val){ .how = (uint8_t)how, .arg = at };
	return true;
}

static bool def_cfa_expr(struct machine *m)
{
	int32_t at = take_expr(m, true);

	m->cur.cfa = (struct uni_cfi_val){ .how = UNI_CFI_IS_EXPR, .arg = at };
	return at >= 0;
}

static bool remember(struct machine *m)
{
	if (m->depth == REMEMBER_MAX)
		return false;
	m->saved[m->depth++] = m->cur;
	return true;
}

/* GNU practice, unlike the letter of DWARF 5: the CFA is restored as well. */
static bool recall(struct machine *m)
{
	if (m->depth == 0)
		return false;
	m->cur = m->saved[--m->depth];
	return true;
}

static bool go_to(struct machine *m, uint64_t loc)
{
	if (loc < m->loc)
		return false;
	if (loc == m->loc)
		return true;
	uni_cfi_emit(m->b, m->loc, &m->cur, m->cie);
	m->ended = !uni_range_has(m->fde->start, m->fde->size, loc);
	m->loc = loc;
	return true;
}

static bool advance(struct machine *m, uint64_t n)
{
	uint64_t bytes, loc;

	if (__builtin_mul_overflow(n, m->cie->code_align, &bytes) ||
		__builtin_add_overflow(m->loc, bytes, &loc))
		return false;
	return go_to(m, loc);
}

static bool set_loc(struct machine *m)
{
	uint64_t loc;

	return uni_cfi_address(&m->c, m->cie->encoding, m->cie->addr_size, m->s->addr,
		       m->fde->start, &loc) &&
	       go_to(m, loc);
}

/* The instructions about a register and its place. */
static bool register_insn(struct machine *m, uint8_t op)
{
	uint64_t reg = uni_cfi_uleb(&m->c);

	switch (op) {
	case CFA_OFFSET_EXTENDED:
		return set_offset(m, reg, UNI_CFI_AT_CFA, (int64_t)uni_cfi_uleb(&m->c));
	case CFA_OFFSET_EXTENDED_SF:
		return set_offset(m, reg, UNI_CFI_AT_CFA, uni_cfi_sleb(&m->c));
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		return set_offset(m, reg, UNI_CFI_AT_CFA, (int64_t)(0 - uni_cfi_uleb(&m->c)));
	case CFA_VAL_OFFSET:
		return set_offset(m, reg, UNI_CFI_IS_CFA, (int64_t)uni_cfi_uleb(&m->c));
	case CFA_VAL_OFFSET_SF:
		return set_offset(m, reg, UNI_CFI_IS_CFA, uni_cfi_sleb(&m->c));
	case CFA_RESTORE_EXTENDED:
		return restore(m, reg);
	case CFA_UNDEFINED:
		return set_how(m, reg, UNI_CFI_UNDEF);
	case CFA_SAME_VALUE:
		return set_how(m, reg, UNI_CFI_SAME);
	case CFA_REGISTER:
		return set_register(m, reg, uni_cfi_uleb(&m->c));
	case CFA_EXPRESSION:
		return set_expr(m, reg, UNI_CFI_AT_EXPR);
	case CFA_VAL_EXPRESSION:
		return set_expr(m, reg, UNI_CFI_IS_EXPR);
	default:
		return false;
	}
}

static bool cfa_insn(struct machine *m, uint8_t op)
{
	uint64_t reg;
	int32_t offset;

	switch (op) {
	case CFA_DEF_CFA:
		reg = uni_cfi_uleb(&m->c);
		return def_cfa(m, reg, (int64_t)uni_cfi_uleb(&m->c));
	case CFA_DEF_CFA_SF:
		reg = uni_cfi_uleb(&m->c);
		return factored(m, uni_cfi_sleb(&m->c), &offset) && def_cfa(m, reg, offset);
	case CFA_DEF_CFA_REGISTER:
		return def_cfa_register(m, uni_cfi_uleb(&m->c));
	case CFA_DEF_CFA_OFFSET:
		return def_cfa_offset(m, (int64_t)uni_cfi_uleb(&m->c));
	case CFA_DEF_CFA_OFFSET_SF:
		return factored(m, uni_cfi_sleb(&m->c), &offset) && def_cfa_offset(m, offset);
	case CFA_DEF_CFA_EXPRESSION:
		return def_cfa_expr(m);
	default:
		return register_insn(m, op);
	}
}

/* False if nothing that follows can be trusted. */
static bool run_insn(struct machine *m)
{
	uint8_t op = uni_cursor_u8(&m->c), low = op & 0x3f;

	switch (op & 0xc0) {
	case CFA_ADVANCE_LOC:
		return advance(m, low);
	case CFA_OFFSET:
		return set_offset(m, low, UNI_CFI_AT_CFA, (int64_t)uni_cfi_uleb(&m->c));
	case CFA_RESTORE:
		return restore(m, low);
	default:
		break;
	}
	switch (op) {
	case CFA_NOP:
	case CFA_AARCH64_NEGATE_RA_STATE:
		return true;
	case CFA_SET_LOC:
		return set_loc(m);
	case CFA_ADVANCE_LOC1:
		return advance(m, uni_cursor_u8(&m->c));
	case CFA_ADVANCE_LOC2:
		return advance(m, uni_cursor_u16(&m->c));
	case CFA_ADVANCE_LOC4:
		return advance(m, uni_cursor_u32(&m->c));
	case CFA_MIPS_ADVANCE_LOC8:
		return advance(m, uni_cursor_u64(&m->c));
	case CFA_REMEMBER_STATE:
		return remember(m);
	case CFA_RESTORE_STATE:
		return recall(m);
	case CFA_GNU_ARGS_SIZE:
		(void)uni_cfi_uleb(&m->c);
		return true;
	default:
		return cfa_insn(m, op);
	}
}

static bool run_insns(struct machine *m, size_t at, size_t size, uint64_t *budget)
{
	m->c = uni_cursor_make(m->s->data, at + size);
	m->c.pos = at;
	while (uni_cursor_left(&m->c) != 0 && !m->ended) {
		if (*budget == 0)
			return false;
		--*budget;
		if (!run_insn(m) || m->c.failed)
			return false;
	}
	return true;
}

static void clear(struct uni_cfi_state *s)
{
	memset(s, 0, sizeof(*s));
	s->cfa.how = UNI_CFI_NONE;
	for (size_t i = 0; i < uni_array_len(s->reg); i++)
		s->reg[i].how = UNI_CFI_NONE;
}

void uni_cfi_run(struct uni_cfi_builder *b, const struct uni_cfi_section *s,
	const struct uni_cfi_cie *cie, const struct uni_cfi_fde *fde, uint64_t *budget)
{
	struct machine m;
	bool good;

	m.b = b;
	m.s = s;
	m.cie = cie;
	m.fde = fde;
	m.loc = fde->start;
	m.ended = false;
	m.depth = 0;
	clear(&m.cur);
	clear(&m.initial);
	good = run_insns(&m, cie->insn, cie->insn_size, budget);
	/* A CIE says how every function begins: it has no place to move to. */
	good = good && m.loc == fde->start;
	m.initial = m.cur;
	m.depth = 0;
	good = good && run_insns(&m, fde->insn, fde->insn_size, budget);
	if (!m.ended)
		uni_cfi_emit(b, m.loc, good ? &m.cur : NULL, cie);
}
