/* SPDX-License-Identifier: BSD-2-Clause */
/* Guests that the host's kernel samples. Nothing is stopped: one thread fetches the collected
 * samples of all guests, rarely enough to cost nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "sampling/rawstack.h"
#include "sampling/ways.h"
#include "sampling/schedule.h"
#include "recording/stats.h"
#include "sampling/threads.h"
#include "sampling/watch.h"
#include "backend/guard.h"

#define COUNTS_NS   UNI_NSEC_PER_SEC	      /* reading out counts costs more */
#define TURN_NS	    (200 * UNI_NSEC_PER_MSEC) /* unless the stream wants to be read often */
#define GIVE_UP_NS  (2 * UNI_NSEC_PER_SEC)    /* of nothing but errors */
#define LOOK_NS	    (200 * UNI_NSEC_PER_MSEC) /* whether to stop, at the latest */
#define HOLD_TRIES  40
#define HOLD_NAP_NS (5 * UNI_NSEC_PER_MSEC)

struct guest {
	struct uni_sampler_job *job;
	const struct uni_target_ops *ops;
	bool active;
	uint32_t nr_vcpus;   /* as it began */
	uint32_t nr_sampled; /* with those that were plugged in */
	uint64_t end_at_ns;  /* UINT64_MAX: none */
	uint64_t drain_ns, next_drain_ns, next_progress_ns, next_watch_ns;
	uint32_t turn_samples; /* see struct uni_stream_stats */
	uint64_t own_cpu_begin_ns;
	uint64_t failed;       /* running, but without a chain */
	uint64_t errors_since; /* 0: the last read went well */
	int error;
	struct uni_rawstack *raw;   /* made with the first such sample */
	struct uni_chain chain;	    /* of the last one */
	struct uni_chain step;	    /* for chains from the guest: frames without frame pointers */
	struct uni_thread_ids *ids; /* made with the first sample that names its thread */
	struct uni_as *as;	    /* for the watches, with the two below */
	struct uni_watcher *watcher;
	struct uni_hist pause;
	struct uni_regs *regs; /* nr_vcpus */
};

bool uni_streamer_can(struct uni_target *t)
{
	return (t->ops->caps(t) & UNI_CAP_STREAM) && t->ops->stream_method != NULL &&
	       t->ops->stream_start != NULL && t->ops->stream_read != NULL;
}

/* For a guest that reports it: only the guest's address of the thread is known. */
static uint32_t thread_id(struct guest *g, uint64_t object)
{
	const struct uni_guest_thread t = { .object = object };
	const struct uni_sampler_cfg *cfg = &g->job->cfg;
	const struct uni_record_thread *is_new;
	uint32_t id;

	if (object == 0)
		return 0;
	if (g->ids == NULL)
		g->ids = uni_thread_ids_create();
	if (g->ids == NULL)
		return 0;
	id = uni_thread_ids_get(g->ids, &t, &is_new);
	if (is_new != NULL && cfg->on_thread != NULL)
		cfg->on_thread(cfg->ctx, is_new);
	return id;
}

static void put_sample(struct guest *g, const struct uni_stream_sample *s, uint64_t thread)
{
	struct uni_sampler_job *job = g->job;
	const struct uni_sample sample = {
		.t_ns = s->t_ns,
		.weight = s->weight,
		.guest = job->cfg.guest,
		.vcpu = s->vcpu,
		.thread = thread_id(g, thread),
		.stop = s->stop,
		.state = s->state,
		.nr = s->nr,
		.pc = s->pc,
		.flags = s->flags,
	};

	/* Time in which the vCPU did not run its guest is known without a chain. */
	if (s->nr == 0 && s->state == UNI_VCPU_RUNNING) {
		g->failed += s->weight;
		return;
	}
	g->nr_sampled = uni_max(g->nr_sampled, uni_min(s->vcpu, UNI_VCPU_MAX - 1u) + 1);
	job->stats.samples++;
	uni_record_stats_count(&job->stats, &sample);
	if (job->cfg.unwinder != NULL)
		uni_record_stats_place(&job->stats, &sample, job->cfg.unwinder->hints);
	if (job->cfg.on_sample != NULL)
		job->cfg.on_sample(job->cfg.ctx, &sample);
}

static void on_stream_sample(void *ctx, const struct uni_stream_sample *s)
{
	put_sample(ctx, s, 0);
}

static bool make_rawstack(struct guest *g)
{
	return g->raw != NULL ||
	       uni_rawstack_create(g->job->t, g->job->cfg.unwinder, &g->raw, NULL) == 0;
}

/*
 * At a function's beginning or end, the leaf has no frame. Then the chain by frame pointers lacks
 * its caller. The return address is on top of the stack, and one unwind step finds it there. If the
 * frame is there, too, both are the same.
 */
static bool skips_caller(struct guest *g, const struct uni_stream_raw *s)
{
	uint64_t fp = 0;

	if (!uni_regs_get(&s->regs, g->job->t->arch->fp_reg, &fp) || fp == s->regs.sp ||
		!make_rawstack(g))
		return false;
	uni_rawstack_unwind(g->raw, s, &g->step);
	return g->step.nr >= 2 && (g->step.flags[1] & UNI_FRAME_GUESS) == 0;
}

/* A sample whose chain the guest has followed. */
static void on_followed(struct guest *g, const struct uni_stream_raw *s)
{
	bool missing = skips_caller(g, s);
	uint16_t room = (uint16_t)(UNI_CHAIN_MAX - missing), nr = uni_min(s->nr, room);
	const struct uni_stream_sample sample = { .t_ns = s->t_ns,
		.weight = s->weight,
		.vcpu = s->vcpu,
		.state = s->regs.state,
		.stop = nr < s->nr ? UNI_STOP_LIMIT : s->stop,
		.nr = (uint16_t)(nr + missing),
		.pc = g->chain.pc,
		.flags = g->chain.flags };

	memset(g->chain.flags, 0, sample.nr);
	g->chain.pc[0] = s->pc[0];
	if (missing)
		g->chain.pc[1] = g->step.pc[1];
	memcpy(&g->chain.pc[1 + missing], &s->pc[1], (nr - 1u) * sizeof(s->pc[0]));
	put_sample(g, &sample, s->thread);
}

/* The kernel's frames go below those of the process, whose outermost may find no room then. */
static void join_kernel(struct uni_chain *c, const struct uni_stream_raw *s)
{
	uint16_t nr = uni_min(s->nr_kernel, UNI_CHAIN_MAX - 1);
	uint16_t own = uni_min(c->nr, (uint16_t)(UNI_CHAIN_MAX - nr));

	if (nr == 0)
		return;
	if (own < c->nr)
		c->stop = UNI_STOP_LIMIT;
	memmove(&c->pc[nr], c->pc, own * sizeof(c->pc[0]));
	memmove(&c->flags[nr], c->flags, own);
	memcpy(c->pc, s->kernel, nr * sizeof(c->pc[0]));
	memset(c->flags, UNI_FRAME_KERNEL, nr);
	c->flags[0] |= UNI_FRAME_EXACT;
	c->nr = (uint16_t)(nr + own);
}

/* A sample that is still to be unwound. */
static void on_stream_raw(void *ctx, const struct uni_stream_raw *s)
{
	struct guest *g = ctx;
	struct uni_stream_sample sample = {
		.t_ns = s->t_ns, .weight = s->weight, .vcpu = s->vcpu, .state = s->regs.state
	};

	if (s->nr != 0) {
		on_followed(g, s);
		return;
	}
	if (!make_rawstack(g)) {
		g->failed += s->weight;
		return;
	}
	uni_rawstack_unwind(g->raw, s, &g->chain);
	if (s->unwound != NULL)
		s->unwound(s->unwound_ctx);
	if (s->depth_ret != NULL)
		*s->depth_ret = g->chain.top_sp - uni_min(s->regs.sp, g->chain.top_sp);
	join_kernel(&g->chain, s);
	sample.stop = g->chain.stop;
	sample.nr = g->chain.nr;
	sample.pc = g->chain.pc;
	sample.flags = g->chain.flags;
	put_sample(g, &sample, s->thread);
}

static void on_stream_exit(void *ctx, const struct uni_stream_exit *e)
{
	struct guest *g = ctx;
	const struct uni_sampler_cfg *cfg = &g->job->cfg;
	struct uni_stream_exit exit = *e;

	exit.guest = cfg->guest;
	if (__builtin_add_overflow(g->job->stats.exits, e->weight, &g->job->stats.exits))
		g->job->stats.exits = UINT64_MAX;
	if (cfg->on_exit != NULL)
		cfg->on_exit(cfg->ctx, &exit);
}

static void on_stream_pause(void *ctx, uint64_t ns)
{
	struct guest *g = ctx;

	uni_hist_add(&g->pause, ns);
}

/* Brings the counters that live elsewhere into the statistics. */
static void sum_up(struct guest *g, uint64_t now_ns)
{
	struct uni_record_stats *st = &g->job->stats;
	struct uni_stream_stats in = { 0 };

	if (g->ops->stream_stats != NULL)
		g->ops->stream_stats(g->job->t, &in);
	st->lost = in.lost;
	st->exits_lost = in.exits_lost;
	st->failed = g->failed + in.failed;
	st->callers = in.callers;
	st->host_ns = in.host_ns;
	st->host_runs = in.host_runs;
	st->serve_ns = in.serve_ns;
	st->silent = in.silent;
	st->end_ns = now_ns;
	st->own_cpu_ns = uni_run_cpu_ns() - g->own_cpu_begin_ns;
	uni_hist_summary(&g->pause, &st->pause);
}

static void tell_stream_progress(struct guest *g, uint64_t now_ns)
{
	const struct uni_sampler_cfg *cfg = &g->job->cfg;

	if (cfg->on_progress == NULL || now_ns < g->next_progress_ns)
		return;
	g->next_progress_ns = now_ns + UNI_PROGRESS_NS;
	sum_up(g, now_ns);
	cfg->on_progress(cfg->ctx, &g->job->stats, now_ns - g->job->stats.begin_ns);
}

/* One read through this vCPU. Only a guest whose memory is watched is held for it. */
static int look_through(struct guest *g, uint32_t vcpu, bool keep)
{
	_cleanup_pause_ struct uni_pause p = { 0 };
	struct uni_target *t = g->job->t;
	const struct uni_vcpuset one = uni_vcpuset_one(vcpu);
	unsigned caps = g->ops->caps(t);
	int rc;

	memset(g->regs, 0, g->nr_vcpus * sizeof(g->regs[0]));
	rc = caps & UNI_CAP_HOLD ? uni_pause_begin(&p, t, &one, g->regs)
				 : g->ops->snap(t, &one, g->regs, 0);
	if (rc < 0)
		return rc;
	if (keep)
		uni_watcher_read(g->watcher, g->as, g->regs, g->nr_vcpus, uni_now_ns());
	if (!(caps & UNI_CAP_HOLD))
		return 0;
	rc = uni_pause_end(&p);
	uni_hist_add(&g->pause, p.end_ns - p.begin_ns);
	return rc;
}

static void read_watches(struct guest *g, unsigned tries, bool keep)
{
	struct timespec nap = uni_ns_timespec(HOLD_NAP_NS);
	pthread_rwlock_t *gate = g->job->cfg.gate;
	int rc = -UNI_EAGAIN;

	if (g->watcher == NULL)
		return;
	for (unsigned i = 0; i < tries && rc == -UNI_EAGAIN; i++) {
		if (i != 0)
			(void)nanosleep(&nap, NULL);
		if (gate != NULL)
			(void)pthread_rwlock_rdlock(gate);
		rc = look_through(g, i % g->nr_vcpus, keep);
		if (gate != NULL)
			(void)pthread_rwlock_unlock(gate);
	}
	g->next_watch_ns = uni_now_ns() + UNI_WATCH_NS;
}

static int drain_stream(struct guest *g)
{
	const struct uni_stream_sink sink = {
		.ctx = g,
		.raw = on_stream_raw,
		.sample = on_stream_sample,
		.exit = on_stream_exit,
		.pause = on_stream_pause,
	};

	return g->ops->stream_read(g->job->t, &sink);
}

static void finish_guest(struct guest *g, enum uni_sampler_end end)
{
	struct uni_sampler_job *job = g->job;
	uint64_t end_ns;

	/* The last values belong to the end of the run; a guest that ended keeps the refreshed. */
	if (end != UNI_END_GONE)
		read_watches(g, HOLD_TRIES, true);
	if (g->ops->stream_stop != NULL)
		(void)g->ops->stream_stop(job->t);
	end_ns = uni_now_ns();
	(void)drain_stream(g);
	sum_up(g, end_ns);
	/* Now: a target that runs may have to look at the whole VMM for this. */
	uni_sampler_times(job->t, &job->stats);
	job->end = end;
	g->active = false;
	if (g->error < 0 && job->stats.samples == 0 && job->stats.exits == 0 && end != UNI_END_GONE)
		job->rc = uni_err_set(&job->err, (enum uni_errcode) - g->error,
			"target %s: its samples cannot be read (%s)", g->ops->scheme,
			uni_strerror(g->error));
}

/* A target that wants to be read in time may want so more often by now. */
static void refresh_turn(struct guest *g)
{
	struct uni_stream_stats in = { 0 };

	if (g->turn_samples == 0)
		return;
	g->ops->stream_stats(g->job->t, &in);
	g->turn_samples = in.turn_samples;
}

static uint64_t drain_period(const struct guest *g)
{
	const struct uni_sampler_cfg *cfg = &g->job->cfg;

	if (cfg->counts)
		return g->turn_samples != 0 ? TURN_NS : COUNTS_NS;
	return uni_sched_drain_ns(cfg->frequency, g->nr_sampled, g->turn_samples);
}

/* Fetches the collected samples. False: there will be no more. */
static bool fetch_gathered(struct guest *g, uint64_t now_ns)
{
	bool alive = uni_run_alive(g->job->t) && !uni_run_has_left(&g->job->cfg);
	int rc = drain_stream(g);

	refresh_turn(g);
	g->drain_ns = drain_period(g);
	g->next_drain_ns = uni_max(g->next_drain_ns + g->drain_ns, now_ns + g->drain_ns / 2);
	/* It looks at the guest each time: at moments with which the guest cannot keep step. */
	if (g->turn_samples == 1)
		g->next_drain_ns =
			now_ns + g->drain_ns / 2 + uni_hash_pair(now_ns, g->drain_ns) % g->drain_ns;
	if (rc == -UNI_EGONE || !alive) {
		finish_guest(g, UNI_END_GONE);
		return false;
	}
	if (rc >= 0 || rc == -UNI_EAGAIN) {
		g->errors_since = 0;
		g->error = 0;
		return true;
	}
	g->error = rc;
	if (g->errors_since == 0)
		g->errors_since = now_ns;
	if (g->job->stats.samples != 0 || now_ns - g->errors_since < GIVE_UP_NS)
		return true;
	finish_guest(g, UNI_END_STOPPED);
	return false;
}

static void step_guest(struct guest *g, uint64_t now_ns)
{
	if (uni_run_asked_to_stop(&g->job->cfg)) {
		finish_guest(g, UNI_END_STOPPED);
		return;
	}
	if (now_ns >= g->end_at_ns) {
		finish_guest(g, UNI_END_DURATION);
		return;
	}
	if (now_ns >= g->next_drain_ns && !fetch_gathered(g, now_ns))
		return;
	if (g->watcher != NULL && now_ns >= g->next_watch_ns)
		read_watches(g, 1, true);
	tell_stream_progress(g, now_ns);
}

static int prepare_watches(struct guest *g, struct uni_err *err)
{
	const struct uni_sampler_cfg *cfg = &g->job->cfg;
	int rc;

	if (cfg->nr_watch == 0)
		return 0;
	rc = uni_as_create(g->ops->gmem(g->job->t), NULL, &g->as, err);
	if (rc == 0)
		rc = uni_watcher_create(
			cfg->watch, cfg->nr_watch, g->job->t->arch, &g->watcher, err);
	return rc;
}

/* The target needs the time before its first sample to get ready; it does not count. */
static uint64_t told_begin(struct guest *g, uint64_t asked_ns)
{
	struct uni_stream_stats in = { 0 };

	if (g->ops->stream_stats != NULL)
		g->ops->stream_stats(g->job->t, &in);
	g->turn_samples = in.turn_samples;
	return in.begin_ns != 0 ? in.begin_ns : asked_ns;
}

static int start_stream(struct guest *g, struct uni_sampler_job *job)
{
	const struct uni_stream_cfg cfg = { .frequency = job->cfg.frequency,
		.ordered = !job->cfg.counts,
		.exits_every = job->cfg.exits_every,
		.hurry = job->cfg.hurry,
		.max_duty = job->cfg.max_duty };
	uint64_t begin_ns;
	int rc;

	g->job = job;
	g->ops = job->t->ops;
	g->nr_vcpus = (uint32_t)uni_min(g->ops->nr_vcpus(job->t), UNI_VCPU_MAX);
	g->nr_sampled = g->nr_vcpus;
	g->regs = calloc(g->nr_vcpus, sizeof(*g->regs));
	if (g->regs == NULL)
		return uni_err_nomem(&job->err);
	rc = prepare_watches(g, &job->err);
	if (rc < 0)
		return rc;
	/* A target may need time to get ready for its first hold: before anything is sampled. */
	read_watches(g, HOLD_TRIES, false);
	g->own_cpu_begin_ns = uni_run_cpu_ns();
	begin_ns = uni_now_ns();
	rc = g->ops->stream_start(job->t, &cfg, job->cfg.unwinder->hints, &job->err);
	if (rc < 0)
		return rc;
	begin_ns = told_begin(g, begin_ns);
	job->stats.begin_ns = job->stats.end_ns = begin_ns;
	g->end_at_ns = uni_run_end_ns(&job->cfg, begin_ns);
	g->drain_ns = drain_period(g);
	g->next_drain_ns = begin_ns + g->drain_ns;
	g->next_progress_ns = begin_ns + UNI_PROGRESS_NS;
	g->active = true;
	read_watches(g, HOLD_TRIES, true);
	if (job->cfg.on_begin != NULL)
		job->cfg.on_begin(job->cfg.ctx);
	return 0;
}

/* Until something is due; a signal, which may ask us to stop, ends it early. */
static void sleep_until_due(struct guest *const *g, size_t nr)
{
	uint64_t due_ns = uni_now_ns() + LOOK_NS;
	struct timespec ts;

	for (size_t i = 0; i < nr; i++) {
		if (!g[i]->active)
			continue;
		due_ns = uni_min(due_ns, uni_min(g[i]->next_drain_ns, g[i]->end_at_ns));
	}
	ts = uni_ns_timespec(due_ns);
	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static bool any_active(struct guest *const *g, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (g[i]->active)
			return true;
	}
	return false;
}

void uni_streamer_run(struct uni_sampler_job *const *job, size_t nr)
{
	struct guest *guest[UNI_GUEST_MAX];
	size_t n = 0;

	for (size_t i = 0; i < nr && i < UNI_GUEST_MAX; i++) {
		struct guest *g = calloc(1, sizeof(*g));

		job[i]->rc = g != NULL ? start_stream(g, job[i]) : uni_err_nomem(&job[i]->err);
		if (g != NULL)
			guest[n++] = g;
	}
	while (any_active(guest, n)) {
		uint64_t now_ns;

		sleep_until_due(guest, n);
		now_ns = uni_now_ns();
		for (size_t i = 0; i < n; i++) {
			if (guest[i]->active)
				step_guest(guest[i], now_ns);
		}
	}
	while (n != 0) {
		struct guest *g = guest[--n];

		uni_watcher_destroy(g->watcher);
		uni_as_destroy(g->as);
		uni_rawstack_destroy(g->raw);
		uni_thread_ids_destroy(g->ids);
		free(g->regs);
		free(g);
	}
}
