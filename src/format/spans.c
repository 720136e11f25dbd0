/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/spans.h"

#include <assert.h>
#include <stdlib.h>

#include "base/cleanup.h"

struct open {
	uint32_t node;
	uint64_t begin_ns;
};

struct walk {
	const struct uni_rows *r;
	uint32_t lane;
	UNI_VEC(struct uni_row_span) spans; /* of the lane, by their ends */
	UNI_VEC(struct open) open;	    /* outermost first */
	UNI_VEC(uint32_t) path;		    /* nodes of the next sample, outermost first */
	uint64_t end_ns;		    /* of the sample before */
	bool any;
};

static int close_to(struct walk *w, size_t depth)
{
	int rc = 0;

	while (rc == 0 && w->open.nr > depth) {
		const struct open *o = &w->open.v[--w->open.nr];
		const struct uni_row_span span = { .lane = w->lane,
			.frame = uni_profile_node(w->r->p, o->node)->frame,
			.depth = (uint32_t)w->open.nr,
			.begin_ns = o->begin_ns,
			.end_ns = w->end_ns };

		if (!uni_vec_push(&w->spans, span))
			rc = -UNI_ENOMEM;
	}
	return rc;
}

static int set_path(struct walk *w, uint32_t node)
{
	size_t depth = uni_profile_depth(w->r->p, node);

	if (!uni_vec_grow(&w->path, depth + 1))
		return -UNI_ENOMEM;
	assert(w->path.v != NULL);
	w->path.nr = depth;
	for (size_t i = depth; i-- != 0; node = uni_profile_node(w->r->p, node)->parent)
		w->path.v[i] = node;
	return 0;
}

/* The sample begins at the end of the one before, unless that is far away. */
static uint64_t place_sample(const struct walk *w, uint64_t t_ns)
{
	if (!w->any)
		return t_ns;
	if (t_ns <= w->end_ns || (double)(t_ns - w->end_ns) < w->r->unit_ns)
		return w->end_ns;
	return t_ns;
}

static int add_sample_span(struct walk *w, const struct uni_row *row)
{
	uint64_t begin = place_sample(w, row->t_ns), ns = uni_row_ns(w->r, row);
	size_t same = 0;
	int rc = set_path(w, row->node);

	if (rc == 0 && w->any && begin != w->end_ns)
		rc = close_to(w, 0);
	while (same < w->open.nr && same < w->path.nr && w->open.v[same].node == w->path.v[same])
		same++;
	if (rc == 0)
		rc = close_to(w, same);
	for (size_t i = same; rc == 0 && i < w->path.nr; i++) {
		if (!uni_vec_push(&w->open, ((struct open){ w->path.v[i], begin })))
			rc = -UNI_ENOMEM;
	}
	w->any = true;
	if (__builtin_add_overflow(begin, ns, &w->end_ns))
		w->end_ns = UINT64_MAX;
	return rc;
}

static int span_order(const void *a, const void *b)
{
	const struct uni_row_span *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->depth < y->depth ? -1 : x->depth > y->depth;
}

static int give_out(
	struct walk *w, int (*fn)(void *arg, const struct uni_row_span *span), void *arg)
{
	int rc = 0;

	if (w->spans.nr != 0)
		qsort(w->spans.v, w->spans.nr, sizeof(w->spans.v[0]), span_order);
	for (size_t i = 0; rc == 0 && i < w->spans.nr; i++)
		rc = fn(arg, &w->spans.v[i]);
	w->spans.nr = 0;
	return rc;
}

int uni_rows_spans(
	const struct uni_rows *r, int (*fn)(void *arg, const struct uni_row_span *span), void *arg)
{
	_cleanup_free_ uint32_t *order = uni_rows_by_lane(r);
	struct walk w = { .r = r };
	int rc = order != NULL ? 0 : -UNI_ENOMEM;
	size_t at = 0;

	for (size_t lane = 0; rc == 0 && lane < r->lanes.nr; lane++) {
		w.lane = (uint32_t)lane;
		w.any = false;
		for (size_t i = 0; rc == 0 && i < r->lanes.v[lane].nr; i++)
			rc = add_sample_span(&w, &r->rows.v[order[at++]]);
		if (rc == 0)
			rc = close_to(&w, 0);
		if (rc == 0)
			rc = give_out(&w, fn, arg);
	}
	uni_vec_free(&w.spans);
	uni_vec_free(&w.open);
	uni_vec_free(&w.path);
	return rc;
}
