/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls become rows. A row has all calls of a thread at one depth, one after the other, which never
 * overlap. Calls are reported at their end, so within a row they come in order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "page/calls_priv.h"
#include "page/parts.h"
#include "page/prune.h"
#include "page/store.h"

#define STORE_MAX  (UINT64_C(256) << 20) /* calls of a store; 16 bytes each */
#define OUTLINE_PX 2048

static uint32_t frame_of(struct uni_calls_adder *a, uint32_t func)
{
	const char *name;

	while (func >= a->frames.nr) {
		if (!uni_vec_push(&a->frames, UNI_NODE_NONE))
			return UNI_NODE_NONE;
	}
	if (a->frames.v[func] == UNI_NODE_NONE) {
		name = a->tl->func(a->tl->ctx, func);
		if (name[0] == '\0')
			name = "[unknown]";
		a->frames.v[func] = uni_profile_frame_named(
			a->ret->tree, name, strlen(name), uni_frame_kind_of(name));
	}
	return a->frames.v[func];
}

static struct uni_calls_open *thread_of(struct uni_calls_adder *a, uint32_t number)
{
	while (number >= a->threads.nr) {
		if (!uni_vec_push(&a->threads, (struct uni_calls_open){ 0 }) ||
			!uni_vec_push(&a->ret->threads, (struct uni_part_thread){ 0 }))
			return NULL;
	}
	return &a->threads.v[number];
}

/* The row of this thread at this depth; UINT32_MAX: out of memory. */
static uint32_t row_of(struct uni_calls_adder *a, uint32_t thread, uint32_t depth)
{
	struct uni_calls_open *t = thread_of(a, thread);

	while (t != NULL && depth >= t->rows.nr) {
		struct uni_calls_row r = { .thread = thread, .depth = (uint32_t)t->rows.nr };

		if (!uni_vec_push(&t->rows, (uint32_t)a->rows.nr) || !uni_vec_push(&a->rows, r))
			return UINT32_MAX;
	}
	return t != NULL ? t->rows.v[depth] : UINT32_MAX;
}

/* The store's row for this row's calls on that vCPU; mostly it is the last call's. */
static int64_t kept_row(struct uni_calls_adder *a, struct uni_calls_row *r, uint16_t cpu)
{
	int64_t row;
	size_t i = 0;

	if (r->last < r->kept.nr && r->kept.v[r->last].cpu == cpu)
		return r->kept.v[r->last].row;
	while (i < r->kept.nr && r->kept.v[i].cpu != cpu)
		i++;
	r->last = i;
	if (i < r->kept.nr)
		return r->kept.v[i].row;
	row = uni_page_store_row(a->ret->store, r->thread, r->depth, cpu);
	if (row >= 0 && !uni_vec_push(&r->kept, ((struct uni_calls_kept){ cpu, (uint32_t)row })))
		return -UNI_ENOMEM;
	return row;
}

static int keep_span(struct uni_calls_adder *a, const struct uni_calls_span *s)
{
	int64_t row = kept_row(a, &a->rows.v[s->row], s->cpu);

	return row < 0 ? (int)row
		       : uni_page_store_add(
				 a->ret->store, (uint32_t)row, s->begin, s->duration, s->node);
}

/* There are now too many calls to send them to a page. */
static int begin_store(struct uni_calls_adder *a)
{
	int rc = 0;

	a->ret->store = uni_page_store_create();
	if (a->ret->store == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; rc == 0 && i < a->spans.nr; i++)
		rc = keep_span(a, &a->spans.v[i]);
	uni_vec_free(&a->spans);
	return rc;
}

static int add_span(struct uni_calls_adder *a, const struct uni_calls_span *s)
{
	struct uni_calls_row *r = &a->rows.v[s->row];

	if (r->nr++ == 0)
		r->cpu = s->cpu;
	r->mixed = r->mixed || r->cpu != s->cpu;
	if (a->ret->store != NULL)
		return keep_span(a, s);
	if (!uni_vec_push(&a->spans, *s))
		return -UNI_ENOMEM;
	return a->whole->calls != 0 && a->spans.nr > a->whole->calls ? begin_store(a) : 0;
}

static bool is_room(const struct uni_calls_adder *a, uint64_t nr)
{
	return nr <= (a->whole->calls != 0 ? STORE_MAX : UNI_PAGE_CALLS_MAX);
}

static int put_in_row(
	struct uni_calls_adder *a, uint32_t thread, uint32_t depth, struct uni_calls_span *s)
{
	s->row = row_of(a, thread, depth);
	if (s->node == UNI_NODE_NONE || s->row == UINT32_MAX)
		return -UNI_ENOMEM;
	return add_span(a, s);
}

int uni_calls_add_part(struct uni_calls_adder *a, uint32_t thread, uint32_t depth,
	const struct uni_calls_span *part)
{
	struct uni_calls_span s = *part;

	if (s.duration == 0 || !is_room(a, a->ret->nr) || !is_room(a, ++a->parts))
		return 0;
	return put_in_row(a, thread, depth, &s);
}

static int add_calls_span(struct uni_calls_adder *a, const struct uni_call_event *e, uint32_t depth,
	uint32_t node, uint64_t waited)
{
	struct uni_calls_span s = { .begin = e->ns, .node = node, .cpu = e->cpu };

	if (e->type == UNI_CALL_LEAVE) {
		s.duration = uni_min(e->duration, e->ns);
		s.begin = e->ns - s.duration;
		s.off = uni_min(e->off - uni_min(waited, e->off), s.duration);
	}
	a->ret->nr++;
	if (is_room(a, a->ret->nr))
		return put_in_row(a, e->thread, depth, &s);
	a->ret->left_out++;
	return 0;
}

/* The function's node below the thread's newest open call. */
static uint32_t call_child(struct uni_calls_adder *a, const struct uni_calls_open *t, uint32_t func)
{
	uint32_t top = t->calls.nr != 0 ? t->calls.v[t->calls.nr - 1].node : UNI_NODE_ROOT;
	uint32_t frame = frame_of(a, func);

	return frame == UNI_NODE_NONE ? UNI_NODE_NONE : uni_profile_child(a->ret->tree, top, frame);
}

static int leave_open_call(
	struct uni_calls_adder *a, struct uni_calls_open *t, const struct uni_call_event *e)
{
	struct uni_call_event rest = *e;
	struct uni_calls_call call;
	uint64_t waited;
	int rc;

	/* Only the end of this call was recorded. */
	if ((e->flags & UNI_CALL_BEGAN) != 0 && t->calls.nr <= e->depth)
		return add_calls_span(a, e, (uint32_t)t->calls.nr, call_child(a, t, e->func), 0);
	if (t->calls.nr == 0)
		return 0;
	rc = uni_calls_wait_end(a, t, e, &waited);
	if (rc != 0)
		return rc;
	call = t->calls.v[--t->calls.nr];
	if (!call.whole)
		rest.duration = uni_min(e->duration, e->ns - uni_min(call.begin, e->ns));
	/* If a call ends while its thread is away, the event may come from another CPU. */
	if (t->out_of != 0)
		rest.cpu = t->cpu;
	return add_calls_span(a, &rest, (uint32_t)t->calls.nr, call.node, waited);
}

static int enter_open_call(
	struct uni_calls_adder *a, struct uni_calls_open *t, const struct uni_call_event *e)
{
	const struct uni_calls_call call = { .begin = e->ns,
		.node = call_child(a, t, e->func),
		.whole = true,
		.began = (e->flags & UNI_CALL_BEGAN) != 0 };
	int rc = uni_calls_seen(a, t, e);

	if (rc != 0)
		return rc;
	if (e->type != UNI_CALL_ENTER)
		return add_calls_span(a, e, (uint32_t)t->calls.nr, call.node, 0);
	return call.node != UNI_NODE_NONE && uni_vec_push(&t->calls, call) ? 0 : -UNI_ENOMEM;
}

int uni_calls_adder_put(struct uni_calls_adder *a, const struct uni_call_event *e)
{
	struct uni_calls_open *t;

	if (e->type == UNI_CALL_LOST)
		a->ret->lost += e->count;
	a->told = a->told || (e->type == UNI_CALL_EXT && e->cls >= UNI_TRACE_CLASS_USER);
	if (e->type == UNI_CALL_SWITCH)
		return uni_calls_switch(a, e);
	if (e->type != UNI_CALL_ENTER && e->type != UNI_CALL_LEAVE && e->type != UNI_CALL_LEAF &&
		e->type != UNI_CALL_ENTRY)
		return 0;
	t = thread_of(a, e->thread);
	if (t == NULL)
		return -UNI_ENOMEM;
	return e->type == UNI_CALL_LEAVE ? leave_open_call(a, t, e) : enter_open_call(a, t, e);
}

int uni_calls_adder_read(struct uni_calls_adder *a)
{
	const struct uni_call_event *e;
	size_t nr;
	int rc;

	while ((rc = a->tl->read(a->tl->ctx, &e, &nr)) == 1) {
		for (size_t i = 0; i < nr && rc == 1; i++)
			rc = uni_calls_adder_put(a, &e[i]) == 0 ? 1 : -UNI_ENOMEM;
		if (rc < 0)
			break;
	}
	return rc;
}

void uni_calls_put_rows(const struct uni_calls_adder *a, struct uni_blob *b)
{
	struct uni_column *thread = uni_blob_column(b, "r.thread");
	struct uni_column *depth = uni_blob_column(b, "r.depth");
	struct uni_column *nr = uni_blob_column(b, "r.nr");

	for (size_t i = 0; i < a->rows.nr; i++) {
		uni_column_put(thread, a->rows.v[i].thread);
		uni_column_put(depth, a->rows.v[i].depth);
		uni_column_put(nr, a->rows.v[i].nr);
	}
}

/* order[]: the spans by row, and within a row in order of arrival. */
static void put_spans(struct uni_calls_adder *a, struct uni_blob *b, const uint32_t *order)
{
	struct uni_column *gap = uni_blob_column(b, "c.gap"), *dur = uni_blob_column(b, "c.dur");
	struct uni_column *off = uni_blob_column(b, "c.off"), *cpu = uni_blob_column(b, "c.cpu");
	struct uni_column *node = uni_blob_column(b, "c.node");
	uint64_t at = 0;

	for (size_t i = 0; i < a->spans.nr; i++) {
		const struct uni_calls_span *s = &a->spans.v[order[i]];

		if (i == 0 || s->row != a->spans.v[order[i - 1]].row)
			at = a->ret->first_ns;
		uni_column_put(gap, s->begin > at ? s->begin - at : 0);
		uni_column_put(dur, uni_calls_span_left(s, at));
		uni_column_put(off, s->off);
		uni_column_put(cpu, s->cpu);
		uni_column_put(node, s->node);
		at = uni_max(at, s->begin + s->duration);
	}
}

static int put_all(struct uni_calls_adder *a, struct uni_blob *b)
{
	_cleanup_free_ uint32_t *order = calloc(a->spans.nr + 1, sizeof(*order));
	_cleanup_free_ size_t *next = calloc(a->rows.nr + 1, sizeof(*next));

	if (order == NULL || next == NULL)
		return -UNI_ENOMEM;
	a->ret->first_ns = a->spans.nr != 0 ? UINT64_MAX : 0;
	for (size_t i = 0, at = 0; i < a->rows.nr; at += a->rows.v[i++].nr)
		next[i] = at;
	for (size_t i = 0; i < a->spans.nr; i++) {
		order[next[a->spans.v[i].row]++] = (uint32_t)i;
		a->ret->first_ns = uni_min(a->ret->first_ns, a->spans.v[i].begin);
	}
	uni_calls_put_rows(a, b);
	put_spans(a, b, order);
	return 0;
}

/* Prunes the tree; from now on the columns use the new tree's node numbers. */
static int prune_nodes(struct uni_calls_adder *a, uint32_t max)
{
	struct uni_page_store *store = a->ret->store;
	uint64_t nr = uni_profile_nr_nodes(a->ret->tree);
	_cleanup_free_ uint64_t *total = calloc(nr + 1, sizeof(*total));
	struct uni_profile *to;
	uint32_t *map;
	int rc = -UNI_ENOMEM;

	if (max == 0 || nr <= max)
		return 0;
	if (total != NULL) {
		uni_page_store_totals(store, total);
		rc = uni_page_prune(a->ret->tree, total, max, &map, &to);
	}
	if (rc != 0)
		return rc;
	a->ret->flat = (uint32_t)nr - (uint32_t)uni_min(nr, (uint64_t)uni_profile_nr_nodes(to));
	uni_page_store_set_map(store, map, (uint32_t)uni_profile_nr_nodes(to));
	uni_profile_destroy(a->ret->tree);
	a->ret->tree = to;
	return 0;
}

/* Columns for a store: its rows at the resolution of a screen, and the sums of all calls. */
static int put_outline(struct uni_calls_adder *a, struct uni_blob *b)
{
	struct uni_page_store *store = a->ret->store;
	uint32_t nr = (uint32_t)uni_profile_nr_nodes(a->ret->tree);
	_cleanup_free_ uint32_t *parent = calloc((size_t)nr + 1, sizeof(*parent));
	int rc;

	if (parent == NULL)
		return -UNI_ENOMEM;
	for (uint32_t i = 1; i < nr; i++)
		parent[i] = uni_profile_node(a->ret->tree, i)->parent;
	rc = uni_page_store_finish(store, parent, nr);
	if (rc == 0)
		rc = prune_nodes(a, a->whole->nodes);
	if (rc != 0)
		return rc;
	a->ret->first_ns = uni_page_store_begin(store);
	uni_page_store_put_rows(store, b, 0, uni_page_store_end(store) - a->ret->first_ns + 1,
		OUTLINE_PX, 0, uni_page_store_nr_rows(store));
	return uni_page_store_put_sums(store, b, 0, UINT64_MAX, (struct uni_page_who){ -1, -1 });
}

/*
 * If nothing tells threads apart, each CPU is a thread; the columns of an outline do not have CPUs.
 */
static void name_by_cpu(struct uni_calls_adder *a, uint32_t thread, struct uni_part_thread *t)
{
	const struct uni_calls_row *r;

	if (a->ret->store == NULL || strcmp(t->name, "tid") != 0 || t->number != 0 ||
		a->threads.v[thread].rows.nr == 0)
		return;
	r = &a->rows.v[a->threads.v[thread].rows.v[0]];
	if (!r->mixed)
		(void)snprintf(t->name, sizeof(t->name), "on vCPU %u", r->cpu);
}

void uni_calls_name_threads(struct uni_calls_adder *a)
{
	for (uint32_t i = 0; i < a->ret->threads.nr; i++) {
		struct uni_part_thread *t = &a->ret->threads.v[i];
		const char *name = a->tl->thread(a->tl->ctx, i, &t->number);

		(void)uni_text_clean(t->name, sizeof(t->name), name, strlen(name));
		name_by_cpu(a, i, t);
	}
}

void uni_calls_adder_deinit(struct uni_calls_adder *a)
{
	for (size_t i = 0; i < a->threads.nr; i++) {
		uni_vec_free(&a->threads.v[i].rows);
		uni_vec_free(&a->threads.v[i].calls);
	}
	uni_vec_free(&a->threads);
	for (size_t i = 0; i < a->rows.nr; i++)
		uni_vec_free(&a->rows.v[i].kept);
	uni_vec_free(&a->frames);
	uni_vec_free(&a->rows);
	uni_vec_free(&a->spans);
}

int uni_part_calls(struct uni_blob *b, const struct uni_timeline *tl,
	const struct uni_page_whole *whole, struct uni_part_calls *ret, struct uni_err *err)
{
	struct uni_calls_adder a = { .ret = ret, .tl = tl, .whole = whole };
	int rc = -UNI_ENOMEM;

	ret->tree = uni_profile_create();
	if (ret->tree != NULL) {
		uni_profile_set_unit(ret->tree, "ns");
		rc = uni_calls_adder_read(&a);
	}
	if (rc == 0)
		rc = ret->store != NULL ? put_outline(&a, b) : put_all(&a, b);
	if (rc == 0)
		rc = uni_profile_finish(ret->tree);
	if (rc == 0) {
		uni_calls_name_threads(&a);
		uni_part_tree(b, "c", ret->tree);
	}
	if (tl->damaged != NULL)
		ret->damaged = tl->damaged(tl->ctx);
	uni_calls_adder_deinit(&a);
	return rc == 0 ? 0 : uni_err_nomem(err);
}

void uni_part_calls_deinit(struct uni_part_calls *c)
{
	if (c->borrowed)
		return;
	uni_profile_destroy(c->tree);
	uni_vec_free(&c->threads);
	uni_page_store_destroy(c->store);
}
