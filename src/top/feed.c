/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/feed.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "sampling/sample_queue.h"
#include "top/run.h"

#define QUEUE_BYTES	  (8u << 20) /* of one guest; all guests together have four times that */
#define QUEUE_BYTES_LEAST (1u << 20)
#define HOLD_NS		  UNI_NSEC_PER_SEC
#define EXITS_EVERY	  1000u /* all are counted; so few are looked at more closely */

/* One guest; what its sampling thread calls gets this. */
struct part {
	struct uni_target *t;
	struct uni_sampleq *queue;
	struct uni_standing standing; /* the sampling thread's */
	uint32_t seen_vcpus;	      /* the sampling thread's: their numbers are below */
	pthread_mutex_t lock;	      /* of what follows; held for copies only */
	uint32_t nr_vcpus;	      /* with those that were plugged in */
	uint64_t at_ns;
	char held[UNI_STANDING_TEXT];
	struct uni_record_stats stats;
};

struct uni_feed {
	size_t nr;
	struct part *part;
	struct uni_sampler_job *job; /* nr; the thread's while it runs */
	size_t next;		     /* the guest to take the next sample from */
	pthread_t thread;
	atomic_bool stop;
	atomic_bool ended;     /* job[] has the results */
	pthread_rwlock_t gate; /* for writing while this process is stopped */
	bool held;
};

static void on_sample(void *ctx, const struct uni_sample *s)
{
	struct part *p = ctx;

	if (s->vcpu < UNI_VCPU_MAX)
		p->seen_vcpus = uni_max(p->seen_vcpus, s->vcpu + 1);
	(void)uni_sampleq_push(p->queue, s);
}

/* The statistics have them at the end only. */
static void read_times(struct part *p)
{
	const struct uni_target_ops *ops = p->t->ops;

	if (ops->caps(p->t) & UNI_CAP_STREAM)
		uni_sampler_times(p->t, &p->stats);
}

/* vCPUs may have been plugged in. Under the lock. */
static void count_vcpus(struct part *p)
{
	p->nr_vcpus = uni_max(p->nr_vcpus, uni_max(p->seen_vcpus, p->stats.nr_times));
}

static void on_progress(void *ctx, const struct uni_record_stats *stats, uint64_t elapsed_ns)
{
	struct part *p = ctx;

	uni_standing_look(&p->standing);
	/* A reader that is in the middle of its copy gets the next one. */
	if (pthread_mutex_trylock(&p->lock) != 0)
		return;
	(void)uni_record_stats_copy(&p->stats, stats);
	read_times(p);
	count_vcpus(p);
	p->at_ns = uni_now_ns();
	if (!uni_standing_text(&p->standing, p->held))
		p->held[0] = '\0';
	(void)pthread_mutex_unlock(&p->lock);
}

/* True: no guest could be sampled as long as their exits are counted; so they are not any more. */
static bool give_up_exits(struct uni_feed *f)
{
	bool counted = false;

	for (size_t i = 0; i < f->nr; i++) {
		if (f->job[i].rc == 0 || f->job[i].stats.begin_ns != 0)
			return false;
		counted |= f->job[i].cfg.exits_every != 0;
		f->job[i].cfg.exits_every = 0;
	}
	return counted;
}

static void *sample_all(void *arg)
{
	struct uni_feed *f = arg;

	uni_sampler_run_all(f->job, f->nr);
	/* Better without VM exits than not at all. */
	if (give_up_exits(f))
		uni_sampler_run_all(f->job, f->nr);
	atomic_store_explicit(&f->ended, true, memory_order_release);
	return NULL;
}

static void feed_free(struct uni_feed *f)
{
	for (size_t i = 0; f->part != NULL && i < f->nr; i++) {
		uni_sampleq_destroy(f->part[i].queue);
		uni_record_stats_deinit(&f->part[i].stats);
		(void)pthread_mutex_destroy(&f->part[i].lock);
	}
	(void)pthread_rwlock_destroy(&f->gate);
	for (size_t i = 0; f->job != NULL && i < f->nr; i++)
		uni_record_stats_deinit(&f->job[i].stats);
	free(f->part);
	free(f->job);
	free(f);
}

static bool fill_part(
	struct uni_feed *f, size_t i, struct uni_guest *g, const struct uni_top_args *args)
{
	bool exits = !args->no_exits && (g->t->ops->caps(g->t) & UNI_CAP_EXITS);
	struct part *p = &f->part[i];

	p->t = f->job[i].t = g->t;
	p->standing = (struct uni_standing){ .g = g, .name = "", .quiet = true };
	f->job[i].cfg = (struct uni_sampler_cfg){ .guest = (uint32_t)i,
		.frequency = args->frequency,
		.exits_every = exits ? EXITS_EVERY : 0,
		.jitter = true,
		.unwinder = &g->unwinder,
		.stop = &f->stop,
		.gate = &f->gate,
		.on_sample = on_sample,
		.on_progress = on_progress,
		.ctx = p };
	uni_pace_apply(&args->pace, &f->job[i].cfg);
	p->nr_vcpus = (uint32_t)uni_max(g->t->ops->nr_vcpus(g->t), 1);
	p->queue = uni_sampleq_create(
		uni_max(uni_min(QUEUE_BYTES, 4 * QUEUE_BYTES / f->nr), QUEUE_BYTES_LEAST));
	return p->queue != NULL;
}

static struct uni_feed *feed_new(
	struct uni_guest *const *g, size_t nr, const struct uni_top_args *args)
{
	struct uni_feed *f = calloc(1, sizeof(*f));
	pthread_rwlockattr_t attr;
	bool ok;

	if (f == NULL)
		return NULL;
	/* A thread that waits to stop this process must not wait forever for a gap between
	 * samples. */
	(void)pthread_rwlockattr_init(&attr);
	(void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	(void)pthread_rwlock_init(&f->gate, &attr);
	(void)pthread_rwlockattr_destroy(&attr);
	f->part = calloc(nr, sizeof(*f->part));
	f->job = calloc(nr, sizeof(*f->job));
	f->nr = nr;
	ok = f->part != NULL && f->job != NULL;
	for (size_t i = 0; f->part != NULL && i < nr; i++)
		(void)pthread_mutex_init(&f->part[i].lock, NULL);
	for (size_t i = 0; ok && i < nr; i++)
		ok = fill_part(f, i, g[i], args);
	if (ok)
		return f;
	feed_free(f);
	return NULL;
}

/* All signals are the main thread's business, but for SIGCHLD, which is the other one's. */
static int start_thread(struct uni_feed *f, struct uni_err *err)
{
	sigset_t all, child, old;
	int r;

	(void)sigfillset(&all);
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)pthread_sigmask(SIG_BLOCK, &child, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&f->thread, NULL, sample_all, f);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r != 0)
		return uni_err_set(
			err, UNI_ENOMEM, "cannot start the sampling thread: %s", strerror(r));
	return 0;
}

int uni_feed_start(struct uni_guest *const *g, size_t nr, const struct uni_top_args *args,
	struct uni_feed **ret, struct uni_err *err)
{
	struct uni_feed *f = feed_new(g, nr, args);
	int rc;

	if (f == NULL)
		return uni_err_nomem(err);
	rc = start_thread(f, err);
	if (rc != 0) {
		feed_free(f);
		return rc;
	}
	*ret = f;
	return 0;
}

void uni_feed_stop(struct uni_feed *f)
{
	if (f == NULL)
		return;
	atomic_store(&f->stop, true);
	uni_feed_go_on(f);
	(void)pthread_join(f->thread, NULL);
	feed_free(f);
}

/* One guest's after the other: each of the queues is emptied. */
bool uni_feed_next(struct uni_feed *f, struct uni_sample *ret)
{
	for (size_t i = 0; i < f->nr; i++) {
		if (uni_sampleq_pop(f->part[f->next].queue, ret))
			return true;
		f->next = (f->next + 1) % f->nr;
	}
	return false;
}

bool uni_feed_ended(const struct uni_feed *f)
{
	return atomic_load_explicit(&f->ended, memory_order_acquire);
}

/* Guest i, with all that there is room for. */
static void add_guest(struct uni_feed_status *st, size_t i, const struct part *p)
{
	const struct uni_record_stats *stats = &p->stats;
	uint32_t first = st->first_vcpu[i];
	uint32_t nr_vcpus = uni_min(p->nr_vcpus, UNI_SESSION_VCPUS_MAX - first);

	uni_record_stats_add(&st->stats, stats);
	st->streams |= stats->host_runs != 0 || stats->nr_times != 0;
	st->first_vcpu[i + 1] = first + nr_vcpus;
	for (uint32_t v = 0; v < nr_vcpus; v++) {
		struct uni_feed_vcpu *of = &st->vcpu[first + v];

		*of = (struct uni_feed_vcpu){ .timed = v < stats->nr_times };
		if (of->timed)
			of->times = stats->times[v];
	}
	st->nr_vcpus = first + nr_vcpus;
}

/* The thread has ended: its results are there to be read. */
static void add_result(struct uni_feed_status *st, const struct uni_sampler_job *job)
{
	if (job->end == UNI_END_GONE)
		st->end = UNI_END_GONE;
	if (job->rc == 0)
		return;
	if (st->nr_failed++ != 0)
		return;
	st->err = job->err;
	st->rc = job->rc;
}

void uni_feed_status(struct uni_feed *f, struct uni_feed_status *ret)
{
	memset(ret, 0, offsetof(struct uni_feed_status, vcpu));
	ret->ended = uni_feed_ended(f);
	ret->end = UNI_END_STOPPED;
	ret->inside = f->nr != 0;
	for (size_t i = 0; i < f->nr; i++) {
		struct part *p = &f->part[i];
		unsigned flags = uni_method_flags(p->t->ops->stream_method);

		ret->inside &= (flags & UNI_METHOD_INSIDE) != 0;

		(void)pthread_mutex_lock(&p->lock);
		if (ret->ended && f->job[i].rc == 0 && f->job[i].stats.begin_ns != 0)
			(void)uni_record_stats_copy(&p->stats, &f->job[i].stats);
		if (ret->ended)
			count_vcpus(p);
		add_guest(ret, i, p);
		if (!ret->ended && ret->held[0] == '\0')
			(void)snprintf(ret->held, sizeof(ret->held), "%s", p->held);
		ret->at_ns = uni_max(ret->at_ns, p->at_ns);
		(void)pthread_mutex_unlock(&p->lock);
		ret->dropped += uni_sampleq_lost(p->queue);
		if (ret->ended)
			add_result(ret, &f->job[i]);
	}
	if (ret->ended)
		ret->at_ns = uni_max(ret->at_ns, ret->stats.end_ns);
	if (ret->nr_failed < f->nr)
		ret->rc = 0;
}

void uni_feed_guest_stats(struct uni_feed *f, size_t i, struct uni_record_stats *ret)
{
	(void)pthread_mutex_lock(&f->part[i].lock);
	(void)uni_record_stats_copy(ret, &f->part[i].stats);
	(void)pthread_mutex_unlock(&f->part[i].lock);
}

void uni_feed_hold(struct uni_feed *f)
{
	struct timespec until = uni_ns_timespec(uni_now_ns() + HOLD_NS);

	f->held = pthread_rwlock_clockwrlock(&f->gate, CLOCK_MONOTONIC, &until) == 0;
}

void uni_feed_go_on(struct uni_feed *f)
{
	if (f->held)
		(void)pthread_rwlock_unlock(&f->gate);
	f->held = false;
}
