/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop that pauses a guest for each sample. It has absolute deadlines start + k/F with jitter,
 * the pause guard, a limit on pause time, delivery after the resume, and statistics. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "sampling/pauser.h"
#include "backend/guard.h"

#define NAP_NS	      (50 * UNI_NSEC_PER_MSEC) /* a stop request waits no longer than this */
#define LOOK_NS	      UNI_NSEC_PER_MSEC	       /* between two samples */
#define LOOK_MIN_NS   (100 * UNI_NSEC_PER_USEC)
#define GIVE_UP_NS    (2 * UNI_NSEC_PER_SEC) /* of nothing but errors */
#define GIVE_UP_TICKS 20u
#define RELEASE_TRIES 3

/* Brings the counters that live elsewhere into the statistics. */
static void sum_up(struct uni_pauser *s, uint64_t now_ns)
{
	s->stats.late = uni_min(s->sched.late, s->stats.ticks + s->stats.failed);
	uni_sched_sum(
		&s->sched, uni_min(now_ns, s->end_at_ns), &s->stats.skipped, &s->stats.throttled);
	s->stats.end_ns = now_ns;
	s->stats.own_cpu_ns = uni_run_cpu_ns() - s->own_cpu_begin_ns;
	uni_hist_summary(&s->pause, &s->stats.pause);
}

static void tell_pauser_progress(struct uni_pauser *s, uint64_t now_ns)
{
	if (s->cfg->on_progress == NULL || now_ns < s->next_progress_ns)
		return;
	s->next_progress_ns = now_ns + UNI_PROGRESS_NS;
	sum_up(s, now_ns);
	s->cfg->on_progress(s->cfg->ctx, &s->stats, now_ns - s->stats.begin_ns);
}

/* Uses some of the time until the next sample to find newly loaded images. */
static void look_out(struct uni_pauser *s, uint64_t now_ns, uint64_t deadline_ns)
{
	uint64_t left_ns = uni_min(deadline_ns, s->end_at_ns);

	left_ns -= uni_min(now_ns, left_ns);
	if (s->cfg->lookout != NULL && s->stats.samples != 0 && left_ns >= LOOK_MIN_NS)
		uni_lookout_go_on(
			s->cfg->lookout, s->cap->regs, s->nr_vcpus, uni_min(left_ns / 2, LOOK_NS));
}

/*
 * If naps are too long, waits without one, but not before all other threads. The guest may want
 * this CPU, so this is done only if it may be paused without limit. False: a nap will do.
 */
static bool wait_awake(struct uni_pauser *s, uint64_t deadline_ns, uint64_t now_ns)
{
	bool hurry = s->hurry.on;

	if (s->cfg->max_duty < 1.0 || !uni_sched_avoids_nap(&s->sched, deadline_ns - now_ns))
		return false;
	uni_hurry_end(&s->hurry);
	while (uni_now_ns() < deadline_ns && !uni_run_asked_to_stop(s->cfg))
		;
	if (hurry)
		uni_hurry_begin(&s->hurry);
	return true;
}

/*
 * Waits for the deadline in naps. False: the run is over, s->end says why. A clock_nanosleep that
 * a signal interrupts returns early, so a stop request is seen at once.
 */
static bool wait_until(struct uni_pauser *s, uint64_t deadline_ns)
{
	for (;;) {
		uint64_t now_ns = uni_now_ns(), until_ns;
		struct timespec ts;

		tell_pauser_progress(s, now_ns);
		if (uni_run_has_left(s->cfg)) {
			s->end = UNI_END_GONE;
			return false;
		}
		if (uni_run_asked_to_stop(s->cfg) || now_ns >= s->end_at_ns) {
			s->end = uni_run_asked_to_stop(s->cfg) ? UNI_END_STOPPED : UNI_END_DURATION;
			return false;
		}
		if (now_ns >= deadline_ns)
			return true;
		look_out(s, now_ns, deadline_ns);
		if (wait_awake(s, deadline_ns, now_ns))
			continue;
		until_ns = uni_min(uni_min(deadline_ns, s->end_at_ns), now_ns + NAP_NS);
		ts = uni_ns_timespec(until_ns);
		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == 0)
			uni_sched_napped(&s->sched, until_ns, uni_now_ns());
		if (until_ns != deadline_ns && !uni_run_alive(s->t)) {
			s->end = UNI_END_GONE;
			return false;
		}
	}
}

/* The thread that the vCPU runs, unless all threads are captured anyway. */
static void capture_thread(struct uni_pauser *s, uint32_t v)
{
	struct uni_capture *c = s->cap;

	if (s->threads != NULL || s->cfg->model == NULL)
		return;
	if (s->slab != NULL) { /* else the space was used for the chain just now */
		if (uni_unwind_begin(s->cfg->unwinder, s->as, &c->regs[v]) != 0)
			return;
		uni_as_prefetch(s->as);
	}
	if (uni_model_current(s->cfg->model, s->as, c->regs, v, &c->thread[v]) == 0)
		uni_vcpuset_add(&c->have_thread, v);
}

static void unwind_now(struct uni_pauser *s, const struct uni_regs *regs, struct uni_chain *c)
{
	uni_unwind(s->cfg->unwinder, s->as, regs, c);
	uni_unwind_stopped(s->cfg->unwinder, s->as, regs, c);
}

/*
 * Chains of the vCPUs in the set that have registers, or what finish_chains() needs for them. The
 * memory must be read while the guest is held.
 */
static void capture_chains(struct uni_pauser *s, const struct uni_vcpuset *set)
{
	struct uni_capture *c = s->cap;
	uint64_t begin_ns = uni_now_ns();

	uni_sched_sampled(&s->sched, begin_ns);
	for (uint32_t v = 0; v < s->nr_vcpus; v++) {
		const struct uni_regs *regs = &c->regs[v];

		if (!uni_vcpuset_has(set, v))
			continue;
		c->t_ns[v] = begin_ns;
		if (regs->state == UNI_VCPU_OFFLINE)
			continue;
		if (regs->state == UNI_VCPU_UNKNOWN || !regs->pc_valid) {
			c->unknown++;
			continue;
		}
		if (s->slab != NULL)
			uni_slab_take(s->slab, v, regs, &c->chain[v]);
		else
			unwind_now(s, regs, &c->chain[v]);
		uni_vcpuset_add(&c->have, v);
		capture_thread(s, v);
	}
	if (s->threads != NULL)
		uni_threads_take(s->threads, c->regs, s->nr_vcpus);
	if (s->threads != NULL && uni_threads_are_short(s->threads))
		s->stats.short_lists++;
	s->stats.unwind_ns += uni_now_ns() - begin_ns;
}

/* With the guest running again. */
static void finish_chains(struct uni_pauser *s, const struct uni_vcpuset *set)
{
	uint64_t begin_ns = uni_now_ns();
	struct uni_capture *c = s->cap;

	for (uint32_t v = 0; s->slab != NULL && v < s->nr_vcpus; v++) {
		if (!uni_vcpuset_has(set, v) || !uni_vcpuset_has(&c->have, v))
			continue;
		/* A short chain has its leaf all the same. */
		(void)uni_slab_unwind(s->slab, v, &c->regs[v], &c->chain[v]);
		uni_slab_unskid(s->slab, v, &c->regs[v], &c->chain[v]);
	}
	if (s->threads != NULL)
		(void)uni_threads_unwind(s->threads);
	s->stats.unwind_ns += uni_now_ns() - begin_ns;
}

/* With the guest held: only reads, into memory that is there. */
static void capture_watches(struct uni_pauser *s)
{
	uint64_t now_ns;

	if (s->watcher == NULL)
		return;
	now_ns = uni_now_ns();
	if (now_ns < s->next_watch_ns)
		return;
	uni_watcher_read(s->watcher, s->as, s->cap->regs, s->nr_vcpus, now_ns);
	s->next_watch_ns = now_ns + UNI_WATCH_NS;
}

/* Ends the pause, whatever it takes: a guest that stays stopped is the worst that can happen. */
static void end_pause(struct uni_pauser *s, struct uni_pause *p)
{
	int rc = uni_pause_end(p);

	for (int i = 0; rc < 0 && rc != -UNI_EGONE && i < RELEASE_TRIES; i++)
		rc = s->t->ops->release(s->t);
	if (rc < 0)
		p->end_ns = uni_now_ns();
	s->resume = rc;
}

static void note_pause(
	struct uni_pauser *s, const struct uni_pause *p, const struct uni_vcpuset *set)
{
	if (s->caps & UNI_CAP_DEAD)
		return;
	for (uint32_t v = 0; v < s->nr_vcpus; v++) {
		if (uni_vcpuset_has(set, v))
			s->cap->pause_ns[v] += p->end_ns - p->begin_ns;
	}
	uni_hist_add(&s->pause, p->end_ns - p->begin_ns);
	uni_sched_paused(&s->sched, p->begin_ns, p->end_ns);
}

/* One snap, held while memory is read. */
static int snap_held(struct uni_pauser *s, const struct uni_vcpuset *set, bool only_watches)
{
	_cleanup_pause_ struct uni_pause p = { 0 };
	int rc = uni_pause_begin(&p, s->t, set, s->cap->regs);

	if (rc < 0) {
		/* The guest may have been stopped even by a pause that failed for good. */
		if (rc != -UNI_EAGAIN)
			uni_sched_paused(&s->sched, p.begin_ns, p.end_ns);
		return rc;
	}
	if (!only_watches && s->ran != NULL)
		uni_ran_not(s->ran, set, s->cap->regs, &s->cap->waited);
	if (!only_watches)
		capture_chains(s, set);
	capture_watches(s);
	end_pause(s, &p);
	if (s->ran != NULL)
		uni_ran_resumed(s->ran, set, s->cap->regs);
	/* They only grow: now does as well, and the guest need not wait. */
	if (s->shares != NULL) {
		uni_shares_held(s->shares, set, s->cap->regs, p.begin_ns);
		uni_shares_resumed(s->shares, set);
	}
	note_pause(s, &p, set);
	if (!only_watches)
		finish_chains(s, set);
	return 0;
}

/*
 * If the target can hold single vCPUs, holds one after the other. Each is stopped only for its own
 * stack, and none waits for a vCPU thread that the host has descheduled. A tick is good if one vCPU
 * was.
 */
static int tick_held(struct uni_pauser *s, bool only_watches)
{
	int rc = 0, good = 0;

	/* A list of threads is only whole while nothing changes it. */
	if ((s->caps & UNI_CAP_WHOLE_STOP) || s->threads != NULL)
		return snap_held(s, &s->all, only_watches);
	for (uint32_t v = 0; v < s->nr_vcpus; v++) {
		const struct uni_vcpuset set = uni_vcpuset_one(v);
		int one = snap_held(s, &set, only_watches);

		if (one == -UNI_EGONE)
			return one;
		if (one == 0)
			good++;
		if (s->resume < 0)
			break;
		else
			rc = one;
		if (one < 0)
			s->cap->unknown++;
	}
	if (good == 0)
		s->cap->unknown = 0; /* the whole tick failed and is counted as such */
	return good != 0 ? 0 : rc;
}

/* A target that cannot hold: its memory is read while the guest runs, or it does not run. */
static int tick_free(struct uni_pauser *s, bool only_watches)
{
	struct uni_pause p = { .begin_ns = uni_now_ns() };
	int rc = s->t->ops->snap(s->t, &s->all, s->cap->regs, 0);

	p.end_ns = uni_now_ns();
	if (rc < 0)
		return rc;
	if (!(s->caps & UNI_CAP_NO_PAUSE))
		note_pause(s, &p, &s->all);
	if (!only_watches) {
		capture_chains(s, &s->all);
		if (s->threads != NULL)
			(void)uni_threads_unwind(s->threads);
	}
	capture_watches(s);
	return 0;
}

static int take_tick(struct uni_pauser *s, bool only_watches)
{
	int rc;

	s->cap->unknown = 0;
	s->cap->have = s->cap->have_thread = s->cap->waited = (struct uni_vcpuset){ 0 };
	memset(s->cap->pause_ns, 0, s->nr_vcpus * sizeof(s->cap->pause_ns[0]));
	if (!(s->caps & UNI_CAP_HOLD))
		return tick_free(s, only_watches);
	if (s->cfg->gate != NULL)
		(void)pthread_rwlock_rdlock(s->cfg->gate);
	rc = tick_held(s, only_watches);
	if (s->cfg->gate != NULL)
		(void)pthread_rwlock_unlock(s->cfg->gate);
	return rc;
}

/* A tick without registers. False: the run is over. */
static bool tick_failed(struct uni_pauser *s, int rc)
{
	if (rc == -UNI_EGONE || !uni_run_alive(s->t)) {
		s->end = UNI_END_GONE;
		return false;
	}
	s->stats.failed++;
	if (s->shares != NULL)
		uni_shares_interrupt(s->shares);
	if (rc == -UNI_EAGAIN)
		return true;
	s->error = rc;
	s->errors++;
	return s->stats.samples != 0 || s->errors < GIVE_UP_TICKS ||
	       uni_now_ns() - s->stats.begin_ns < GIVE_UP_NS;
}

static bool serve_deadline(struct uni_pauser *s, uint64_t now_ns)
{
	int rc;

	uni_sched_served(&s->sched, now_ns);
	memset(s->cap->regs, 0, s->nr_vcpus * sizeof(s->cap->regs[0]));
	if (s->threads != NULL)
		uni_threads_prepare(s->threads);
	rc = s->cfg->awake != NULL && !s->cfg->awake(s->cfg->ctx) ? -UNI_EAGAIN
								  : take_tick(s, false);
	if (rc < 0)
		return tick_failed(s, rc);
	s->errors = 0;
	uni_pauser_note_halted(s);
	uni_pauser_deliver(s);
	if (s->resume == -UNI_EGONE)
		s->end = UNI_END_GONE;
	return s->resume == 0 && (s->caps & UNI_CAP_STILL) == 0;
}

static void run_deadlines(struct uni_pauser *s)
{
	bool goes_on = true;

	while (goes_on && wait_until(s, uni_sched_deadline(&s->sched))) {
		uint64_t begin_ns = uni_now_ns(), end_ns;

		goes_on = serve_deadline(s, begin_ns);
		end_ns = uni_now_ns();
		s->stats.busy_ns += end_ns - begin_ns;
		if (goes_on)
			uni_sched_advance(&s->sched, end_ns);
	}
	/* A busy host may have let us sleep past the last deadlines. */
	if (goes_on)
		uni_sched_end(&s->sched, uni_min(uni_now_ns(), s->end_at_ns));
	/* The last values belong to the end of the run; a guest that ended keeps the refreshed. */
	if (s->watcher != NULL && s->end != UNI_END_GONE && s->resume == 0 &&
		s->stats.samples != 0) {
		s->next_watch_ns = 0;
		(void)take_tick(s, true);
	}
	sum_up(s, uni_now_ns());
}

static void capture_free(struct uni_capture *c)
{
	if (c == NULL)
		return;
	free(c->t_ns);
	free(c->pause_ns);
	free(c->regs);
	free(c->chain);
	free(c->thread);
	free(c);
}

static struct uni_capture *capture_create(uint32_t nr_vcpus)
{
	struct uni_capture *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->t_ns = calloc(nr_vcpus, sizeof(*c->t_ns));
	c->pause_ns = calloc(nr_vcpus, sizeof(*c->pause_ns));
	c->regs = calloc(nr_vcpus, sizeof(*c->regs));
	c->chain = calloc(nr_vcpus, sizeof(*c->chain));
	c->thread = calloc(nr_vcpus, sizeof(*c->thread));
	if (c->t_ns == NULL || c->pause_ns == NULL || c->regs == NULL || c->chain == NULL ||
		c->thread == NULL) {
		capture_free(c);
		return NULL;
	}
	/* Touched now, so that no page fault falls into a pause. */
	memset(c->chain, 0xff, nr_vcpus * sizeof(c->chain[0]));
	memset(c->thread, 0xff, nr_vcpus * sizeof(c->thread[0]));
	memset(c->regs, 0, nr_vcpus * sizeof(c->regs[0]));
	return c;
}

static void sampler_free(struct uni_pauser *s)
{
	if (s == NULL)
		return;
	uni_watcher_destroy(s->watcher);
	uni_threads_destroy(s->threads);
	uni_thread_ids_destroy(s->ids);
	uni_slab_destroy(s->slab);
	uni_ran_destroy(s->ran);
	uni_shares_destroy(s->shares);
	uni_as_destroy(s->as);
	capture_free(s->cap);
	free(s);
}

static void cleanup_sampler(struct uni_pauser **s)
{
	sampler_free(*s);
}

static uint64_t pause_ns_of(const struct uni_sampler_cfg *cfg)
{
	return cfg->pause_ns != 0 ? cfg->pause_ns : uni_as_budget_default.wall_ns;
}

/* All vCPUs are unwound in one pause: together they get the time of one. */
/* A dead guest waits for nothing: other load does not end its chains. */
static struct uni_as_budget budget_for(const struct uni_pauser *s)
{
	struct uni_as_budget b = uni_as_budget_default;

	b.wall_ns = uni_max(pause_ns_of(s->cfg) / s->nr_vcpus, UNI_NSEC_PER_MSEC);
	if ((s->caps & UNI_CAP_DEAD) != 0)
		b.cpu_ns = b.wall_ns;
	return b;
}

/* Nor does it end a list of threads, for which a guest is not held. */
static uint64_t list_ns_of(const struct uni_pauser *s)
{
	return (s->caps & (UNI_CAP_HOLD | UNI_CAP_DEAD)) == UNI_CAP_HOLD ? pause_ns_of(s->cfg)
									 : UNI_THREADS_NO_CLOCK;
}

static int init_threads(struct uni_pauser *s, struct uni_err *err)
{
	s->ids = uni_thread_ids_create();
	if (s->ids == NULL)
		return uni_err_nomem(err);
	return s->cfg->threads ? uni_threads_create(s->t, s->cfg->unwinder, s->cfg->model,
					 list_ns_of(s), &s->threads, err)
			       : 0;
}

static int sampler_init(struct uni_pauser *s, struct uni_target *t,
	const struct uni_sampler_cfg *cfg, struct uni_err *err)
{
	struct uni_as_budget budget;
	int n = t->ops->nr_vcpus(t), rc;

	s->caps = t->ops->caps(t);
	s->nr_vcpus = (uint32_t)uni_min(n, UNI_VCPU_MAX);
	s->all = uni_vcpuset_first(s->nr_vcpus);
	s->cap = capture_create(s->nr_vcpus);
	if (s->cap == NULL)
		return uni_err_nomem(err);
	budget = budget_for(s);
	rc = uni_as_create(t->ops->gmem(t), &budget, &s->as, err);
	if (rc == 0)
		rc = uni_slab_create(t, cfg->unwinder, s->nr_vcpus, &budget, true, &s->slab, err);
	if (rc == 0)
		rc = uni_ran_create(t, s->nr_vcpus, &s->ran, err);
	if (rc == 0)
		rc = uni_shares_create(t, s->nr_vcpus, 1e9 / cfg->frequency, &s->shares, err);
	if (rc == 0 && cfg->nr_watch != 0)
		rc = uni_watcher_create(cfg->watch, cfg->nr_watch, t->arch, &s->watcher, err);
	return rc == 0 && cfg->model != NULL ? init_threads(s, err) : rc;
}

static void sampler_start(struct uni_pauser *s)
{
	uint64_t now_ns = uni_now_ns();

	if (s->t->ops->begin_run != NULL)
		s->t->ops->begin_run(s->t);
	s->own_cpu_begin_ns = uni_run_cpu_ns();
	s->stats.begin_ns = now_ns;
	s->stats.max_duty = s->cfg->max_duty;
	s->next_progress_ns = now_ns + UNI_PROGRESS_NS;
	s->end_at_ns = uni_run_end_ns(s->cfg, now_ns);
	uni_sched_init(&s->sched, now_ns, s->cfg->frequency, s->cfg->max_duty, s->cfg->jitter,
		now_ns ^ (uint64_t)getpid() << 32);
	s->sched.skip_late = s->cfg->skip_late;
	if (s->cfg->on_begin != NULL)
		s->cfg->on_begin(s->cfg->ctx);
}

static int pauser_result(const struct uni_pauser *s, struct uni_err *err)
{
	const char *scheme = s->t->ops->scheme;
	int code = s->resume < 0 ? -s->resume : -s->error;

	if (s->resume < 0 && s->resume != -UNI_EGONE)
		return uni_err_set(err, (enum uni_errcode)code,
			"target %s: the guest could not be told to go on (%s); detaching tries "
			"again",
			scheme, uni_strerror(s->resume));
	if (s->end == UNI_END_GONE && s->t->ops->lost != NULL)
		return s->t->ops->lost(s->t, err);
	if (s->errors == 0 || s->stats.samples != 0 || s->end == UNI_END_GONE)
		return 0;
	return uni_err_set(err, (enum uni_errcode)code,
		"target %s: no registers in %llu attempts (%s); is the guest still running, and "
		"may this user trace its VMM? `uniscope doctor` says more",
		scheme, (unsigned long long)s->errors, uni_strerror(s->error));
}

/* Sleeps of this thread end up to 50 us late by default. */
static void run_on_time(struct uni_pauser *s)
{
	int slack = prctl(PR_GET_TIMERSLACK);

	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	if (s->cfg->hurry)
		uni_hurry_begin(&s->hurry);
	s->stats.realtime = s->hurry.on;
	sampler_start(s);
	run_deadlines(s);
	uni_hurry_end(&s->hurry);
	if (slack > 0)
		(void)prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
}

void uni_pauser_run(struct uni_sampler_job *job)
{
	_cleanup_(cleanup_sampler) struct uni_pauser *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		job->rc = uni_err_nomem(&job->err);
		return;
	}
	s->t = job->t;
	s->cfg = &job->cfg;
	job->rc = sampler_init(s, job->t, &job->cfg, &job->err);
	if (job->rc < 0)
		return;
	run_on_time(s);
	job->stats = s->stats;
	job->end = s->end;
	if (s->halted_key != 0)
		job->halted_ns = s->stats.end_ns - s->halted_since_ns;
	job->rc = pauser_result(s, &job->err);
}
