/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/top/feed.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "session/sampleq.h"

#define QUEUE_BYTES (8u << 20)
#define HOLD_NS	    UNI_NSEC_PER_SEC

struct uni_feed {
	struct uni_guest *g; /* the thread's while it runs */
	struct uni_sampler_cfg cfg;
	struct uni_sampleq *queue;
	pthread_t thread;
	atomic_bool stop;
	pthread_rwlock_t gate; /* for writing while this process is stopped */
	bool held;
	pthread_mutex_t lock; /* of what follows; held for copies only */
	struct uni_feed_status status;
};

static void on_sample(void *ctx, const struct uni_sample *s)
{
	struct uni_feed *f = ctx;

	(void)uni_sampleq_push(f->queue, s);
}

static void publish(struct uni_feed *f, const struct uni_record_stats *stats)
{
	f->status.stats = *stats;
	f->status.at_ns = uni_now_ns();
}

static void on_progress(void *ctx, const struct uni_record_stats *stats, uint64_t elapsed_ns)
{
	struct uni_feed *f = ctx;

	/* A reader that is in the middle of its copy gets the next one. */
	if (pthread_mutex_trylock(&f->lock) == 0) {
		publish(f, stats);
		(void)pthread_mutex_unlock(&f->lock);
	}
}

static void *sample(void *arg)
{
	struct uni_feed *f = arg;
	enum uni_sampler_end end = UNI_END_STOPPED;
	struct uni_record_stats stats = { 0 };
	struct uni_err err = { 0 };
	int rc;

	rc = uni_sampler_run(f->g->t, &f->cfg, &stats, &end, &err);
	(void)pthread_mutex_lock(&f->lock);
	if (rc == 0)
		publish(f, &stats);
	f->status.ended = true;
	f->status.end = end;
	f->status.rc = rc;
	f->status.err = err;
	(void)pthread_mutex_unlock(&f->lock);
	return NULL;
}

static void feed_free(struct uni_feed *f)
{
	uni_sampleq_destroy(f->queue);
	(void)pthread_rwlock_destroy(&f->gate);
	(void)pthread_mutex_destroy(&f->lock);
	free(f);
}

static struct uni_feed *feed_new(struct uni_guest *g, double frequency)
{
	struct uni_feed *f = calloc(1, sizeof(*f));
	pthread_rwlockattr_t attr;

	if (f == NULL)
		return NULL;
	f->g = g;
	f->cfg = (struct uni_sampler_cfg){ .frequency = frequency,
		.max_duty = 0.10,
		.jitter = true,
		.hurry = true,
		.gate = &f->gate,
		.unwinder = &g->unwinder,
		.stop = &f->stop,
		.on_sample = on_sample,
		.on_progress = on_progress,
		.ctx = f };
	(void)pthread_mutex_init(&f->lock, NULL);
	/* Who waits to stop this process must not wait for a gap between samples for ever. */
	(void)pthread_rwlockattr_init(&attr);
	(void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	(void)pthread_rwlock_init(&f->gate, &attr);
	(void)pthread_rwlockattr_destroy(&attr);
	f->queue = uni_sampleq_create(QUEUE_BYTES);
	if (f->queue == NULL) {
		feed_free(f);
		return NULL;
	}
	return f;
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
	r = pthread_create(&f->thread, NULL, sample, f);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r != 0)
		return uni_err_set(
			err, UNI_ENOMEM, "cannot start the sampling thread: %s", strerror(r));
	return 0;
}

int uni_feed_start(
	struct uni_guest *g, double frequency, struct uni_feed **ret, struct uni_err *err)
{
	struct uni_feed *f = feed_new(g, frequency);
	int rc;

	if (f == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
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

bool uni_feed_next(struct uni_feed *f, struct uni_sample *ret)
{
	return uni_sampleq_pop(f->queue, ret);
}

void uni_feed_status(struct uni_feed *f, struct uni_feed_status *ret)
{
	(void)pthread_mutex_lock(&f->lock);
	*ret = f->status;
	(void)pthread_mutex_unlock(&f->lock);
	ret->dropped = uni_sampleq_lost(f->queue);
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
