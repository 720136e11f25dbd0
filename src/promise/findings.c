/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "promise/query.h"

static int report(struct uni_findings *f, struct uni_finding found)
{
	return uni_vec_push(&f->all, found) ? 0 : -UNI_ENOMEM;
}

/* A signal that nobody waits for is no loss there: the next one who comes finds it. */
static bool remembers(const struct uni_promise *on)
{
	return on->type == UNI_PROMISE_TYPE_SEMAPHORE || on->type == UNI_PROMISE_TYPE_MVAR;
}

/* `on` was signalled before anybody waited for it, and since that wait began never again. */
static bool came_too_early(const struct uni_promise *on, const struct uni_promise_wait *w)
{
	return !remembers(on) && w->ready == UNI_PROMISE_OPEN && w->end == UNI_PROMISE_OPEN &&
	       on->fate == UNI_FATE_OPEN && on->nr_lonely != 0 && on->lonely <= w->begin;
}

static int lost_wakeups(const struct uni_promise_model *m, struct uni_findings *f)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < m->waits.nr; i++) {
		const struct uni_promise_wait *w = &m->waits.v[i];
		const struct uni_promise *on = &m->all.v[w->on];

		if (came_too_early(on, w))
			rc = report(f, (struct uni_finding){ .kind = UNI_FINDING_LOST_WAKEUP,
					       .time = w->begin,
					       .ns = m->end - w->begin,
					       .who = w->waiter,
					       .other = w->on,
					       .by = on->lonely_by });
	}
	return rc;
}

/* What became another one ends with it. */
static bool is_open(const struct uni_promise_model *m, uint32_t who)
{
	for (unsigned i = 0; i < 64 && m->all.v[who].fate == UNI_FATE_BECAME; i++)
		who = m->all.v[who].other;
	return m->all.v[who].fate == UNI_FATE_OPEN;
}

static int unresolved(const struct uni_promise_model *m, struct uni_findings *f)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < m->all.nr; i++) {
		const struct uni_promise *p = &m->all.v[i];

		if (p->should_resolve && is_open(m, i))
			rc = report(f, (struct uni_finding){ .kind = UNI_FINDING_UNRESOLVED,
					       .time = p->last,
					       .ns = m->end - p->begin,
					       .who = i,
					       .other = UNI_PROMISE_NONE,
					       .by = UNI_PROMISE_NONE });
	}
	return rc;
}

/* What an open promise needs next: the one wait that is open, or what it became. */
static uint32_t needs(const struct uni_promise_model *m, uint32_t who)
{
	const struct uni_promise *p = &m->all.v[who];
	const struct uni_promise_wait *w;

	if (p->fate == UNI_FATE_BECAME)
		return p->other;
	/* With several open waits any of them may free it. */
	if (p->fate != UNI_FATE_OPEN || p->nr_open != 1)
		return UNI_PROMISE_NONE;
	w = &m->waits.v[p->first_wait];
	return w->ready == UNI_PROMISE_OPEN ? w->on : UNI_PROMISE_NONE;
}

/* Each promise needs at most one other, so a walk that marks where it has been finds every circle.
 */
static int circles(const struct uni_promise_model *m, struct uni_findings *f)
{
	uint32_t *seen = calloc(m->all.nr + 1, sizeof(*seen));
	int rc = 0;

	if (seen == NULL)
		return -UNI_ENOMEM;
	for (uint32_t i = 0; rc == 0 && i < m->all.nr; i++) {
		uint32_t at = i;

		while (at != UNI_PROMISE_NONE && seen[at] == 0) {
			seen[at] = i + 1;
			at = needs(m, at);
		}
		if (at == UNI_PROMISE_NONE || seen[at] != i + 1)
			continue;
		if (needs(m, at) == UNI_PROMISE_NONE)
			continue;
		rc = report(f, (struct uni_finding){ .kind = UNI_FINDING_CIRCLE,
				       .time = m->all.v[at].last,
				       .ns = m->end - m->all.v[at].last,
				       .who = at,
				       .other = needs(m, at),
				       .by = UNI_PROMISE_NONE });
	}
	free(seen);
	return rc;
}

static int longer(const void *a, const void *b)
{
	const struct uni_promise_run *x = *(const struct uni_promise_run *const *)a,
				     *y = *(const struct uni_promise_run *const *)b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Of one wait, that are looked at: work stays in proportion to the trace. */
#define HOG_RUNS 4096

struct long_runs {
	UNI_VEC(const struct uni_promise_run *) all; /* by their beginning */
};

/* The run of another promise that covers most of [from, to) on that CPU, at least busy_ns of it. */
static const struct uni_promise_run *hog(const struct long_runs *r,
	const struct uni_promise_wait *w, uint64_t to, uint64_t busy_ns, uint64_t longest)
{
	const struct uni_promise_run *best = NULL;
	uint64_t most = 0, first = w->ready > longest ? w->ready - longest : 0;
	size_t lo = 0, hi = r->all.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->all.v[mid]->begin < first)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (unsigned i = 0; i < HOG_RUNS && lo < r->all.nr && r->all.v[lo]->begin < to;
		i++, lo++) {
		const struct uni_promise_run *run = r->all.v[lo];
		uint64_t begin = run->begin > w->ready ? run->begin : w->ready;
		uint64_t end = run->end < to ? run->end : to;

		if (run->promise == w->waiter || end <= begin || end - begin < busy_ns)
			continue;
		if (w->end != UNI_PROMISE_OPEN && run->cpu != w->cpu)
			continue;
		if (end - begin > most) {
			most = end - begin;
			best = run;
		}
	}
	return best;
}

static int starved(const struct uni_promise_model *m, uint64_t busy_ns, struct uni_findings *f)
{
	struct long_runs runs = { 0 };
	uint64_t longest = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < m->runs.nr; i++) {
		const struct uni_promise_run *r = &m->runs.v[i];

		if (r->end - r->begin < busy_ns)
			continue;
		if (r->end - r->begin > longest)
			longest = r->end - r->begin;
		rc = uni_vec_push(&runs.all, r) ? 0 : -UNI_ENOMEM;
	}
	if (runs.all.nr != 0)
		qsort(runs.all.v, runs.all.nr, sizeof(runs.all.v[0]), longer);
	for (size_t i = 0; rc == 0 && runs.all.nr != 0 && i < m->waits.nr; i++) {
		const struct uni_promise_wait *w = &m->waits.v[i];
		uint64_t to = w->end == UNI_PROMISE_OPEN ? m->end : w->end;
		const struct uni_promise_run *by;

		if (w->ready == UNI_PROMISE_OPEN || to - w->ready < busy_ns)
			continue;
		by = hog(&runs, w, to, busy_ns, longest);
		if (by != NULL)
			rc = report(f, (struct uni_finding){ .kind = UNI_FINDING_STARVED,
					       .time = w->ready,
					       .ns = to - w->ready,
					       .who = w->waiter,
					       .other = by->promise,
					       .by = UNI_PROMISE_NONE });
	}
	uni_vec_free(&runs.all);
	return rc;
}

int uni_promise_findings(
	const struct uni_promise_model *m, uint64_t busy_ns, struct uni_findings *ret)
{
	int rc = lost_wakeups(m, ret);

	if (rc == 0)
		rc = unresolved(m, ret);
	if (rc == 0)
		rc = circles(m, ret);
	return rc == 0 ? starved(m, busy_ns, ret) : rc;
}

static uint64_t latency(const struct uni_promise_wait *w)
{
	if (w->ready == UNI_PROMISE_OPEN || w->end == UNI_PROMISE_OPEN)
		return 0;
	return w->end - w->ready;
}

static int later(const void *a, const void *b)
{
	const struct uni_promise_wait *x = *(const struct uni_promise_wait *const *)a,
				      *y = *(const struct uni_promise_wait *const *)b;
	uint64_t i = latency(x), j = latency(y);

	if (i != j)
		return i > j ? -1 : 1;
	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

size_t uni_promise_wakeups(
	const struct uni_promise_model *m, const struct uni_promise_wait **ret, size_t cap)
{
	UNI_VEC(const struct uni_promise_wait *) all = { 0 };
	size_t nr;

	for (size_t i = 0; i < m->waits.nr; i++) {
		const struct uni_promise_wait *w = &m->waits.v[i];

		if (w->ready == UNI_PROMISE_OPEN || w->end == UNI_PROMISE_OPEN)
			continue;
		if (!uni_vec_push(&all, w))
			break;
	}
	if (all.nr != 0)
		qsort(all.v, all.nr, sizeof(all.v[0]), later);
	nr = all.nr < cap ? all.nr : cap;
	for (size_t i = 0; i < nr; i++)
		ret[i] = all.v[i];
	uni_vec_free(&all);
	return nr;
}

static int came_later(const void *a, const void *b, void *arg)
{
	const struct uni_promise_model *m = arg;
	const struct uni_promise *x = &m->all.v[*(const uint32_t *)a],
				 *y = &m->all.v[*(const uint32_t *)b];
	uint64_t i = x->end - x->begin, j = y->end - y->begin;

	if (x->depth != y->depth)
		return x->depth > y->depth ? -1 : 1;
	if (i != j)
		return i > j ? -1 : 1;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

size_t uni_promise_longest(const struct uni_promise_model *m, uint32_t *ret, size_t cap)
{
	UNI_VEC(uint32_t) all = { 0 };
	size_t nr;

	for (uint32_t i = 0; i < m->all.nr; i++) {
		const struct uni_promise *p = &m->all.v[i];

		if (p->fate != UNI_FATE_RESOLVED && p->fate != UNI_FATE_FAILED)
			continue;
		if (!uni_vec_push(&all, i))
			break;
	}
	if (all.nr != 0)
		qsort_r(all.v, all.nr, sizeof(all.v[0]), came_later, (void *)(uintptr_t)m);
	nr = all.nr < cap ? all.nr : cap;
	for (size_t i = 0; i < nr; i++)
		ret[i] = all.v[i];
	uni_vec_free(&all);
	return nr;
}
