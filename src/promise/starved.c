/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds promises that could run and did not, because another one had the CPU, or the host had
 * it. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "promise/query.h"
#include "promise/query_priv.h"

static int by_begin(const void *a, const void *b)
{
	const struct uni_promise_run *x = *(const struct uni_promise_run *const *)a,
				     *y = *(const struct uni_promise_run *const *)b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* maximum of runs examined for one wait: work stays in proportion to the trace */
#define HOG_RUNS 4096

#define USUAL 3

#define SLEEP_MAX_US 1000000000000000 /* 30 years */

struct long_runs {
	UNI_VEC(const struct uni_promise_run *) all; /* by their beginning */
	uint64_t longest;
	uint32_t *of; /* by promise: how many */
};

/* The run of another promise that covers most of [from, to) on that CPU, at least busy_ns of it. */
static const struct uni_promise_run *find_hog(
	const struct long_runs *r, const struct uni_promise_wait *w, uint64_t to, uint64_t busy_ns)
{
	const struct uni_promise_run *best = NULL;
	uint64_t most = 0, first = w->ready > r->longest ? w->ready - r->longest : 0;
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

/* maximum of silences examined for one run: time after these counts as silent */
#define SILENCES 4096

/* How long nothing was heard of the run in [from, to). */
static uint64_t silent_ns(const struct uni_promise_model *m, const struct uni_promise_run *run,
	uint64_t from, uint64_t to)
{
	uint64_t sum = 0;
	uint32_t i = run->silence;

	for (unsigned k = 0; i != UNI_PROMISE_NONE; k++) {
		const struct uni_promise_silence *s = &m->silences.v[i];
		uint64_t begin = uni_max(s->begin, from), end = uni_min(s->end, to);

		if (k == SILENCES)
			return sum + (to - uni_min(begin, to));
		if (s->begin >= to)
			break;
		if (end > begin)
			sum += end - begin;
		i = s->next;
	}
	return sum;
}

/* Does this promise usually have the CPU for that long, and hardly any other? A host preempts any
 * promise. */
static bool is_usual(const struct uni_promise_model *m, const struct long_runs *r, uint32_t promise)
{
	uint32_t nr = r->of[promise];

	return nr >= USUAL && nr >= m->all.v[promise].nr_runs / 2 && nr >= r->all.nr / 10 * 9;
}

/*
 * When the waiter could go on. Somebody who sleeps can as soon as the time is up, though the main
 * loop says so only when it gets the CPU. The port calls such a promise "sleep N us".
 */
static uint64_t ready_at(const struct uni_promise_model *m, const struct uni_promise_wait *w)
{
	const struct uni_promise *on = &m->all.v[w->on];
	const char *name;
	char buf[64];
	uint64_t us = 0;

	if (on->label == 0 || !on->created)
		return w->ready;
	name = uni_promise_name(m, w->on, buf, sizeof(buf));
	if (strncmp(name, "sleep ", 6) != 0)
		return w->ready;
	for (name += 6; *name >= '0' && *name <= '9' && us < SLEEP_MAX_US; name++)
		us = us * 10 + (uint64_t)(*name - '0');
	if (strcmp(name, " us") != 0 || us >= SLEEP_MAX_US)
		return w->ready;
	return uni_min(w->ready, uni_max(w->begin, on->begin + us * 1000));
}

static int judge_wait(const struct uni_promise_model *m, const struct long_runs *r,
	const struct uni_promise_wait *wait, uint64_t busy_ns, struct uni_findings *f)
{
	struct uni_promise_wait due = *wait, *w = &due;
	uint64_t to = w->end == UNI_PROMISE_OPEN ? m->end : w->end, from, until;
	const struct uni_promise_run *by;
	struct uni_finding found = {
		.kind = UNI_FINDING_STARVED, .who = w->waiter, .by = UNI_PROMISE_NONE
	};

	w->ready = found.time = uni_min(ready_at(m, wait), to);
	if (to - w->ready < busy_ns)
		return 0;
	by = find_hog(r, w, to, busy_ns);
	if (by == NULL)
		return 0;
	from = uni_max(by->begin, w->ready);
	until = uni_min(by->end, to);
	found.other = by->promise;
	found.ns = to - w->ready;
	found.silent = silent_ns(m, by, from, until);
	/* If it was the last known run, another promise's turn may be missing. */
	if (by->end < m->end || m->lost == 0)
		found.on_cpu = uni_promise_on_cpu_ns(m, from, until);
	if (until - from - found.silent >= busy_ns || found.on_cpu >= busy_ns ||
		is_usual(m, r, by->promise))
		return uni_vec_push(&f->all, found) ? 0 : -UNI_ENOMEM;
	return uni_vec_push(&f->doubts, found) ? 0 : -UNI_ENOMEM;
}

static int find_long(const struct uni_promise_model *m, uint64_t busy_ns, struct long_runs *ret)
{
	ret->of = calloc(m->all.nr + 1, sizeof(*ret->of));
	if (ret->of == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < m->runs.nr; i++) {
		const struct uni_promise_run *r = &m->runs.v[i];

		if (r->end - r->begin < busy_ns)
			continue;
		ret->longest = uni_max(ret->longest, r->end - r->begin);
		ret->of[r->promise]++;
		if (!uni_vec_push(&ret->all, r))
			return -UNI_ENOMEM;
	}
	if (ret->all.nr != 0)
		qsort(ret->all.v, ret->all.nr, sizeof(ret->all.v[0]), by_begin);
	return 0;
}

int uni_promise_starved(
	const struct uni_promise_model *m, uint64_t busy_ns, struct uni_findings *ret)
{
	struct long_runs runs = { 0 };
	int rc = find_long(m, busy_ns, &runs);

	for (size_t i = 0; rc == 0 && runs.all.nr != 0 && i < m->waits.nr; i++)
		rc = judge_wait(m, &runs, &m->waits.v[i], busy_ns, ret);
	uni_vec_free(&runs.all);
	free(runs.of);
	return rc;
}
