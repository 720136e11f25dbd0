/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/cfi.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "obj/cfi_priv.h"

/* Limit of instructions that are run, per byte of the sections: real images need less than one. */
#define INSNS_PER_BYTE 8u
#define PASSES_MAX     4
#define FEW_ROWS       16384u

static bool in_code(const struct uni_cfi_source *src, const struct uni_cfi_fde *f)
{
	for (size_t i = 0; i < src->nr_code; i++) {
		if (uni_range_contains(src->code[i].start, src->code[i].size, f->start, f->size))
			return true;
	}
	return false;
}

static int by_start(const void *a, const void *b)
{
	const struct uni_cfi_fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->cie < y->cie ? -1 : x->cie > y->cie;
}

/* Drops ranges that overlap a range of an earlier section. */
static void drop_overlaps(struct uni_cfi_entries *e)
{
	size_t nr = 0;

	for (size_t i = 0; i < e->fde.nr; i++) {
		struct uni_cfi_fde f = e->fde.v[i];
		struct uni_cfi_fde *last = nr != 0 ? &e->fde.v[nr - 1] : NULL;

		if (last == NULL || !uni_range_overlaps(last->start, last->size, f.start, f.size)) {
			e->fde.v[nr++] = f;
			continue;
		}
		/* An earlier section is preferred. */
		if (e->cie.v[f.cie].section < e->cie.v[last->cie].section)
			*last = f;
	}
	e->fde.nr = nr;
}

static int gather_entries(const struct uni_cfi_source *src, struct uni_cfi_entries *e)
{
	size_t nr = 0;

	for (size_t i = 0; i < src->nr_sections; i++) {
		if (!uni_cfi_parse(&src->section[i], (uint32_t)i, src->arch->word, e))
			return -UNI_ENOMEM;
	}
	for (size_t i = 0; i < e->fde.nr; i++) {
		if (in_code(src, &e->fde.v[i]))
			e->fde.v[nr++] = e->fde.v[i];
	}
	e->fde.nr = nr;
	if (nr != 0)
		qsort(e->fde.v, nr, sizeof(*e->fde.v), by_start);
	drop_overlaps(e);
	return 0;
}

static bool is_entry(const struct uni_cfi_source *src, const struct uni_cfi_fde *f)
{
	for (size_t i = 0; i < src->nr_entries; i++) {
		if (uni_range_has(f->start, f->size, src->entry[i]))
			return true;
	}
	return false;
}

/* Nobody called this function, whatever its own unwind information says. */
static void emit_root(struct uni_cfi_builder *b, uint64_t start, const struct uni_cfi_cie *cie)
{
	struct uni_cfi_state s = { 0 };

	s.cfa = (struct uni_cfi_val){ .how = UNI_CFI_REG, .reg = b->arch->sp_reg };
	for (size_t i = 0; i < UNI_REG_MAX; i++)
		s.reg[i].how = UNI_CFI_UNDEF;
	s.reg[b->arch->sp_reg].how = UNI_CFI_NONE;
	uni_cfi_emit(b, start, &s, cie);
}

static bool takes_stack(const struct uni_cfi_source *src, const struct uni_cfi_fde *f)
{
	if (src->arch->takes_stack == NULL)
		return false;
	for (size_t i = 0; i < src->nr_code; i++) {
		const struct uni_cfi_code *c = &src->code[i];

		if (c->bytes != NULL &&
			uni_range_contains(c->start, c->nr_bytes, f->start, f->size))
			return src->arch->takes_stack(
				c->bytes + (f->start - c->start), (size_t)f->size);
	}
	return false;
}

static void emit_rows(struct uni_cfi_builder *b, const struct uni_cfi_source *src,
	const struct uni_cfi_entries *e)
{
	uint64_t budget = 1024;

	for (size_t i = 0; i < src->nr_sections; i++)
		budget += src->section[i].size * INSNS_PER_BYTE;
	for (size_t i = 0; i < e->fde.nr && !b->oom; i++) {
		const struct uni_cfi_fde *f = &e->fde.v[i];
		const struct uni_cfi_cie *cie = &e->cie.v[f->cie];

		/*
		 * Rows have 32-bit offsets from the base, and each row costs at least a byte of
		 * instructions.
		 */
		if (!uni_range_contains(b->base, UINT32_MAX, f->start, f->size) ||
			b->row.nr + f->insn_size + 3 > UNI_CFI_ROWS_MAX)
			continue;
		b->takes_stack = takes_stack(src, f);
		if (is_entry(src, f))
			emit_root(b, f->start, cie);
		else
			uni_cfi_run(b, &src->section[cie->section], cie, f, &budget);
		uni_cfi_emit(b, f->size + f->start, NULL, NULL);
	}
}

/*
 * The base that rows count from. If not all code is within 4 GiB, the largest part has it. Boot
 * code may be at the bottom and the rest in the higher half. Code below the base or far above it is
 * left out.
 */
static uint64_t choose_base(const struct uni_cfi_source *src, const struct uni_cfi_entries *e)
{
	const struct uni_cfi_fde *last = &e->fde.v[e->fde.nr - 1];
	uint64_t best = e->fde.v[0].start, most = 0;

	if (last->start - best < UINT32_MAX - last->size)
		return best;
	for (size_t i = 0; i < src->nr_code; i++) {
		if (src->code[i].size > most) {
			most = src->code[i].size;
			best = src->code[i].start;
		}
	}
	return best;
}

static bool make_buckets(struct uni_cfi *c)
{
	struct uni_cfi_table *t = &c->table;
	uint32_t per_row = t->nr_rows < FEW_ROWS ? 8 : 1;
	uint32_t r = 0;

	/*
	 * About one bucket for each row, so that few search steps remain. Rows are dense where
	 * functions begin and end, so more buckets help, as long as they need little memory.
	 */
	while (t->shift < 31 && (t->size >> t->shift) > (uint64_t)t->nr_rows * per_row)
		t->shift++;
	t->nr_buckets = (t->size >> t->shift) + 1;
	c->bucket = calloc(t->nr_buckets, sizeof(*c->bucket));
	if (c->bucket == NULL)
		return false;
	for (uint32_t i = 0; i < t->nr_buckets; i++) {
		while (r + 1 < t->nr_rows && t->row[r + 1].start <= (uint64_t)i << t->shift)
			r++;
		c->bucket[i] = r;
	}
	t->bucket = c->bucket;
	return true;
}

static bool make_memo(struct uni_cfi *c)
{
	c->table.memo = malloc(UNI_CFI_MEMO * sizeof(*c->table.memo));
	for (uint32_t i = 0; c->table.memo != NULL && i < UNI_CFI_MEMO; i++)
		c->table.memo[i] = UNI_CFI_MEMO_EMPTY;
	return c->table.memo != NULL;
}

/* Takes the builder's arrays over. */
static int finish_table(struct uni_cfi_builder *b, struct uni_cfi **ret)
{
	struct uni_cfi *c;

	if (b->rule.nr < 2)
		return 0;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -UNI_ENOMEM;
	c->row = uni_take(b->row.v);
	c->rule = uni_take(b->rule.v);
	c->other = uni_take(b->other.v);
	c->op = uni_take(b->op.v);
	c->table = (struct uni_cfi_table){
		.base = b->base,
		.row = c->row,
		.rule = c->rule,
		.other = c->other,
		.op = c->op,
		.nr_rows = (uint32_t)b->row.nr,
		.nr_rules = (uint32_t)b->rule.nr,
		.nr_others = (uint32_t)b->other.nr,
		.nr_ops = (uint32_t)b->op.nr,
		.size = c->row[b->row.nr - 1].start,
		.regs = b->follow,
	};
	if (!make_buckets(c) || !make_memo(c)) {
		uni_cfi_destroy(c);
		return -UNI_ENOMEM;
	}
	*ret = c;
	return 0;
}

static void builder_deinit(struct uni_cfi_builder *b)
{
	uni_vec_free(&b->row);
	uni_vec_free(&b->rule);
	uni_vec_free(&b->other);
	uni_vec_free(&b->op);
	uni_vec_free(&b->expr);
	free(b->hash);
}

/*
 * Rows may be wrong where code takes another stack. Then callers are found by what the code reads
 * (unwind/cfi.c). It may do so by any register that calls keep.
 */
static bool needs_saved(const struct uni_arch *a, const struct uni_cfi *c)
{
	return c != NULL && a->ahead != NULL && uni_cfi_switches(&c->table, a->sp_reg) &&
	       (a->callee_saved & ~(c->table.regs | 1ull << a->sp_reg | 1ull << a->fp_reg |
					  1ull << a->pc_reg)) != 0;
}

/*
 * Most code finds its callers by sp and the frame pointer. Another register must be followed
 * through all frames only if a CFA or an expression uses it. The first pass finds that out.
 */
static int compile_table(
	const struct uni_cfi_source *src, struct uni_cfi_entries *e, struct uni_cfi **ret)
{
	uint64_t known =
		1ull << src->arch->sp_reg | 1ull << src->arch->fp_reg | 1ull << src->arch->pc_reg;
	uint64_t follow = src->follow & ~known;
	int rc;

	for (int pass = 1;; pass++) {
		struct uni_cfi_builder b = { .arch = src->arch, .follow = follow };
		struct uni_cfi_row first = { 0 };

		b.base = choose_base(src, e);
		b.oom = !uni_vec_push(&b.row, first);
		emit_rows(&b, src, e);
		if (!b.oom && (b.used & ~known & ~follow) != 0 && pass < PASSES_MAX) {
			follow |= b.used & ~known;
			builder_deinit(&b);
			continue;
		}
		if (src->bad != NULL)
			*src->bad = b.bad;
		rc = b.oom ? -UNI_ENOMEM : finish_table(&b, ret);
		builder_deinit(&b);
		if (rc != 0 || !needs_saved(src->arch, *ret))
			return rc;
		follow |= src->arch->callee_saved & ~known;
		uni_cfi_destroy(*ret);
		*ret = NULL;
	}
}

int uni_cfi_compile(const struct uni_cfi_source *src, struct uni_cfi **ret)
{
	struct uni_cfi_entries e = { 0 };
	int rc = gather_entries(src, &e);

	*ret = NULL;
	if (rc == 0 && e.fde.nr != 0)
		rc = compile_table(src, &e, ret);
	uni_vec_free(&e.cie);
	uni_vec_free(&e.fde);
	return rc;
}

void uni_cfi_destroy(struct uni_cfi *c)
{
	if (c == NULL)
		return;
	free(c->row);
	free(c->table.memo);
	free(c->bucket);
	free(c->rule);
	free(c->other);
	free(c->op);
	free(c);
}
