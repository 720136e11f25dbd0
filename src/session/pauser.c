/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop that pauses a guest for each sample: absolute deadlines start + k/F with jitter, the
 * pause guard, a duty cap, delivery after the resume, statistics.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "session/run.h"
#include "session/schedule.h"
#include "session/slab.h"
#include "session/stats.h"
#include "session/watch.h"
#include "target/guard.h"

#define NAP_NS	      (50 * UNI_NSEC_PER_MSEC) /* a stop request waits no longer than this */
#define GIVE_UP_NS    (2 * UNI_NSEC_PER_SEC)   /* of nothing but errors */
#define GIVE_UP_TICKS 20u
#define RELEASE_TRIES 3

/* What a tick took while the guest was held; delivered when it runs again. */
struct capture {
	uint64_t unknown; /* vCPUs without registers this time */
	uint64_t have;	  /* bit n: chain[n] holds vCPU n */
	uint64_t t_ns[UNI_VCPU_MAX], pause_ns[UNI_VCPU_MAX];
	struct uni_regs regs[UNI_VCPU_MAX];
	struct uni_chain chain[]; /* one a vCPU */
};

/* Everything is allocated before the first pause. */
struct sampler {
	struct uni_target *t;
	const struct uni_sampler_cfg *cfg;
	unsigned caps;
	uint32_t nr_vcpus;
	uint64_t mask;
	struct uni_as *as;
	struct uni_slab *slab; /* NULL: chains are followed while the guest is held */
	struct uni_watcher *watcher;
	struct capture *cap;
	struct uni_sched sched;
	struct uni_hist pause;
	struct uni_record_stats stats;
	uint64_t end_at_ns; /* UINT64_MAX: none */
	uint64_t next_progress_ns, next_watch_ns;
	uint64_t own_cpu_begin_ns;
	uint64_t errors; /* failed ticks in a row that were no -UNI_EAGAIN */
	int error;	 /* the last of them */
	int resume;	 /* 0, or why the guest could not be told to go on */
	enum uni_sampler_end end;
};

/* Brings the counters that live elsewhere into the statistics. */
static void sum_up(struct sampler *s, uint64_t now_ns)
{
	s->stats.late = s->sched.late;
	uni_sched_sum(
		&s->sched, uni_min(now_ns, s->end_at_ns), &s->stats.skipped, &s->stats.throttled);
	s->stats.end_ns = now_ns;
	s->stats.own_cpu_ns = uni_run_cpu_ns() - s->own_cpu_begin_ns;
	uni_hist_summary(&s->pause, &s->stats.pause);
}

static void progress(struct sampler *s, uint64_t now_ns)
{
	if (s->cfg->on_progress == NULL || now_ns < s->next_progress_ns)
		return;
	s->next_progress_ns = now_ns + UNI_PROGRESS_NS;
	sum_up(s, now_ns);
	s->cfg->on_progress(s->cfg->ctx, &s->stats, now_ns - s->stats.begin_ns);
}

/*
 * Waits for the deadline in naps. False: the run is over, s->end says why. A clock_nanosleep that
 * a signal interrupts returns early, so a stop request is seen at once.
 */
static bool wait_until(struct sampler *s, uint64_t deadline_ns)
{
	for (;;) {
		uint64_t now_ns = uni_now_ns(), until_ns;
		struct timespec ts;

		progress(s, now_ns);
		if (uni_run_asked_to_stop(s->cfg) || now_ns >= s->end_at_ns) {
			s->end = uni_run_asked_to_stop(s->cfg) ? UNI_END_STOPPED : UNI_END_DURATION;
			return false;
		}
		if (now_ns >= deadline_ns)
			return true;
		until_ns = uni_min(uni_min(deadline_ns, s->end_at_ns), now_ns + NAP_NS);
		ts = uni_ns_timespec(until_ns);
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		if (until_ns != deadline_ns && !uni_run_alive(s->t)) {
			s->end = UNI_END_GONE;
			return false;
		}
	}
}

/* What a pause is for; RETAKE: chains for which the slab was too small. */
enum purpose { CHAINS, RETAKE, WATCHES };

/*
 * Chains of the vCPUs in the mask that have registers, or what finish_chains() needs for them. The
 * memory must be read while the guest is held.
 */
static void capture_chains(struct sampler *s, uint64_t mask, enum purpose purpose)
{
	struct capture *c = s->cap;
	uint64_t begin_ns = uni_now_ns();

	for (uint32_t v = 0; v < s->nr_vcpus; v++) {
		const struct uni_regs *regs = &c->regs[v];

		if ((mask >> v & 1) == 0)
			continue;
		c->t_ns[v] = begin_ns;
		if (regs->state == UNI_VCPU_OFFLINE)
			continue;
		if (regs->state == UNI_VCPU_UNKNOWN || !regs->pc_valid) {
			c->unknown += purpose == CHAINS;
			continue;
		}
		if (s->slab != NULL && purpose == CHAINS)
			uni_slab_take(s->slab, v, regs);
		else
			uni_unwind(s->cfg->unwinder, s->as, regs, &c->chain[v]);
		c->have |= 1ull << v;
	}
	s->stats.unwind_ns += uni_now_ns() - begin_ns;
}

/* With the guest running again: the vCPUs whose slab was too small. */
static uint64_t finish_chains(struct sampler *s, uint64_t mask)
{
	uint64_t begin_ns = uni_now_ns(), again = 0;
	struct capture *c = s->cap;

	for (uint32_t v = 0; v < s->nr_vcpus; v++) {
		if ((mask & c->have) >> v & 1 &&
			!uni_slab_unwind(s->slab, v, &c->regs[v], &c->chain[v]))
			again |= 1ull << v;
	}
	s->stats.unwind_ns += uni_now_ns() - begin_ns;
	return again;
}

/* With the guest held: only reads, into memory that is there. */
static void capture_watches(struct sampler *s)
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

static void deliver_one(struct sampler *s, uint32_t vcpu)
{
	const struct uni_chain *chain = &s->cap->chain[vcpu];
	uint32_t pause_ns = (uint32_t)uni_min(s->cap->pause_ns[vcpu], (uint64_t)UINT32_MAX);
	struct uni_sample sample = {
		.t_ns = s->cap->t_ns[vcpu],
		.weight = 1,
		.guest = s->cfg->guest,
		.vcpu = vcpu,
		.pause_ns = pause_ns,
		.stop = chain->stop,
		.state = s->cap->regs[vcpu].state,
		.nr = chain->nr,
		.pc = chain->pc,
		.flags = chain->flags,
	};

	if (chain->nr == 0) {
		s->stats.failed++;
		return;
	}
	s->stats.samples++;
	uni_record_stats_count(&s->stats, &sample);
	if (s->cfg->on_sample != NULL)
		s->cfg->on_sample(s->cfg->ctx, &sample);
}

static void deliver(struct sampler *s)
{
	s->stats.ticks++;
	s->stats.failed += s->cap->unknown;
	for (uint32_t v = 0; v < s->nr_vcpus; v++) {
		if (s->cap->have >> v & 1)
			deliver_one(s, v);
	}
}

/* Ends the pause, whatever it takes: a guest that stays stopped is the worst that can happen. */
static void end_pause(struct sampler *s, struct uni_pause *p)
{
	int rc = uni_pause_end(p);

	for (int i = 0; rc < 0 && rc != -UNI_EGONE && i < RELEASE_TRIES; i++)
		rc = s->t->ops->release(s->t);
	if (rc < 0)
		p->end_ns = uni_now_ns();
	s->resume = rc;
}

static void note_pause(struct sampler *s, const struct uni_pause *p, uint64_t mask)
{
	if (s->caps & UNI_CAP_DEAD)
		return;
	for (uint32_t v = 0; v < s->nr_vcpus; v++) {
		if (mask >> v & 1)
			s->cap->pause_ns[v] += p->end_ns - p->begin_ns;
	}
	uni_hist_add(&s->pause, p->end_ns - p->begin_ns);
	uni_sched_paused(&s->sched, p->begin_ns, p->end_ns);
}

/* One snap, held while memory is read. */
static int hold_once(struct sampler *s, uint64_t mask, enum purpose purpose)
{
	_cleanup_pause_ struct uni_pause p = { 0 };
	int rc = uni_pause_begin(&p, s->t, mask, s->cap->regs);

	if (rc < 0) {
		/* Where it failed for good the guest may have stood still all the same. */
		if (rc != -UNI_EAGAIN)
			uni_sched_paused(&s->sched, p.begin_ns, p.end_ns);
		return rc;
	}
	if (purpose != WATCHES)
		capture_chains(s, mask, purpose);
	if (purpose != RETAKE)
		capture_watches(s);
	end_pause(s, &p);
	note_pause(s, &p, mask);
	return 0;
}

static int snap_held(struct sampler *s, uint64_t mask, bool only_watches)
{
	int rc = hold_once(s, mask, only_watches ? WATCHES : CHAINS);
	uint64_t again = 0;

	if (rc == 0 && s->slab != NULL && !only_watches)
		again = finish_chains(s, mask);
	/* If it cannot be had once more, the shorter chain is what there is. */
	if (again != 0 && s->resume == 0)
		(void)hold_once(s, again, RETAKE);
	return rc;
}

/*
 * A target that can hold single vCPUs is asked for one after the other: each stands still for its
 * own stack only, and none waits for a vCPU thread that the host has put aside. A tick is good if
 * one vCPU was.
 */
static int tick_held(struct sampler *s, bool only_watches)
{
	int rc = 0, good = 0;

	if (s->caps & UNI_CAP_WHOLE_STOP)
		return snap_held(s, s->mask, only_watches);
	for (uint32_t v = 0; v < s->nr_vcpus; v++) {
		int one = snap_held(s, 1ull << v, only_watches);

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
static int tick_free(struct sampler *s, bool only_watches)
{
	struct uni_pause p = { .begin_ns = uni_now_ns() };
	int rc = s->t->ops->snap(s->t, s->mask, s->cap->regs, 0);

	p.end_ns = uni_now_ns();
	if (rc < 0)
		return rc;
	if (!(s->caps & UNI_CAP_NO_PAUSE))
		note_pause(s, &p, s->mask);
	if (!only_watches)
		capture_chains(s, s->mask, CHAINS);
	capture_watches(s);
	return 0;
}

static int tick(struct sampler *s, bool only_watches)
{
	int rc;

	s->cap->have = s->cap->unknown = 0;
	memset(s->cap->pause_ns, 0, sizeof(s->cap->pause_ns));
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
static bool tick_failed(struct sampler *s, int rc)
{
	if (rc == -UNI_EGONE || !uni_run_alive(s->t)) {
		s->end = UNI_END_GONE;
		return false;
	}
	s->stats.failed++;
	if (rc == -UNI_EAGAIN)
		return true;
	s->error = rc;
	s->errors++;
	return s->stats.samples != 0 || s->errors < GIVE_UP_TICKS ||
	       uni_now_ns() - s->stats.begin_ns < GIVE_UP_NS;
}

static bool serve(struct sampler *s)
{
	int rc;

	uni_sched_served(&s->sched, uni_now_ns());
	memset(s->cap->regs, 0, s->nr_vcpus * sizeof(s->cap->regs[0]));
	rc = tick(s, false);
	if (rc < 0)
		return tick_failed(s, rc);
	s->errors = 0;
	deliver(s);
	if (s->resume == -UNI_EGONE)
		s->end = UNI_END_GONE;
	return s->resume == 0 && (s->caps & UNI_CAP_STILL) == 0;
}

static void run(struct sampler *s)
{
	while (wait_until(s, uni_sched_deadline(&s->sched))) {
		if (!serve(s))
			break;
		uni_sched_advance(&s->sched, uni_now_ns());
	}
	/* The last values belong to the end of the run; a guest that ended keeps the refreshed. */
	if (s->watcher != NULL && s->end != UNI_END_GONE && s->resume == 0 &&
		s->stats.samples != 0) {
		s->next_watch_ns = 0;
		(void)tick(s, true);
	}
	sum_up(s, uni_now_ns());
}

static void sampler_free(struct sampler *s)
{
	if (s == NULL)
		return;
	uni_watcher_destroy(s->watcher);
	uni_slab_destroy(s->slab);
	uni_as_destroy(s->as);
	free(s->cap);
	free(s);
}

static void cleanup_sampler(struct sampler **s)
{
	sampler_free(*s);
}

/* One vCPU after the other is unwound in one pause: together they get the time of one. */
static struct uni_as_budget budget_for(uint32_t nr_vcpus)
{
	struct uni_as_budget b = uni_as_budget_default;

	b.wall_ns = uni_max(b.wall_ns / nr_vcpus, UNI_NSEC_PER_MSEC);
	return b;
}

static int sampler_init(struct sampler *s, struct uni_target *t, const struct uni_sampler_cfg *cfg,
	struct uni_err *err)
{
	struct uni_as_budget budget;
	int n = t->ops->nr_vcpus(t), rc;

	s->caps = t->ops->caps(t);
	s->nr_vcpus = (uint32_t)uni_min(n, UNI_VCPU_MAX);
	s->mask = s->nr_vcpus == 64 ? UINT64_MAX : (1ull << s->nr_vcpus) - 1;
	s->cap = calloc(1, sizeof(*s->cap) + s->nr_vcpus * sizeof(s->cap->chain[0]));
	if (s->cap == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	/* Touched now, so that no page fault falls into a pause. */
	memset(s->cap->chain, 0xff, s->nr_vcpus * sizeof(s->cap->chain[0]));
	budget = budget_for(s->nr_vcpus);
	rc = uni_as_create(t->ops->gmem(t), &budget, &s->as, err);
	if (rc == 0)
		rc = uni_slab_create(t, cfg->unwinder, s->nr_vcpus, &budget, &s->slab, err);
	if (rc == 0 && cfg->nr_watch != 0)
		rc = uni_watcher_create(cfg->watch, cfg->nr_watch, t->arch, &s->watcher, err);
	return rc;
}

static void sampler_start(struct sampler *s)
{
	uint64_t now_ns = uni_now_ns();

	s->own_cpu_begin_ns = uni_run_cpu_ns();
	s->stats.begin_ns = now_ns;
	s->next_progress_ns = now_ns + UNI_PROGRESS_NS;
	s->end_at_ns = uni_run_end_ns(s->cfg, now_ns);
	uni_sched_init(&s->sched, now_ns, s->cfg->frequency, s->cfg->max_duty, s->cfg->jitter,
		now_ns ^ (uint64_t)getpid() << 32);
}

static int result(const struct sampler *s, struct uni_err *err)
{
	const char *scheme = s->t->ops->scheme;
	int code = s->resume < 0 ? -s->resume : -s->error;

	if (s->resume < 0 && s->resume != -UNI_EGONE)
		return uni_err_set(err, (enum uni_errcode)code,
			"target %s: the guest could not be told to go on (%s); detaching tries "
			"again",
			scheme, uni_strerror(s->resume));
	if (s->errors == 0 || s->stats.samples != 0 || s->end == UNI_END_GONE)
		return 0;
	return uni_err_set(err, (enum uni_errcode)code,
		"target %s: no registers in %llu attempts (%s); is the guest still running, and "
		"may this user trace its VMM? `uniscope doctor` says more",
		scheme, (unsigned long long)s->errors, uni_strerror(s->error));
}

/*
 * A guest stands still for as long as this thread waits for a CPU, so it goes before all others
 * while it samples: it sleeps nearly always and each pause is bounded. Without the right to that,
 * pauses are longer on a busy host, and the report says so.
 */
static void hurry(bool on)
{
	struct sched_param p = { .sched_priority = on ? 1 : 0 };

	(void)sched_setscheduler(0, (on ? SCHED_FIFO : SCHED_OTHER) | SCHED_RESET_ON_FORK, &p);
}

/* Sleeps of this thread end up to 50 us late by default. */
static void run_on_time(struct sampler *s)
{
	int slack = prctl(PR_GET_TIMERSLACK);

	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	if (s->cfg->hurry)
		hurry(true);
	sampler_start(s);
	run(s);
	if (s->cfg->hurry)
		hurry(false);
	if (slack > 0)
		(void)prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
}

void uni_pauser_run(struct uni_sampler_job *job)
{
	_cleanup_(cleanup_sampler) struct sampler *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		job->rc = uni_err_set(&job->err, UNI_ENOMEM, "out of memory");
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
	job->rc = result(s, &job->err);
}
