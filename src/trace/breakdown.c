/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/breakdown.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "trace/walk.h"
#include "trace/walk_calls.h"

/* The time from each record to the next goes to the call that is the newest in between. */
struct breakdown {
	struct uni_walk walk; /* first: ops get this */
	bool threads;
	UNI_VEC(struct uni_breakdown_cell) cell;
	uint32_t *slot; /* cell + 1 by group and function; 0: free */
	uint32_t nr_slots;
	uint64_t *last; /* of each CPU: time of its last record; 0: none yet */
	uint64_t left_out;
};

static uint32_t probe_cell(const struct breakdown *s, uint32_t group, uint32_t func)
{
	uint32_t mask = s->nr_slots - 1, i = (uint32_t)uni_hash_pair(group, func) & mask;

	while (s->slot[i] != 0 && (s->cell.v[s->slot[i] - 1].group != group ||
					  s->cell.v[s->slot[i] - 1].func != func))
		i = (i + 1) & mask;
	return i;
}

static bool more_slots(struct breakdown *s)
{
	uint32_t *old = s->slot, nr = s->nr_slots;

	s->slot = calloc((size_t)nr * 2, sizeof(*s->slot));
	if (s->slot == NULL) {
		s->slot = old;
		return false;
	}
	s->nr_slots = nr * 2;
	free(old);
	for (uint32_t i = 0; i < s->cell.nr; i++)
		s->slot[probe_cell(s, s->cell.v[i].group, s->cell.v[i].func)] = i + 1;
	return true;
}

/* NULL: there are too many. */
static struct uni_breakdown_cell *cell_of(struct breakdown *s, uint32_t group, uint32_t func)
{
	const struct uni_breakdown_cell cell = { .group = group, .func = func };
	uint32_t i = probe_cell(s, group, func);

	if (s->slot[i] != 0)
		return &s->cell.v[s->slot[i] - 1];
	if (s->cell.nr >= UNI_BREAKDOWN_CELLS_MAX)
		return NULL;
	if ((s->cell.nr >= s->nr_slots / 2 && !more_slots(s)) || !uni_vec_push(&s->cell, cell)) {
		s->walk.failed = -UNI_ENOMEM;
		return NULL;
	}
	s->slot[probe_cell(s, group, func)] = (uint32_t)s->cell.nr;
	return &s->cell.v[s->cell.nr - 1];
}

static uint32_t group_of(const struct breakdown *s, const struct uni_walk_cpu *c)
{
	return s->threads ? c->thread : (uint32_t)(c - s->walk.cpu);
}

/* Until `time` this function ran. */
static void spend_time(struct breakdown *s, struct uni_walk_cpu *c, uint32_t func, uint64_t time)
{
	uint64_t *last = &s->last[c - s->walk.cpu], from = *last;
	struct uni_breakdown_cell *cell;

	*last = time;
	if (from == 0 || time <= from || c->muted)
		return;
	cell = cell_of(s, group_of(s, c), func);
	if (cell != NULL)
		cell->self += uni_walk_took(&s->walk, from, time);
	else
		s->left_out += uni_walk_took(&s->walk, from, time);
}

static void begin_cell(struct breakdown *s, struct uni_walk_cpu *c, uint32_t func, bool timed)
{
	struct uni_breakdown_cell *cell = c->muted ? NULL : cell_of(s, group_of(s, c), func);

	if (cell == NULL)
		return;
	cell->calls++;
	cell->timed += timed;
}

static inline void breakdown_enter(
	struct uni_walk *w, struct uni_walk_cpu *c, struct uni_walk_frame *f)
{
	spend_time((struct breakdown *)w, c, f[-1].func, f->begin);
	begin_cell((struct breakdown *)w, c, f->func, true);
}

static inline void breakdown_leave(struct uni_walk *w, struct uni_walk_cpu *c,
	struct uni_walk_frame *f, uint64_t time, unsigned flags)
{
	/* The end of any other cut call is not known. */
	if ((flags & UNI_CALL_CUT) == 0 || (flags & UNI_WALK_RAN) != 0)
		spend_time((struct breakdown *)w, c, f->func, time);
}

static inline void breakdown_leaf(struct uni_walk *w, struct uni_walk_cpu *c,
	struct uni_walk_frame *top, uint32_t func, uint64_t time, enum uni_call_type type)
{
	(void)type;
	spend_time((struct breakdown *)w, c, top->func, time);
	begin_cell((struct breakdown *)w, c, func, false);
}

static void breakdown_other(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t time,
	enum uni_call_type type, uint64_t value, uint32_t next)
{
	struct breakdown *s = (struct breakdown *)w;
	const struct uni_walk_thread *t = &w->thread[c->thread];

	(void)value;
	(void)next;
	if (type == UNI_CALL_LOST)
		s->last[c - w->cpu] = time;
	else
		spend_time(s, c, t->frame[t->nr - 1].func, time);
}

static void breakdown_span(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t until, size_t max);

static const struct uni_walk_ops ops = {
	.span = breakdown_span,
	.enter = breakdown_enter,
	.leave = breakdown_leave,
	.leaf = breakdown_leaf,
	.other = breakdown_other,
};

static void breakdown_span(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t until, size_t max)
{
	if (w->functions)
		uni_walk_span(w, c, until, max, &ops, true);
	else
		uni_walk_span(w, c, until, max, &ops, false);
}

/* At an end of the time window: what runs there ran until there. */
static void spend_until(struct breakdown *s, uint64_t time)
{
	for (uint32_t i = 0; i < s->walk.nr_cpus; i++) {
		struct uni_walk_cpu *c = &s->walk.cpu[i];
		const struct uni_walk_thread *t = &s->walk.thread[c->thread];

		if (s->last[i] != 0)
			spend_time(s, c, t->frame[t->nr - 1].func, time);
	}
}

/* If the trace ends before the window does, each CPU's time ends with its last record. */
static void spend_rest(struct breakdown *s)
{
	const struct uni_walk *w = &s->walk;

	for (uint32_t i = 0; i < w->nr_cpus; i++) {
		if (w->cpu[i].at == w->cpu[i].end)
			s->last[i] = 0;
	}
	spend_until(s, w->to);
}

static int breakdown_calls(struct breakdown *s)
{
	struct uni_walk *w = &s->walk;
	struct uni_walk_calls calls;
	int rc = uni_walk_calls_open(w, &calls), end;

	for (uint32_t i = 0; rc == 0 && i < w->nr_cpus; i++)
		s->last[i] = w->cpu[i].last != 0 ? w->from : 0;
	if (rc == 0)
		rc = uni_walk_calls(w, &calls);
	spend_rest(s);
	end = uni_walk_calls_close(w, &calls);
	return rc != 0 ? rc : end;
}

static int breakdown_walk(struct breakdown *s)
{
	struct uni_walk *w = &s->walk;
	int rc = 0;

	if (w->filter.rules != NULL)
		return breakdown_calls(s);
	if (w->from != 0) {
		rc = uni_walk_all(w, w->from - 1);
		spend_until(s, w->from);
		for (size_t i = 0; i < s->cell.nr; i++)
			s->cell.v[i].self = s->cell.v[i].calls = s->cell.v[i].timed = 0;
		s->left_out = 0;
		w->stats = (struct uni_calls_stats){ 0 };
	}
	if (rc == 0)
		rc = uni_walk_all(w, w->to);
	spend_rest(s);
	uni_walk_finish(w);
	return rc != 0 ? rc : w->failed;
}

static int by_group(const void *a, const void *b)
{
	const struct uni_breakdown_cell *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	return x->func < y->func ? -1 : x->func > y->func;
}

static int breakdown_give(struct breakdown *s, struct uni_breakdown *ret)
{
	for (uint32_t i = 0; s->threads && i < s->walk.nr_threads; i++) {
		const struct uni_calls_thread t = { s->walk.thread[i].id, s->walk.thread[i].known };

		if (!uni_vec_push(&ret->thread, t))
			return -UNI_ENOMEM;
	}
	for (size_t i = 0; i < s->cell.nr; i++) {
		struct uni_breakdown_cell cell = s->cell.v[i];

		if ((cell.self != 0 || cell.calls != 0) && !uni_vec_push(&ret->cell, cell))
			return -UNI_ENOMEM;
	}
	if (ret->cell.nr != 0)
		qsort(ret->cell.v, ret->cell.nr, sizeof(*ret->cell.v), by_group);
	ret->left_out = s->left_out;
	ret->stats = s->walk.stats;
	return 0;
}

int uni_breakdown_make(const struct uni_trace_input *in, const struct uni_calls_filter *filter,
	struct uni_funcs *funcs, bool threads, struct uni_breakdown *ret, struct uni_err *err)
{
	struct breakdown *s = calloc(1, sizeof(*s));
	int rc;

	*ret = (struct uni_breakdown){ 0 };
	if (s == NULL)
		return uni_err_nomem(err);
	rc = uni_walk_init(&s->walk, in, filter, funcs, &ops, err);
	if (rc == 0) {
		s->threads = threads;
		s->nr_slots = 1024;
		s->slot = calloc(s->nr_slots, sizeof(*s->slot));
		s->last = calloc(s->walk.nr_cpus, sizeof(*s->last));
		rc = s->slot != NULL && s->last != NULL ? breakdown_walk(s) : -UNI_ENOMEM;
		if (rc == 0)
			rc = breakdown_give(s, ret);
		if (rc != 0) {
			uni_breakdown_deinit(ret);
			(void)uni_err_nomem(err);
		}
		uni_walk_deinit(&s->walk);
	}
	uni_vec_free(&s->cell);
	free(s->slot);
	free(s->last);
	free(s);
	return rc;
}

void uni_breakdown_deinit(struct uni_breakdown *b)
{
	uni_vec_free(&b->cell);
	uni_vec_free(&b->thread);
}
