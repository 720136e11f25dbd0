/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "promise/model_priv.h"
#include "promise/query.h"
#include "promise/query_priv.h"

static int report_finding(struct uni_findings *f, struct uni_finding found)
{
	return uni_vec_push(&f->all, found) ? 0 : -UNI_ENOMEM;
}

/* A signal that nobody waits for is not lost there: the next waiter finds it. */
static bool remembers_signals(const struct uni_promise *on)
{
	return on->type == UNI_PROMISE_TYPE_SEMAPHORE || on->type == UNI_PROMISE_TYPE_MVAR ||
	       on->type == UNI_PROMISE_TYPE_LOCK;
}

/* The type of `on` may not be in the trace. A promise that took its value after that signal has
 * received the signal. And no promise signals to itself. */
static bool was_kept(const struct uni_promise *on, uint32_t waiter)
{
	return remembers_signals(on) || on->taken || on->lonely_by == waiter;
}

static bool came_too_late(const struct uni_promise_model *m, const struct uni_promise_wait *w)
{
	const struct uni_promise *on = &m->all.v[w->on];

	return w->ready == UNI_PROMISE_OPEN && !w->undated &&
	       (w->end == UNI_PROMISE_OPEN || w->after_end) && on->fate == UNI_FATE_OPEN &&
	       on->nr_lonely != 0 && on->lonely <= w->begin && !was_kept(on, w->waiter);
}

#define OLDER 4096 /* waits of one promise that are examined */

/* The last time that an earlier wait for the same promise was woken; UNI_PROMISE_OPEN: never. */
static uint64_t woken_before(const struct uni_promise_model *m, const struct uni_promise_wait *w)
{
	uint32_t i = w->next;

	for (unsigned k = 0; i != UNI_PROMISE_NONE && k < OLDER; k++) {
		const struct uni_promise_wait *old = &m->waits.v[i];

		if (old->on == w->on && old->ready != UNI_PROMISE_OPEN)
			return old->ready;
		i = old->next;
	}
	return UNI_PROMISE_OPEN;
}

/* It created a promise that must end and that nobody is known to work for, or its creator has done
 * so. */
static bool may_owe(const struct uni_promise_model *m, const struct uni_promise *p)
{
	if (p->owes)
		return true;
	return p->creator == UNI_PROMISE_NONE ? m->nobody_owes : m->all.v[p->creator].owes;
}

/*
 * Is it an error that it waits? If the same promise woke it before, it may have nothing to do and
 * wait for more work. But it is an error if, since then and before the missed signal, it created a
 * promise that must end. It is also an error if it has resolved others of that kind.
 */
static bool is_missed(const struct uni_promise_model *m, const struct uni_promise_wait *w)
{
	const struct uni_promise *p = &m->all.v[w->waiter];
	uint64_t woken;

	if (p->must_end)
		return true;
	if (!p->awaited && !may_owe(m, p))
		return false;
	woken = woken_before(m, w);
	return woken == UNI_PROMISE_OPEN || p->settles ||
	       (p->owes && p->owes_since >= woken && p->owes_since <= m->all.v[w->on].lonely);
}

bool uni_promise_missed(const struct uni_promise_model *m, const struct uni_promise_wait *w)
{
	return came_too_late(m, w) && is_missed(m, w);
}

static int lost_wakeups(const struct uni_promise_model *m, struct uni_findings *f)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < m->waits.nr; i++) {
		const struct uni_promise_wait *w = &m->waits.v[i];
		struct uni_finding found = { .kind = UNI_FINDING_LOST_WAKEUP,
			.time = w->begin,
			.ns = m->end - w->begin,
			.who = w->waiter,
			.other = w->on,
			.by = m->all.v[w->on].lonely_by };

		if (!came_too_late(m, w))
			continue;
		if (!is_missed(m, w))
			rc = uni_vec_push(&f->doubts, found) ? 0 : -UNI_ENOMEM;
		else
			rc = report_finding(f, found);
	}
	return rc;
}

static int find_unresolved(const struct uni_promise_model *m, struct uni_findings *f)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < m->all.nr; i++) {
		const struct uni_promise *p = &m->all.v[i];

		if (p->should_resolve && m->all.v[uni_promise_heir(m, i)].fate == UNI_FATE_OPEN)
			rc = report_finding(f, (struct uni_finding){ .kind = UNI_FINDING_UNRESOLVED,
						       .time = p->last,
						       .ns = m->end - p->begin,
						       .who = i,
						       .other = UNI_PROMISE_NONE,
						       .by = UNI_PROMISE_NONE });
	}
	return rc;
}

bool uni_promise_begin_unknown(const struct uni_promise_model *m)
{
	for (size_t i = 0; !m->begin_told && i < m->all.nr; i++) {
		/* Locks need not be created, and wait for nothing. */
		if (!m->all.v[i].created && m->all.v[i].type != UNI_PROMISE_TYPE_LOCK)
			return true;
	}
	return m->begin_missed != 0;
}

uint32_t uni_promise_needs(const struct uni_promise_model *m, uint32_t who)
{
	const struct uni_promise *p = &m->all.v[who];
	const struct uni_promise_wait *w;

	if (p->fate == UNI_FATE_BECAME)
		return p->other;
	if (p->type == UNI_PROMISE_TYPE_LOCK)
		return uni_promise_owner(m, who);
	/* With several open waits any of them may free it. */
	if (p->fate != UNI_FATE_OPEN || p->nr_open != 1)
		return UNI_PROMISE_NONE;
	w = &m->waits.v[p->first_wait];
	return w->ready == UNI_PROMISE_OPEN ? w->on : UNI_PROMISE_NONE;
}

bool uni_promise_may_have_given_up(const struct uni_promise_wait *w)
{
	return w->end == UNI_PROMISE_OPEN && w->ready == UNI_PROMISE_OPEN &&
	       w->ran != UNI_PROMISE_OPEN;
}

/* The one in the circle of `who` that may have given up its wait; UNI_PROMISE_NONE: all wait. */
static uint32_t find_runner(const struct uni_promise_model *m, uint32_t who)
{
	uint32_t at = who;

	do {
		const struct uni_promise *p = &m->all.v[at];

		if (p->nr_open == 1 && uni_promise_may_have_given_up(&m->waits.v[p->first_wait]))
			return at;
		at = uni_promise_needs(m, at);
	} while (at != who);
	return UNI_PROMISE_NONE;
}

static int report_circle(const struct uni_promise_model *m, struct uni_findings *f, uint32_t who)
{
	struct uni_finding found = { .kind = UNI_FINDING_CIRCLE,
		.time = m->all.v[who].last,
		.ns = m->end - m->all.v[who].last,
		.who = who,
		.other = uni_promise_needs(m, who),
		.by = find_runner(m, who) };

	if (found.by == UNI_PROMISE_NONE)
		return report_finding(f, found);
	return uni_vec_push(&f->doubts, found) ? 0 : -UNI_ENOMEM;
}

/* Each promise needs at most one other, so a walk that marks where it has been finds every circle.
 */
static int find_circles(const struct uni_promise_model *m, struct uni_findings *f)
{
	uint32_t *seen = calloc(m->all.nr + 1, sizeof(*seen));
	int rc = 0;

	if (seen == NULL)
		return -UNI_ENOMEM;
	for (uint32_t i = 0; rc == 0 && i < m->all.nr; i++) {
		uint32_t at = i;

		while (at != UNI_PROMISE_NONE && seen[at] == 0) {
			seen[at] = i + 1;
			at = uni_promise_needs(m, at);
		}
		if (at == UNI_PROMISE_NONE || seen[at] != i + 1)
			continue;
		if (uni_promise_needs(m, at) == UNI_PROMISE_NONE)
			continue;
		if (m->all.v[at].type == UNI_PROMISE_TYPE_LOCK)
			at = uni_promise_needs(m, at);
		rc = report_circle(m, f, at);
	}
	free(seen);
	return rc;
}

/* Threads give locks back. A promise that ends may leave its lock to another one. */
static bool has_ended(const struct uni_promise_model *m, uint32_t owner)
{
	const struct uni_promise *p = &m->all.v[owner];

	return (p->fate == UNI_FATE_RESOLVED || p->fate == UNI_FATE_FAILED) &&
	       (p->type == UNI_PROMISE_TYPE_THREAD || p->type == UNI_PROMISE_TYPE_ASYNC);
}

/* The one that waits longest for it, if it does so for it alone. */
static const struct uni_promise_wait *find_waiter(
	const struct uni_promise_model *m, const struct uni_promise *lock)
{
	const struct uni_promise_wait *first = NULL;

	for (uint32_t i = lock->waiters; i != UNI_PROMISE_NONE; i = m->waits.v[i].next_on) {
		const struct uni_promise_wait *w = &m->waits.v[i];

		if (w->end == UNI_PROMISE_OPEN && w->ready == UNI_PROMISE_OPEN &&
			m->all.v[w->waiter].nr_open == 1)
			first = w;
	}
	return first;
}

static int report_abandoned(const struct uni_promise_model *m, struct uni_findings *f,
	const struct uni_promise_wait *w, uint32_t owner)
{
	struct uni_finding found = { .kind = UNI_FINDING_ABANDONED,
		.time = w->begin,
		.ns = m->end - w->begin,
		.who = w->waiter,
		.other = w->on,
		.by = owner };

	if (!uni_promise_may_have_given_up(w))
		return report_finding(f, found);
	return uni_vec_push(&f->doubts, found) ? 0 : -UNI_ENOMEM;
}

/* Nobody gives them back any more. */
static int find_abandoned(const struct uni_promise_model *m, struct uni_findings *f)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < m->all.nr; i++) {
		uint32_t owner = m->all.v[i].type == UNI_PROMISE_TYPE_LOCK ? uni_promise_owner(m, i)
									   : UNI_PROMISE_NONE;
		const struct uni_promise_wait *w;

		if (owner == UNI_PROMISE_NONE || !has_ended(m, owner) ||
			m->all.v[i].fate != UNI_FATE_OPEN)
			continue;
		w = find_waiter(m, &m->all.v[i]);
		if (w != NULL)
			rc = report_abandoned(m, f, w, owner);
	}
	return rc;
}

void uni_findings_deinit(struct uni_findings *f)
{
	uni_vec_free(&f->all);
	uni_vec_free(&f->doubts);
}

int uni_promise_findings(
	const struct uni_promise_model *m, uint64_t busy_ns, struct uni_findings *ret)
{
	int rc = lost_wakeups(m, ret);

	if (rc == 0)
		rc = find_unresolved(m, ret);
	if (rc == 0)
		rc = find_circles(m, ret);
	if (rc == 0)
		rc = find_abandoned(m, ret);
	return rc == 0 ? uni_promise_starved(m, busy_ns, ret) : rc;
}

static uint64_t wake_latency(const struct uni_promise_wait *w)
{
	if (w->ready == UNI_PROMISE_OPEN || w->end == UNI_PROMISE_OPEN)
		return 0;
	return w->end - w->ready;
}

static int compare_latency(const void *a, const void *b)
{
	const struct uni_promise_wait *x = *(const struct uni_promise_wait *const *)a,
				      *y = *(const struct uni_promise_wait *const *)b;
	uint64_t i = wake_latency(x), j = wake_latency(y);

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

		if (w->ready == UNI_PROMISE_OPEN || w->end == UNI_PROMISE_OPEN || w->after_end)
			continue;
		if (!uni_vec_push(&all, w))
			break;
	}
	if (all.nr != 0)
		qsort(all.v, all.nr, sizeof(all.v[0]), compare_latency);
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
