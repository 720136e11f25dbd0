/* SPDX-License-Identifier: BSD-2-Clause */
/* From states to rows. Each different rule is stored once; equal neighbours become one row. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "obj/cfi_priv.h"

struct draft {
	struct uni_cfi_rule rule;
	struct uni_cfi_val other[UNI_REG_MAX];
};

static uint64_t reg_bit(unsigned reg)
{
	return 1ull << reg;
}

static uint64_t hash_of(const struct uni_cfi_rule *r, const struct uni_cfi_val *other)
{
	struct uni_cfi_rule key = *r;
	uint64_t h;

	key.other = 0;
	h = uni_hash_bytes(&key, sizeof(key), 0);
	return key.nr_other != 0 ? uni_hash_bytes(other, key.nr_other * sizeof(*other), h) : h;
}

static bool equal_rules(
	const struct uni_cfi_builder *b, const struct uni_cfi_rule *r, const struct draft *d)
{
	struct uni_cfi_rule a = *r, c = d->rule;

	a.other = c.other = 0;
	return memcmp(&a, &c, sizeof(a)) == 0 &&
	       (a.nr_other == 0 || memcmp(b->other.v + r->other, d->other,
					   a.nr_other * sizeof(*d->other)) == 0);
}

/* Doubles the slots, so that at most half of them are used. */
static bool rehash_rules(struct uni_cfi_builder *b)
{
	uint32_t size = b->hash_size != 0 ? 2 * b->hash_size : 1024;
	uint32_t *hash = calloc(size, sizeof(*hash));

	if (hash == NULL)
		return false;
	for (uint32_t i = 1; i < b->rule.nr; i++) {
		const struct uni_cfi_rule *r = &b->rule.v[i];
		uint32_t at = (uint32_t)hash_of(r, b->other.v + r->other) & (size - 1);

		while (hash[at] != 0)
			at = (at + 1) & (size - 1);
		hash[at] = i;
	}
	free(b->hash);
	b->hash = hash;
	b->hash_size = size;
	return true;
}

static uint32_t append_rule(struct uni_cfi_builder *b, struct draft *d)
{
	if (b->rule.nr >= UNI_CFI_RULES_MAX || b->other.nr + d->rule.nr_other > UNI_CFI_OTHERS_MAX)
		return 0;
	b->oom |= !uni_vec_grow(&b->other, d->rule.nr_other);
	if (b->oom)
		return 0;
	d->rule.other = (uint32_t)b->other.nr;
	if (d->rule.nr_other != 0)
		memcpy(b->other.v + b->other.nr, d->other, d->rule.nr_other * sizeof(*d->other));
	b->other.nr += d->rule.nr_other;
	b->oom |= !uni_vec_push(&b->rule, d->rule);
	return b->oom ? 0 : (uint32_t)b->rule.nr - 1;
}

/* The index of this rule; 0 if there is no room for it. */
static uint32_t intern_rule(struct uni_cfi_builder *b, struct draft *d)
{
	uint32_t at;

	if (b->rule.nr == 0) /* rule 0: nothing is known */
		b->oom |=
			!uni_vec_push(&b->rule, ((struct uni_cfi_rule){ .cfa.how = UNI_CFI_NONE }));
	if (2 * b->rule.nr >= b->hash_size)
		b->oom |= !rehash_rules(b);
	if (b->oom)
		return 0;
	at = (uint32_t)hash_of(&d->rule, d->other) & (b->hash_size - 1);
	while (b->hash[at] != 0) {
		if (equal_rules(b, &b->rule.v[b->hash[at]], d))
			return b->hash[at];
		at = (at + 1) & (b->hash_size - 1);
	}
	b->hash[at] = append_rule(b, d);
	return b->hash[at];
}

/* The rule of a register that the code does not mention (DWARF leaves that to the ABI). */
static struct uni_cfi_val reg_rule(
	const struct uni_arch *a, const struct uni_cfi_state *s, unsigned reg)
{
	struct uni_cfi_val v = s->reg[reg];

	if (v.how == UNI_CFI_NONE)
		v = (struct uni_cfi_val){
			.how = (a->callee_saved >> reg & 1) != 0 ? UNI_CFI_SAME : UNI_CFI_UNDEF
		};
	v.of = (uint8_t)reg;
	return v;
}

static bool ra_rule(const struct uni_arch *a, const struct uni_cfi_state *s, unsigned column,
	struct uni_cfi_val *ret)
{
	*ret = s->reg[column];
	if (ret->how == UNI_CFI_NONE || ret->how == UNI_CFI_SAME)
		*ret = (struct uni_cfi_val){ .how = UNI_CFI_REG, .reg = (uint8_t)column };
	/* A pc that is its own return address is invalid. */
	return ret->how != UNI_CFI_REG || ret->reg != a->pc_reg;
}

static void note_use(struct uni_cfi_builder *b, const struct uni_cfi_val *v)
{
	if (v->how == UNI_CFI_REG)
		b->used |= reg_bit(v->reg);
}

/* False: this state has nothing that can be used. */
static bool make_draft(struct uni_cfi_builder *b, const struct uni_cfi_state *s,
	const struct uni_cfi_cie *cie, struct draft *d)
{
	const struct uni_arch *a = b->arch;
	uint64_t rest = b->follow & ~(reg_bit(a->fp_reg) | reg_bit(a->sp_reg) | reg_bit(a->pc_reg));
	struct uni_cfi_val sp = s->reg[a->sp_reg];

	memset(&d->rule, 0, sizeof(d->rule));
	if (s->cfa.how == UNI_CFI_NONE || !ra_rule(a, s, cie->ra, &d->rule.ra))
		return false;
	d->rule.cfa = s->cfa;
	d->rule.fp = reg_rule(a, s, a->fp_reg);
	d->rule.fp.of = 0;
	/* The caller's sp is the CFA, unless there is another rule for it. */
	if (sp.how != UNI_CFI_NONE && (sp.how != UNI_CFI_IS_CFA || sp.arg != 0)) {
		sp.of = a->sp_reg;
		d->other[d->rule.nr_other++] = sp;
	}
	for (; rest != 0; rest &= rest - 1) {
		struct uni_cfi_val v = reg_rule(a, s, (unsigned)__builtin_ctzll(rest));

		if (v.how != UNI_CFI_SAME)
			d->other[d->rule.nr_other++] = v;
	}
	if (cie->signal && !uni_cfi_returns(a, &d->rule, d->other))
		d->rule.flags = UNI_CFI_SIGNAL;
	if (b->takes_stack)
		d->rule.flags |= UNI_CFI_TAKES_STACK;
	note_use(b, &d->rule.cfa);
	note_use(b, &d->rule.ra);
	note_use(b, &d->rule.fp);
	for (unsigned i = 0; i < d->rule.nr_other; i++)
		note_use(b, &d->other[i]);
	return true;
}

void uni_cfi_emit(struct uni_cfi_builder *b, uint64_t start, const struct uni_cfi_state *s,
	const struct uni_cfi_cie *cie)
{
	struct uni_cfi_row row = { .start = (uint32_t)(start - b->base) };
	struct draft d;

	if (s != NULL && make_draft(b, s, cie, &d))
		row.rule = intern_rule(b, &d);
	if (b->row.nr != 0 && b->row.v[b->row.nr - 1].start == row.start)
		b->row.nr--;
	if (b->row.nr != 0 && b->row.v[b->row.nr - 1].rule == row.rule)
		return;
	b->oom |= !uni_vec_push(&b->row, row);
}
