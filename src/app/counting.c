/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/counting.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "annotate/code.h"
#include "app/signals.h"
#include "app/term.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "mem/as.h"

#define LOOK_NS	      (100 * UNI_NSEC_PER_MSEC) /* how often signals are heeded */
#define BURST_NS      (100 * UNI_NSEC_PER_MSEC) /* of stops, before a share means something */
#define INTERVALS_MAX (1u << 20)
#define GAPS_MAX      1000

struct call {
	unsigned which;
	uint64_t pc;
	bool guess;
};

struct counter {
	struct uni_guest *g;
	struct uni_count *c;
	struct uni_as *as;
	const struct uni_count_watcher *watcher;
	double max_pause;
	uint64_t begin_ns;
	uint64_t there_ns; /* when the breakpoints were last seen to be there */
	/* Since when, and how long it stood and was called since: for the judgement. */
	uint64_t since_ns, stood_ns;
	uint64_t calls[UNI_BREAKS_MAX];
	/* The calls of the stop that is served. */
	struct call call[UNI_VCPU_MAX];
	size_t nr_calls;
	struct uni_chain chain;
	pthread_rwlock_t gate;
};

/* The guest stands. */
static void take_call(void *ctx, unsigned which, uint32_t vcpu, const struct uni_regs *regs)
{
	struct counter *k = ctx;
	struct call *call = &k->call[k->nr_calls];

	(void)vcpu;
	if (k->nr_calls == uni_array_len(k->call))
		return;
	k->nr_calls++;
	*call = (struct call){ .which = which };
	if (k->watcher != NULL) {
		(void)uni_unwind_begin(&k->g->unwinder, k->as, regs);
		k->watcher->look(k->watcher->ctx, k->as, regs);
		return;
	}
	uni_unwind(&k->g->unwinder, k->as, regs, &k->chain);
	if (k->chain.nr > 1) {
		call->pc = k->chain.pc[1];
		call->guess = (k->chain.flags[1] & UNI_FRAME_GUESS) != 0;
	}
}

static void add_caller(struct uni_count_function *f, const struct call *call)
{
	for (size_t i = 0; i < f->nr_callers; i++) {
		if (f->caller[i].pc == call->pc) {
			f->caller[i].calls++;
			f->caller[i].guess = f->caller[i].guess || call->guess;
			return;
		}
	}
	if (f->nr_callers == UNI_COUNT_CALLERS) {
		f->other_callers++;
		return;
	}
	f->caller[f->nr_callers++] =
		(struct uni_count_caller){ .pc = call->pc, .guess = call->guess, .calls = 1 };
}

static int add_interval(struct uni_count_function *f, uint64_t ns)
{
	f->shortest_ns = f->nr_intervals == 0 ? ns : uni_min(f->shortest_ns, ns);
	f->longest_ns = uni_max(f->longest_ns, ns);
	f->sum_ns += ns;
	f->nr_intervals++;
	if (f->interval.nr == INTERVALS_MAX)
		return 0;
	return uni_vec_push(&f->interval, ns) ? 0 : -UNI_ENOMEM;
}

/* Time of the guest: without the stops and gaps until now. */
static uint64_t guest_time(const struct counter *k, uint64_t at_ns)
{
	uint64_t away = k->c->stopped_ns + k->c->gap_ns, since = at_ns - k->begin_ns;

	return since > away ? since - away : 0;
}

/* After a stop; the guest runs again. */
static int add_calls(struct counter *k, const struct uni_break_stop *stop)
{
	uint64_t at_ns = guest_time(k, stop->stop_ns);
	int rc = 0;

	for (size_t i = 0; i < k->nr_calls && rc == 0; i++) {
		struct uni_count_function *f = &k->c->f[k->call[i].which];

		if (f->in_a_row)
			rc = add_interval(f, at_ns - f->last_ns);
		if (f->calls++ == 0)
			f->first_ns = at_ns;
		f->last_ns = at_ns;
		f->in_a_row = true;
		add_caller(f, &k->call[i]);
		k->calls[k->call[i].which]++;
	}
	if (rc == 0 && k->watcher != NULL)
		rc = k->watcher->tell(k->watcher->ctx, at_ns);
	k->nr_calls = 0;
	k->c->stops++;
	k->c->stopped_ns += stop->pause_ns;
	k->c->longest_ns = uni_max(k->c->longest_ns, stop->pause_ns);
	k->stood_ns += stop->pause_ns;
	return rc;
}

static void judge_again(struct counter *k)
{
	k->since_ns = uni_now_ns();
	k->stood_ns = 0;
	memset(k->calls, 0, sizeof(k->calls));
}

/* Gives up the one that was called most, if the guest stands too long for the calls. */
static int limit_stops(struct counter *k)
{
	double passed_ns = (double)(uni_now_ns() - k->since_ns), share;
	struct uni_count_function *f = NULL;
	uint64_t all = 0, most = 0;
	size_t which = 0;

	if (k->max_pause >= 1 || (double)k->stood_ns <= (double)BURST_NS + k->max_pause * passed_ns)
		return 0;
	for (size_t i = 0; i < k->c->nr; i++) {
		all += k->calls[i];
		if (k->c->f[i].refused || k->calls[i] <= most)
			continue;
		which = i;
		most = k->calls[i];
		f = &k->c->f[i];
	}
	if (f == NULL)
		return 0;
	share = (double)k->stood_ns * (double)most / (double)all;
	f->refused = true;
	f->until_ns = guest_time(k, uni_now_ns());
	f->rate = (double)most / uni_max((passed_ns - (double)k->stood_ns) / 1e9, 1e-9);
	f->share = share / passed_ns;
	uni_note("%s is called too often to be counted so, and its breakpoint is removed: %" PRIu64
		 " calls took %.0f us each, %.0f %% of the time (--max-pause %g)",
		f->name, most, share / (double)most / 1e3, 100 * f->share, 100 * k->max_pause);
	judge_again(k);
	return k->g->t->ops->breaks->clear(k->g->t, (unsigned)which);
}

static bool any_left(const struct uni_count *c)
{
	for (size_t i = 0; i < c->nr; i++) {
		if (!c->f[i].refused)
			return true;
	}
	return false;
}

static int set_breaks(struct counter *k, struct uni_err *err)
{
	uint64_t addr[UNI_BREAKS_MAX] = { 0 };

	for (size_t i = 0; i < k->c->nr; i++)
		addr[i] = k->c->f[i].refused ? 0 : k->c->f[i].addr;
	return k->g->t->ops->breaks->set(k->g->t, addr, err);
}

static int clear_breaks(struct counter *k)
{
	int rc = 0;

	for (unsigned i = 0; i < k->c->nr && rc != -UNI_EGONE; i++)
		rc = k->g->t->ops->breaks->clear(k->g->t, i);
	return rc;
}

/* Again, after a time without breakpoints, which began at or before from_ns. */
static int set_again(struct counter *k, uint64_t from_ns, struct uni_err *err)
{
	int rc;

	for (size_t i = 0; i < k->c->nr; i++)
		k->c->f[i].in_a_row = false;
	do {
		*err = (struct uni_err){ 0 };
		rc = set_breaks(k, err);
	} while (rc == -UNI_EAGAIN && !atomic_load(uni_signals_stop()));
	k->there_ns = uni_now_ns();
	k->c->gap_ns += k->there_ns - from_ns;
	if (++k->c->gaps == GAPS_MAX && rc == 0)
		rc = uni_err_set(err, UNI_EIO, "the breakpoints are lost again and again");
	judge_again(k);
	return rc;
}

/* Ctrl-Z: nobody would serve the guest meanwhile. */
static int suspend_counting(struct counter *k, struct uni_err *err)
{
	uint64_t from_ns = uni_now_ns();
	int rc = clear_breaks(k);

	uni_signals_suspend(&k->gate);
	return rc == -UNI_EGONE ? rc : set_again(k, from_ns, err);
}

static int count_once(struct counter *k, uint64_t until_ns, struct uni_err *err)
{
	struct uni_break_stop stop = { .there_ns = k->there_ns };
	int rc = k->g->t->ops->breaks->wait(k->g->t, until_ns, take_call, k, &stop);

	k->there_ns = stop.there_ns;
	if (rc == 1)
		rc = add_calls(k, &stop);
	k->nr_calls = 0;
	if (stop.removed) { /* and then it ended */
		k->c->gap_ns += uni_now_ns() - k->there_ns;
		k->c->gaps++;
	}
	if (rc == 0)
		rc = limit_stops(k);
	if (rc == -UNI_EAGAIN) {
		uni_note("the breakpoints were removed, as uniscope could not serve the guest for "
			 "a while: calls of that time are not counted");
		rc = set_again(k, k->there_ns, err);
	}
	return rc;
}

static int count_calls(struct counter *k, double duration, struct uni_err *err)
{
	uint64_t now = k->begin_ns, end_ns = duration > 0 ? now + (uint64_t)(duration * 1e9) : 0;
	int rc = 0;

	while (rc == 0 && !atomic_load(uni_signals_stop()) && any_left(k->c) &&
		(end_ns == 0 || now < end_ns)) {
		uint64_t until = now + LOOK_NS;

		if (uni_signals_is_suspending())
			rc = suspend_counting(k, err);
		if (rc == 0)
			rc = count_once(k, end_ns != 0 ? uni_min(until, end_ns) : until, err);
		now = uni_now_ns();
		uni_progress("%" PRIu64 " call%s in %.0f s", k->c->stops, uni_plural(k->c->stops),
			(double)(now - k->begin_ns) / 1e9);
	}
	uni_progress_end();
	return rc;
}

int uni_count_run(struct uni_guest *g, const struct uni_count_args *args, struct uni_count *c,
	struct uni_err *err)
{
	struct counter *k = calloc(1, sizeof(*k));
	struct uni_signals signals;
	int lost = 0;
	int rc = k != NULL
			 ? uni_as_create(g->t->ops->gmem(g->t), &uni_as_budget_default, &k->as, err)
			 : uni_err_nomem(err);

	if (rc != 0) {
		free(k);
		return rc;
	}
	k->g = g;
	k->c = c;
	k->max_pause = args->max_pause;
	k->watcher = args->watcher;
	g->unwinder.max_frames = 2;
	uni_signals_init_gate(&k->gate);
	uni_signals_begin(&signals);
	rc = set_breaks(k, err);
	k->begin_ns = k->there_ns = uni_now_ns();
	judge_again(k);
	if (rc == 0) {
		uni_note("%zu function%s a breakpoint; Ctrl-C ends the counting", c->nr,
			c->nr == 1 ? " has" : "s have");
		rc = count_calls(k, args->duration, err);
	}
	c->ran_ns = guest_time(k, uni_now_ns());
	if (rc == 0)
		rc = clear_breaks(k);
	if (rc == -UNI_EGONE && g->t->ops->lost != NULL)
		lost = g->t->ops->lost(g->t, err);
	c->ended = rc == -UNI_EGONE && lost == 0;
	uni_signals_end(&signals);
	(void)pthread_rwlock_destroy(&k->gate);
	uni_as_destroy(k->as);
	free(k);
	if (rc == 0 || c->ended || lost != 0)
		return lost;
	return uni_err_set(
		err, (enum uni_errcode) - rc, "counting has failed: %s", uni_strerror(rc));
}

void uni_count_deinit(struct uni_count *c)
{
	for (size_t i = 0; i < c->nr; i++)
		uni_vec_free(&c->f[i].interval);
}

static int by_length(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

uint64_t uni_count_median(struct uni_count_function *f)
{
	qsort(f->interval.v, f->interval.nr, sizeof(*f->interval.v), by_length);
	return f->interval.v[f->interval.nr / 2];
}

static int by_calls(const void *a, const void *b)
{
	const struct uni_count_caller *x = a, *y = b;

	if (x->calls != y->calls)
		return x->calls > y->calls ? -1 : 1;
	return x->pc < y->pc ? -1 : x->pc > y->pc;
}

void uni_count_sort_callers(struct uni_count_function *f)
{
	qsort(f->caller, f->nr_callers, sizeof(*f->caller), by_calls);
}
