/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/checked.h"
#include "promise/query.h"
#include "promise/query_priv.h"

struct walk {
	const struct uni_promise_model *m;
	struct uni_promise_step *steps;
	size_t nr, cap;
	bool suspected;
};

static bool add_step(struct walk *w, struct uni_promise_step step)
{
	if (w->nr + 1 < w->cap) {
		w->steps[w->nr++] = step;
		return true;
	}
	if (w->nr < w->cap)
		w->steps[w->nr++] =
			(struct uni_promise_step){ .kind = UNI_STEP_CUT, .who = step.who };
	return false;
}

/* Was it open in a step before? Then it waits for itself. */
static bool is_in_circle(const struct walk *w, uint32_t who)
{
	for (size_t i = 0; i < w->nr; i++) {
		const struct uni_promise_step *s = &w->steps[i];

		if (s->who == who && (s->kind == UNI_STEP_WAITS || s->kind == UNI_STEP_BECAME))
			return true;
	}
	return false;
}

/* The newest run of `who` that began at or before `time`; runs are sorted by their end. */
static const struct uni_promise_run *run_at(
	const struct uni_promise_model *m, uint32_t who, uint64_t time)
{
	size_t lo = 0, hi = m->runs.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->runs.v[mid].end < time)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* Begins with the first run that ends at or after it: the run around it, if there is
	 * one. */
	for (size_t i = lo; i < m->runs.nr && m->runs.v[i].begin <= time; i++) {
		if (m->runs.v[i].promise == who)
			return &m->runs.v[i];
	}
	for (size_t i = lo; i-- > 0;) {
		if (m->runs.v[i].promise == who)
			return &m->runs.v[i];
	}
	return NULL;
}

/* The oldest open wait: what it waits for first. UNI_PROMISE_NONE: there is none. */
static uint32_t open_wait(const struct uni_promise_model *m, uint32_t who)
{
	uint32_t found = UNI_PROMISE_NONE, i = m->all.v[who].first_wait;

	for (; i != UNI_PROMISE_NONE && m->waits.v[i].end == UNI_PROMISE_OPEN;
		i = m->waits.v[i].next)
		found = i;
	return found;
}

static uint32_t step_origin(struct walk *w, uint32_t who)
{
	const struct uni_promise *p = &w->m->all.v[who];

	add_step(w,
		(struct uni_promise_step){ .kind = p->created ? UNI_STEP_CREATED : UNI_STEP_APPEARS,
			.who = who,
			.by = p->creator,
			.time = p->begin });
	return UNI_PROMISE_NONE;
}

static bool runs_itself(const struct uni_promise *p)
{
	return p->type == UNI_PROMISE_TYPE_THREAD || p->type == UNI_PROMISE_TYPE_ASYNC;
}

/* Promises of these types are signalled, never resolved. */
static bool is_signalled(const struct uni_promise *p)
{
	return p->type == UNI_PROMISE_TYPE_CONDITION || p->type == UNI_PROMISE_TYPE_SEMAPHORE ||
	       p->type == UNI_PROMISE_TYPE_MVAR || p->type == UNI_PROMISE_TYPE_LOCK;
}

/* Before it happens, nothing shows which promise will resolve this one. A likely candidate has
 * missed a wake-up, and knows this promise: it is its creator, or has the same creator. */
static uint32_t find_suspect(const struct uni_promise_model *m, uint32_t who)
{
	uint32_t found = UNI_PROMISE_NONE, creator = m->all.v[who].creator;
	unsigned most = 1; /* one without a relation */

	for (size_t i = 0; i < m->waits.nr; i++) {
		uint32_t waiter = m->waits.v[i].waiter;
		unsigned near = 1 + (m->all.v[waiter].creator == creator) + 2 * (waiter == creator);

		if (near <= most || waiter == who || !uni_promise_missed(m, &m->waits.v[i]))
			continue;
		found = waiter;
		most = near;
	}
	return found;
}

/* An open promise for which none is known to work. */
static uint32_t step_unresolved(struct walk *w, uint32_t who)
{
	uint32_t by = UNI_PROMISE_NONE;

	add_step(w,
		(struct uni_promise_step){
			.kind = UNI_STEP_UNRESOLVED, .who = who, .time = w->m->all.v[who].begin });
	(void)step_origin(w, who);
	if (!w->suspected)
		by = find_suspect(w->m, who);
	if (by == UNI_PROMISE_NONE)
		return UNI_PROMISE_NONE;
	w->suspected = true;
	add_step(w, (struct uni_promise_step){ .kind = UNI_STEP_SUSPECT, .who = who, .by = by });
	return by;
}

/* A lock leads to its owner. */
static uint32_t step_lock(struct walk *w, uint32_t who)
{
	const struct uni_promise *p = &w->m->all.v[who];
	uint32_t owner = uni_promise_owner(w->m, who);

	if (owner != UNI_PROMISE_NONE)
		add_step(w, (struct uni_promise_step){ .kind = UNI_STEP_HELD,
				    .who = who,
				    .by = owner,
				    .time = w->m->holds.v[p->hold].begin });
	else if (p->nr_lonely != 0)
		add_step(w, (struct uni_promise_step){ .kind = UNI_STEP_FREE,
				    .who = who,
				    .by = p->lonely_by,
				    .time = p->lonely });
	else
		(void)step_origin(w, who);
	return owner;
}

/* An open promise leads to the one that it waits for. */
static uint32_t step_stuck(struct walk *w, uint32_t who)
{
	const struct uni_promise *p = &w->m->all.v[who];
	uint32_t i = open_wait(w->m, who);
	const struct uni_promise_run *last;
	const struct uni_promise_wait *wait;

	if (i != UNI_PROMISE_NONE) {
		wait = &w->m->waits.v[i];
		add_step(w, (struct uni_promise_step){ .kind = wait->ready == UNI_PROMISE_OPEN
								       ? UNI_STEP_WAITS
								       : UNI_STEP_READY,
				    .who = who,
				    .by = wait->on,
				    .begin = wait->begin,
				    .ready = wait->ready });
		return wait->ready == UNI_PROMISE_OPEN ? wait->on : UNI_PROMISE_NONE;
	}
	if (p->type == UNI_PROMISE_TYPE_LOCK)
		return step_lock(w, who);
	if (p->nr_lonely != 0)
		add_step(w, (struct uni_promise_step){ .kind = UNI_STEP_LONELY,
				    .who = who,
				    .by = p->lonely_by,
				    .time = p->lonely });
	last = p->nr_runs == 0 ? NULL : run_at(w->m, who, w->m->end);
	if (last != NULL) {
		add_step(w, (struct uni_promise_step){
				    .kind = UNI_STEP_RAN, .who = who, .time = last->end });
		return UNI_PROMISE_NONE;
	}
	if (p->created && runs_itself(p))
		add_step(w, (struct uni_promise_step){
				    .kind = UNI_STEP_NEVER_RAN, .who = who, .time = p->begin });
	return is_signalled(p) || runs_itself(p) ? step_origin(w, who) : step_unresolved(w, who);
}

/* The cause that `runner` ran at `time`: the promise that it had waited for, if that has ended.
 * Otherwise the promise that signalled it, and the cause that this one ran. */
static uint32_t cause_of_run(struct walk *w, uint32_t runner, uint64_t time, uint64_t *before)
{
	while (runner != UNI_PROMISE_NONE) {
		const struct uni_promise_run *run = run_at(w->m, runner, uni_min(time, *before));
		const struct uni_promise_wait *wait;

		if (run == NULL || run->wait == UNI_PROMISE_NONE)
			return step_origin(w, runner);
		wait = &w->m->waits.v[run->wait];
		if (!add_step(w, (struct uni_promise_step){ .kind = UNI_STEP_WAITED,
					 .who = runner,
					 .by = wait->on,
					 .begin = wait->begin,
					 .ready = wait->ready,
					 .time = wait->end }))
			return UNI_PROMISE_NONE;
		time = *before = wait->ready;
		if (w->m->all.v[wait->on].fate != UNI_FATE_OPEN)
			return wait->on;
		runner = wait->waker;
		if (!add_step(w, (struct uni_promise_step){ .kind = UNI_STEP_SIGNALLED,
					 .who = wait->on,
					 .by = runner,
					 .time = wait->ready }))
			return UNI_PROMISE_NONE;
	}
	return UNI_PROMISE_NONE;
}

/* An ended promise leads to the cause that its resolver ran. */
static uint32_t step_ended(struct walk *w, uint32_t who, uint64_t *before)
{
	const struct uni_promise *p = &w->m->all.v[who];

	add_step(
		w, (struct uni_promise_step){
			   .kind = p->fate == UNI_FATE_FAILED ? UNI_STEP_FAILED : UNI_STEP_RESOLVED,
			   .who = who,
			   .by = p->resolver,
			   .time = p->end });
	return cause_of_run(w, p->resolver, p->end, before);
}

size_t uni_promise_why(
	const struct uni_promise_model *m, uint32_t who, struct uni_promise_step *steps, size_t cap)
{
	struct walk w = { m, steps, 0, cap, false };
	uint64_t before = UNI_PROMISE_OPEN;

	while (who != UNI_PROMISE_NONE && who < m->all.nr && w.nr + 1 < cap) {
		const struct uni_promise *p = &m->all.v[who];

		if (is_in_circle(&w, who)) {
			add_step(&w,
				(struct uni_promise_step){ .kind = UNI_STEP_CIRCLE, .who = who });
			return w.nr;
		}
		if (p->fate == UNI_FATE_OPEN) {
			who = step_stuck(&w, who);
		} else if (p->fate == UNI_FATE_BECAME) {
			add_step(&w, (struct uni_promise_step){ .kind = UNI_STEP_BECAME,
					     .who = who,
					     .by = p->other,
					     .time = p->end });
			who = p->other;
		} else {
			who = step_ended(&w, who, &before);
		}
	}
	if (who != UNI_PROMISE_NONE)
		add_step(&w, (struct uni_promise_step){ .kind = UNI_STEP_CUT, .who = who });
	return w.nr;
}
