/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "trace/hist.h"
#include "trace/walk.h"
#include "trace/walk_calls.h"

#define HISTS_MAX 32768 /* functions with percentiles: memory */
#define RECURSES_MAX                                                                 \
	1024 /* calls of a thread, outermost first, that are looked at for recursion \
	      */

/* Numbers of a function on one CPU; ns. */
struct row {
	uint64_t timed, sum, total, self, min, max, leaves;
	uint32_t *hist; /* all CPUs have the same one; NULL: none */
	uint32_t active, cut;
};

struct rows {
	struct row *v;
	uint32_t nr;
};

struct stats {
	struct uni_walk walk; /* first: ops get this */
	struct rows *rows;    /* one a CPU */
	uint32_t **hist;      /* by function */
	uint32_t nr_hist;     /* functions below this have a place in it */
	uint32_t hists;
};

static __attribute__((noinline)) struct row *more_rows(
	struct uni_walk *w, struct uni_walk_cpu *c, uint32_t func)
{
	struct stats *s = (struct stats *)w;
	struct rows *r = &s->rows[c - w->cpu];
	uint32_t nr = uni_max(r->nr, 64u);
	struct row *v;

	while (nr <= func)
		nr *= 2;
	v = realloc(r->v, nr * sizeof(*v));
	if (v == NULL) {
		w->failed = -UNI_ENOMEM;
		return NULL;
	}
	memset(v + r->nr, 0, (nr - r->nr) * sizeof(*v));
	for (uint32_t i = r->nr; i < nr; i++)
		v[i].min = UINT64_MAX;
	r->v = v;
	r->nr = nr;
	return &v[func];
}

static inline struct row *row_of(struct uni_walk *w, struct uni_walk_cpu *c, uint32_t func)
{
	const struct rows *r = &((struct stats *)w)->rows[c - w->cpu];

	return __builtin_expect(func < r->nr, 1) ? &r->v[func] : more_rows(w, c, func);
}

/* The first call of a function on this CPU. */
static __attribute__((noinline)) uint32_t *hist_of(struct uni_walk *w, uint32_t func)
{
	struct stats *s = (struct stats *)w;

	if (func >= s->nr_hist) {
		uint32_t nr = uni_max(s->nr_hist, 64u), **v;

		while (nr <= func)
			nr *= 2;
		v = realloc(s->hist, nr * sizeof(*v));
		if (v == NULL) {
			w->failed = -UNI_ENOMEM;
			return NULL;
		}
		memset(v + s->nr_hist, 0, (nr - s->nr_hist) * sizeof(*v));
		s->hist = v;
		s->nr_hist = nr;
	}
	if (s->hist[func] == NULL && s->hists < HISTS_MAX) {
		s->hists++;
		s->hist[func] = calloc(UNI_HIST_BUCKETS, sizeof(uint32_t));
		if (s->hist[func] == NULL)
			w->failed = -UNI_ENOMEM;
	}
	return s->hist[func];
}

static inline void stats_enter(struct uni_walk *w, struct uni_walk_cpu *c, struct uni_walk_frame *f)
{
	struct row *r = row_of(w, c, f->func);

	if (r != NULL)
		r->active++;
}

static void stats_began(struct uni_walk *w, struct uni_walk_cpu *c, struct uni_walk_frame *f)
{
	if (c != NULL)
		stats_enter(w, c, f);
}

static inline void stats_leave(struct uni_walk *w, struct uni_walk_cpu *c, struct uni_walk_frame *f,
	uint64_t time, unsigned flags)
{
	struct row *r = row_of(w, c, f->func);
	uint64_t took = uni_walk_took(w, f->begin, time), other = f->child + f->off;

	f[-1].child += took;
	if (r == NULL)
		return;
	r->active--;
	if (c->muted)
		return;
	r->timed++;
	r->sum += took;
	if (r->active == 0)
		r->total += took;
	r->self += took > other ? took - other : 0;
	if (flags != 0) {
		r->cut++;
		return;
	}
	if (took < r->min)
		r->min = took;
	if (took > r->max)
		r->max = took;
	if (r->hist == NULL)
		r->hist = hist_of(w, f->func);
	if (r->hist != NULL)
		r->hist[uni_hist_bucket(took)]++;
}

static inline void stats_leaf(struct uni_walk *w, struct uni_walk_cpu *c,
	struct uni_walk_frame *top, uint32_t func, uint64_t time, enum uni_call_type type)
{
	struct row *r = row_of(w, c, func);

	(void)top;
	(void)time;
	(void)type;
	if (r != NULL && !c->muted)
		r->leaves++;
}

/* The number of active calls on this CPU shows whether a call is within one of the same
 * function. */
static void count_active(struct uni_walk *w, struct uni_walk_cpu *c, uint32_t more)
{
	const struct uni_walk_thread *t = &w->thread[c->thread];

	for (uint32_t i = 1; i < uni_min(t->nr, (uint32_t)RECURSES_MAX); i++) {
		struct row *r = row_of(w, c, t->frame[i].func);

		if (r != NULL)
			r->active += more;
	}
}

static void stats_other(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t time,
	enum uni_call_type type, uint64_t value, uint32_t next)
{
	(void)time;
	(void)value;
	(void)next;
	if (type == UNI_CALL_SWITCH)
		count_active(w, c, UINT32_MAX);
}

static void stats_switched(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t time)
{
	(void)time;
	count_active(w, c, 1);
}

static void stats_span(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t until, size_t max);

static const struct uni_walk_ops ops = {
	.span = stats_span,
	.enter = stats_enter,
	.began = stats_began,
	.leave = stats_leave,
	.leaf = stats_leaf,
	.other = stats_other,
	.switched = stats_switched,
};

static void stats_span(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t until, size_t max)
{
	if (w->functions)
		uni_walk_span(w, c, until, max, &ops, true);
	else
		uni_walk_span(w, c, until, max, &ops, false);
}

/* Nothing was before the time window. */
static void forget_rows(struct stats *s)
{
	for (uint32_t cpu = 0; cpu < s->walk.nr_cpus; cpu++) {
		for (uint32_t i = 0; i < s->rows[cpu].nr; i++) {
			struct row *r = &s->rows[cpu].v[i];

			*r = (struct row){
				.min = UINT64_MAX, .hist = r->hist, .active = r->active
			};
		}
	}
	for (uint32_t i = 0; i < s->nr_hist; i++) {
		if (s->hist[i] != NULL)
			memset(s->hist[i], 0, UNI_HIST_BUCKETS * sizeof(uint32_t));
	}
	s->walk.stats = (struct uni_calls_stats){ 0 };
}

static void add_row(struct uni_func_stats *f, const struct row *r)
{
	f->calls += r->timed + r->leaves;
	f->timed += r->timed;
	f->cut += r->cut;
	f->total += r->total;
	f->self += r->self;
	f->sum += r->sum;
	f->min = uni_min(f->min, r->min);
	f->max = uni_max(f->max, r->max);
}

/* The middle of a histogram step may lie outside all values in it. */
static uint64_t hist_percentile(const uint32_t *hist, const struct uni_func_stats *f, unsigned of)
{
	uint64_t v = uni_hist_percentile(hist, f->timed - f->cut, of);

	return uni_max(uni_min(v, f->max), f->min);
}

static struct uni_func_stats sum_of(const struct stats *s, uint32_t func)
{
	struct uni_func_stats f = { .func = func, .min = UINT64_MAX };

	for (uint32_t cpu = 0; cpu < s->walk.nr_cpus; cpu++) {
		if (func < s->rows[cpu].nr)
			add_row(&f, &s->rows[cpu].v[func]);
	}
	if (func < s->nr_hist && s->hist[func] != NULL && f.timed > f.cut) {
		f.p50 = hist_percentile(s->hist[func], &f, 50);
		f.p99 = hist_percentile(s->hist[func], &f, 99);
	}
	if (f.timed <= f.cut)
		f.min = 0;
	return f;
}

static int by_self(const void *a, const void *b)
{
	const struct uni_func_stats *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return x->func < y->func ? -1 : x->func > y->func;
}

static int make_rows(const struct stats *s, struct uni_trace_report *ret)
{
	const char *glob = s->walk.filter.function;

	for (uint32_t func = 0; func < uni_funcs_nr(s->walk.funcs); func++) {
		struct uni_func_stats f = sum_of(s, func);

		if (f.calls == 0 || (glob != NULL && !uni_glob_match(glob,
							     uni_funcs_name(s->walk.funcs, func))))
			continue;
		if (!uni_vec_push(&ret->func, f))
			return -UNI_ENOMEM;
	}
	if (ret->func.nr != 0)
		qsort(ret->func.v, ret->func.nr, sizeof(*ret->func.v), by_self);
	return 0;
}

static int walk_all(struct stats *s)
{
	struct uni_walk *w = &s->walk;
	int rc = 0;

	if (w->filter.rules != NULL)
		return uni_walk_all_calls(w);
	if (w->from != 0) {
		rc = uni_walk_all(w, w->from - 1);
		uni_walk_restart(w, w->from);
		forget_rows(s);
	}
	if (rc == 0)
		rc = uni_walk_all(w, w->to);
	uni_walk_finish(w);
	return rc;
}

static int count_functions(struct stats *s, struct uni_trace_report *ret)
{
	int rc;

	s->rows = calloc(s->walk.nr_cpus, sizeof(*s->rows));
	if (s->rows == NULL)
		return -UNI_ENOMEM;
	rc = walk_all(s);
	ret->stats = s->walk.stats;
	return rc != 0 ? rc : make_rows(s, ret);
}

int uni_trace_report_make(const struct uni_trace_input *in, const struct uni_calls_filter *filter,
	struct uni_funcs *funcs, struct uni_trace_report *ret, struct uni_err *err)
{
	struct stats *s = calloc(1, sizeof(*s));
	int rc;

	*ret = (struct uni_trace_report){ 0 };
	if (s == NULL)
		return uni_err_nomem(err);
	rc = uni_walk_init(&s->walk, in, filter, funcs, &ops, err);
	if (rc == 0) {
		rc = count_functions(s, ret);
		if (rc != 0) {
			uni_trace_report_deinit(ret);
			(void)uni_err_nomem(err);
		}
		for (uint32_t i = 0; s->rows != NULL && i < s->walk.nr_cpus; i++)
			free(s->rows[i].v);
		uni_walk_deinit(&s->walk);
	}
	for (uint32_t i = 0; i < s->nr_hist; i++)
		free(s->hist[i]);
	free(s->hist);
	free(s->rows);
	free(s);
	return rc;
}

void uni_trace_report_deinit(struct uni_trace_report *r)
{
	uni_vec_free(&r->func);
}
