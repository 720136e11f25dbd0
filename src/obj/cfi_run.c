/* SPDX-License-Identifier: BSD-2-Clause */
/* Call frame instructions (DWARF 5, 6.4.2), run from a function's start to its end. */
#include <dwarf.h>
#include <string.h>

#include "base/checked.h"
#include "obj/cfi_priv.h"

#define REMEMBER_MAX 16 /* compilers nest them twice at most */

struct machine {
	struct uni_cfi_builder *b;
	const struct uni_cfi_section *s;
	const struct uni_cfi_cie *cie;
	const struct uni_cfi_fde *fde;
	struct uni_cursor c;
	uint64_t loc;
	size_t insn; /* offset of the current instruction */
	bool ended;  /* the rest describes code behind the function */
	size_t depth;
	struct uni_cfi_state cur, initial, saved[REMEMBER_MAX];
};

static bool wants_register(const struct machine *m, uint64_t reg)
{
	const struct uni_arch *a = m->b->arch;

	return reg < UNI_REG_MAX && (reg == m->cie->ra || reg == a->fp_reg || reg == a->sp_reg ||
					    (m->b->follow >> reg & 1) != 0);
}

/* A number that must fit a rule. */
static bool fits_rule(int64_t v, int32_t *ret)
{
	*ret = (int32_t)v;
	return v == *ret;
}

/* An offset in units of the CIE's data alignment. */
static bool factor_offset(const struct machine *m, int64_t n, int32_t *ret)
{
	int64_t v;

	return !__builtin_mul_overflow(n, m->cie->data_align, &v) && fits_rule(v, ret);
}

static bool set_offset(struct machine *m, uint64_t reg, enum uni_cfi_how how, int64_t n)
{
	struct uni_cfi_val v = { .how = (uint8_t)how };

	if (!wants_register(m, reg))
		return true;
	if (!factor_offset(m, n, &v.arg))
		return false;
	m->cur.reg[reg] = v;
	return true;
}

static bool set_how(struct machine *m, uint64_t reg, enum uni_cfi_how how)
{
	if (wants_register(m, reg))
		m->cur.reg[reg] = (struct uni_cfi_val){ .how = (uint8_t)how };
	return true;
}

static bool set_register(struct machine *m, uint64_t reg, uint64_t from)
{
	if (!wants_register(m, reg))
		return true;
	if (from >= UNI_REG_MAX)
		return set_how(m, reg, UNI_CFI_UNDEF);
	m->cur.reg[reg] = (struct uni_cfi_val){ .how = UNI_CFI_REG, .reg = (uint8_t)from };
	return true;
}

static bool restore_register(struct machine *m, uint64_t reg)
{
	if (reg < UNI_REG_MAX)
		m->cur.reg[reg] = m->initial.reg[reg];
	return true;
}

static bool def_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
	struct uni_cfi_val v = { .how = UNI_CFI_REG, .reg = (uint8_t)reg };

	if (reg >= UNI_REG_MAX || !fits_rule(offset, &v.arg))
		return false;
	m->cur.cfa = v;
	return true;
}

/* An expression has no offset: as in libgcc, it stays (OCaml 5's caml_c_call_stack_args). */
static bool def_cfa_offset(struct machine *m, int64_t offset)
{
	if (m->cur.cfa.how == UNI_CFI_IS_EXPR)
		return true;
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
	bool wanted = wants_register(m, reg);
	int32_t at = take_expr(m, wanted);

	if (!wanted)
		return true;
	if (at < 0) {
		/* Without the return address there is no caller; other registers are just lost. */
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

static bool remember_state(struct machine *m)
{
	if (m->depth == REMEMBER_MAX)
		return false;
	m->saved[m->depth++] = m->cur;
	return true;
}

/* As GNU tools do, but unlike the text of DWARF 5: restores the CFA, too. */
static bool recall_state(struct machine *m)
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

static bool advance_loc(struct machine *m, uint64_t n)
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

/* Runs the instructions that set a register's rule. */
static bool register_insn(struct machine *m, uint8_t op)
{
	uint64_t reg = uni_cfi_uleb(&m->c);

	switch (op) {
	case DW_CFA_offset_extended:
		return set_offset(m, reg, UNI_CFI_AT_CFA, (int64_t)uni_cfi_uleb(&m->c));
	case DW_CFA_offset_extended_sf:
		return set_offset(m, reg, UNI_CFI_AT_CFA, uni_cfi_sleb(&m->c));
	case DW_CFA_GNU_negative_offset_extended:
		return set_offset(m, reg, UNI_CFI_AT_CFA, (int64_t)(0 - uni_cfi_uleb(&m->c)));
	case DW_CFA_val_offset:
		return set_offset(m, reg, UNI_CFI_IS_CFA, (int64_t)uni_cfi_uleb(&m->c));
	case DW_CFA_val_offset_sf:
		return set_offset(m, reg, UNI_CFI_IS_CFA, uni_cfi_sleb(&m->c));
	case DW_CFA_restore_extended:
		return restore_register(m, reg);
	case DW_CFA_undefined:
		return set_how(m, reg, UNI_CFI_UNDEF);
	case DW_CFA_same_value:
		return set_how(m, reg, UNI_CFI_SAME);
	case DW_CFA_register:
		return set_register(m, reg, uni_cfi_uleb(&m->c));
	case DW_CFA_expression:
		return set_expr(m, reg, UNI_CFI_AT_EXPR);
	case DW_CFA_val_expression:
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
	case DW_CFA_def_cfa:
		reg = uni_cfi_uleb(&m->c);
		return def_cfa(m, reg, (int64_t)uni_cfi_uleb(&m->c));
	case DW_CFA_def_cfa_sf:
		reg = uni_cfi_uleb(&m->c);
		return factor_offset(m, uni_cfi_sleb(&m->c), &offset) && def_cfa(m, reg, offset);
	case DW_CFA_def_cfa_register:
		return def_cfa_register(m, uni_cfi_uleb(&m->c));
	case DW_CFA_def_cfa_offset:
		return def_cfa_offset(m, (int64_t)uni_cfi_uleb(&m->c));
	case DW_CFA_def_cfa_offset_sf:
		return factor_offset(m, uni_cfi_sleb(&m->c), &offset) && def_cfa_offset(m, offset);
	case DW_CFA_def_cfa_expression:
		return def_cfa_expr(m);
	default:
		return register_insn(m, op);
	}
}

/* False if nothing that follows can be trusted. */
static bool run_insn(struct machine *m)
{
	uint8_t op = uni_cursor_u8(&m->c), low = op & 0x3f;

	switch (op & 0xc0) { /* the upper two bits, or all bits */
	case DW_CFA_advance_loc:
		return advance_loc(m, low);
	case DW_CFA_offset:
		return set_offset(m, low, UNI_CFI_AT_CFA, (int64_t)uni_cfi_uleb(&m->c));
	case DW_CFA_restore:
		return restore_register(m, low);
	default:
		break;
	}
	switch (op) {
	case DW_CFA_nop:
	case DW_CFA_AARCH64_negate_ra_state: /* addresses are stripped, whether signed or not */
		return true;
	case DW_CFA_set_loc:
		return set_loc(m);
	case DW_CFA_advance_loc1:
		return advance_loc(m, uni_cursor_u8(&m->c));
	case DW_CFA_advance_loc2:
		return advance_loc(m, uni_cursor_u16(&m->c));
	case DW_CFA_advance_loc4:
		return advance_loc(m, uni_cursor_u32(&m->c));
	case DW_CFA_MIPS_advance_loc8:
		return advance_loc(m, uni_cursor_u64(&m->c));
	case DW_CFA_remember_state:
		return remember_state(m);
	case DW_CFA_restore_state:
		return recall_state(m);
	case DW_CFA_GNU_args_size:
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
	m->insn = at;
	while (uni_cursor_left(&m->c) != 0 && !m->ended) {
		if (*budget == 0)
			return false;
		--*budget;
		m->insn = m->c.pos;
		if (!run_insn(m) || m->c.failed)
			return false;
	}
	return true;
}

static void clear_state(struct uni_cfi_state *s)
{
	memset(s, 0, sizeof(*s));
	s->cfa.how = UNI_CFI_NONE;
	for (size_t i = 0; i < uni_array_len(s->reg); i++)
		s->reg[i].how = UNI_CFI_NONE;
}

static void count_bad(struct uni_cfi_builder *b, const struct machine *m)
{
	if (b->bad.nr++ == 0)
		b->bad = (struct uni_cfi_bad){ .nr = 1,
			.eh = m->s->eh,
			.opcode = m->insn < m->s->size ? m->s->data[m->insn] : 0,
			.entry = m->fde->at,
			.insn = m->insn,
			.start = m->fde->start };
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
	clear_state(&m.cur);
	clear_state(&m.initial);
	good = run_insns(&m, cie->insn, cie->insn_size, budget);
	/*
	 * A CIE gives the state at the start of every function: it must not advance the location.
	 */
	good = good && m.loc == fde->start;
	m.initial = m.cur;
	m.depth = 0;
	good = good && run_insns(&m, fde->insn, fde->insn_size, budget);
	if (!good)
		count_bad(b, &m);
	if (!m.ended)
		uni_cfi_emit(b, m.loc, good ? &m.cur : NULL, cie);
}
