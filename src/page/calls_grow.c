/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of a trace that grows. A row's calls come in order. So each row has columns of its own,
 * which grow at their ends; the page has them one after the other. For a look, the open calls get
 * provisional ends, which are put last. The next look removes them.
 */
#include <stdlib.h>
#include <string.h>

#include "page/calls_priv.h"

enum { GAP, DUR, OFF, CPU, NODE, NR_COLUMNS };

static const char *const names[NR_COLUMNS] = { "c.gap", "c.dur", "c.off", "c.cpu", "c.node" };

/*
 * The columns of a row. `first` has the gap of the first call, which counts from the begin of all.
 */
struct row_columns {
	struct uni_column *first, *column[NR_COLUMNS];
	uint64_t begin, at; /* begin of the first call; end of the last one */
	uint64_t kept_at, kept_nr;
	bool any, kept_any;
};

/* The state before open calls got provisional ends. */
struct before {
	size_t rows, spans;
	uint64_t nr, left_out, lost;
	UNI_VEC(uint32_t) thread_rows, thread_calls;
};

struct uni_page_calls {
	struct uni_timeline tl;
	struct uni_page_whole whole;
	struct uni_part_calls part;
	struct uni_calls_adder a;
	struct before before;
	bool ended;
	UNI_VEC(struct row_columns) rows;
	struct uni_blob row_blob, tree_blob;
	struct uni_column *parent, *frame;
	uint32_t nodes; /* in the columns, with the root */
	size_t put;	/* settled calls in the columns */
	uint64_t first_ns;
};

struct uni_page_calls *uni_page_calls_create(
	const struct uni_timeline *tl, const struct uni_page_whole *whole)
{
	struct uni_page_calls *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	g->tl = *tl;
	g->whole = *whole;
	g->a = (struct uni_calls_adder){ .ret = &g->part, .tl = &g->tl, .whole = &g->whole };
	g->part.tree = uni_profile_create();
	g->parent = uni_blob_column(&g->tree_blob, "c.parent");
	g->frame = uni_blob_column(&g->tree_blob, "c.frame");
	g->nodes = 1;
	g->first_ns = UINT64_MAX;
	if (g->part.tree != NULL && g->frame != NULL) {
		uni_profile_set_unit(g->part.tree, "ns");
		return g;
	}
	uni_page_calls_destroy(g);
	return NULL;
}

void uni_page_calls_destroy(struct uni_page_calls *g)
{
	if (g == NULL)
		return;
	uni_calls_adder_deinit(&g->a);
	g->part.borrowed = false;
	uni_part_calls_deinit(&g->part);
	uni_vec_free(&g->before.thread_rows);
	uni_vec_free(&g->before.thread_calls);
	uni_vec_free(&g->rows);
	uni_blob_deinit(&g->row_blob);
	uni_blob_deinit(&g->tree_blob);
	free(g);
}

bool uni_page_calls_told(const struct uni_page_calls *g)
{
	return g->a.told;
}

bool uni_page_calls_too_many(const struct uni_page_calls *g)
{
	return g->part.store != NULL;
}

/* Restores the state before the provisional ends. */
static void reopen_calls(struct uni_page_calls *g)
{
	struct uni_calls_adder *a = &g->a;
	const struct before *b = &g->before;

	if (!g->ended)
		return;
	g->ended = false;
	for (size_t i = b->spans; i < a->spans.nr; i++)
		a->rows.v[a->spans.v[i].row].nr--;
	a->spans.nr = b->spans;
	a->rows.nr = b->rows;
	g->part.nr = b->nr;
	g->part.left_out = b->left_out;
	g->part.lost = b->lost;
	for (size_t i = 0; i < b->thread_rows.nr; i++) {
		a->threads.v[i].rows.nr = b->thread_rows.v[i];
		a->threads.v[i].calls.nr = b->thread_calls.v[i];
	}
}

static int remember_before(struct uni_page_calls *g)
{
	const struct uni_calls_adder *a = &g->a;
	struct before *b = &g->before;

	b->rows = a->rows.nr;
	b->spans = a->spans.nr;
	b->nr = g->part.nr;
	b->left_out = g->part.left_out;
	b->lost = g->part.lost;
	b->thread_rows.nr = b->thread_calls.nr = 0;
	for (size_t i = 0; i < a->threads.nr; i++) {
		if (!uni_vec_push(&b->thread_rows, (uint32_t)a->threads.v[i].rows.nr) ||
			!uni_vec_push(&b->thread_calls, (uint32_t)a->threads.v[i].calls.nr))
			return -UNI_ENOMEM;
	}
	g->ended = true;
	return 0;
}

static int unless_too_many(const struct uni_page_calls *g, int rc)
{
	return rc == 0 && uni_page_calls_too_many(g) ? -UNI_ENOTSUP : rc;
}

int uni_page_calls_read(struct uni_page_calls *g)
{
	reopen_calls(g);
	return unless_too_many(g, uni_calls_adder_read(&g->a));
}

int uni_page_calls_end(struct uni_page_calls *g, const struct uni_call_event *end, size_t nr)
{
	int rc = remember_before(g);

	for (size_t i = 0; rc == 0 && i < nr; i++)
		rc = uni_calls_adder_put(&g->a, &end[i]);
	return unless_too_many(g, rc);
}

/* Makes columns for all rows. */
static int make_rows(struct uni_page_calls *g)
{
	while (g->rows.nr < g->a.rows.nr) {
		struct row_columns r = { .first = uni_blob_column(&g->row_blob, names[GAP]) };

		for (unsigned i = 0; i < NR_COLUMNS; i++)
			r.column[i] = uni_blob_column(&g->row_blob, names[i]);
		if (g->row_blob.failed || !uni_vec_push(&g->rows, r))
			return -UNI_ENOMEM;
	}
	return 0;
}

/* Removes what the last look added after the settled part. */
static void unsettle_columns(struct row_columns *r)
{
	r->at = r->kept_at;
	r->any = r->kept_any;
	for (unsigned i = 0; i < NR_COLUMNS; i++) {
		r->column[i]->bytes.len = r->column[i]->kept;
		r->column[i]->nr = r->kept_nr - (i == GAP && r->any);
	}
}

static void settle_columns(struct row_columns *r)
{
	r->kept_at = r->at;
	r->kept_any = r->any;
	r->kept_nr = r->column[DUR]->nr;
	for (unsigned i = 0; i < NR_COLUMNS; i++)
		r->column[i]->kept = r->column[i]->bytes.len;
}

static void put_span(struct uni_page_calls *g, const struct uni_calls_span *s)
{
	struct row_columns *r = &g->rows.v[s->row];

	/* Nothing can begin before the first call. */
	if (!r->any)
		r->begin = r->at = s->begin;
	else
		uni_column_put(r->column[GAP], s->begin > r->at ? s->begin - r->at : 0);
	uni_column_put(r->column[DUR], r->any ? uni_calls_span_left(s, r->at) : s->duration);
	uni_column_put(r->column[OFF], s->off);
	uni_column_put(r->column[CPU], s->cpu);
	uni_column_put(r->column[NODE], s->node);
	r->at = uni_max(r->at, s->begin + s->duration);
	r->any = true;
}

static void put_new(struct uni_page_calls *g, size_t settled)
{
	const struct uni_calls_adder *a = &g->a;
	uint64_t first_ns;

	for (size_t i = 0; i < g->rows.nr; i++)
		unsettle_columns(&g->rows.v[i]);
	for (; g->put < settled; g->put++) {
		put_span(g, &a->spans.v[g->put]);
		g->first_ns = uni_min(g->first_ns, a->spans.v[g->put].begin);
	}
	for (size_t i = 0; i < g->rows.nr; i++)
		settle_columns(&g->rows.v[i]);
	first_ns = g->first_ns;
	for (size_t i = settled; i < a->spans.nr; i++) {
		put_span(g, &a->spans.v[i]);
		first_ns = uni_min(first_ns, a->spans.v[i].begin);
	}
	g->part.first_ns = first_ns != UINT64_MAX ? first_ns : 0;
	for (size_t i = 0; i < g->rows.nr; i++) {
		struct row_columns *r = &g->rows.v[i];

		r->first->bytes.len = 0;
		r->first->nr = 0;
		if (r->any)
			uni_column_put(r->first, r->begin - g->part.first_ns);
	}
}

static void add_part(struct uni_blob *b, struct uni_column *c, struct uni_column *part)
{
	if (c != NULL && !uni_vec_push(&c->parts, part))
		b->failed = true;
}

/* Each column of the page consists of the columns of all rows. */
static void put_rows(const struct uni_page_calls *g, struct uni_blob *b)
{
	for (unsigned i = 0; i < NR_COLUMNS; i++) {
		struct uni_column *c = uni_blob_column(b, names[i]);

		for (size_t k = 0; k < g->a.rows.nr; k++) {
			if (i == GAP)
				add_part(b, c, g->rows.v[k].first);
			add_part(b, c, g->rows.v[k].column[i]);
		}
	}
}

int uni_part_calls_growing(struct uni_blob *b, struct uni_page_calls *g, struct uni_part_calls *ret)
{
	int rc = make_rows(g);

	if (rc != 0)
		return rc;
	put_new(g, g->ended ? g->before.spans : g->a.spans.nr);
	uni_calls_put_rows(&g->a, b);
	put_rows(g, b);
	uni_part_nodes(g->parent, g->frame, g->part.tree, &g->nodes);
	g->parent->kept = g->parent->bytes.len;
	g->frame->kept = g->frame->bytes.len;
	uni_blob_borrow(b, &g->tree_blob);
	uni_calls_name_threads(&g->a);
	if (g->tl.damaged != NULL)
		g->part.damaged = g->tl.damaged(g->tl.ctx);
	*ret = g->part;
	ret->borrowed = true;
	b->failed = b->failed || uni_blob_failed(&g->row_blob) || uni_blob_failed(&g->tree_blob);
	return 0;
}
