/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/sampler.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sampling/ways.h"

uint64_t uni_run_cpu_ns(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) != 0)
		return 0;
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * UNI_NSEC_PER_SEC +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * UNI_NSEC_PER_USEC;
}

bool uni_run_asked_to_stop(const struct uni_sampler_cfg *cfg)
{
	return cfg->stop != NULL && atomic_load_explicit(cfg->stop, memory_order_relaxed);
}

bool uni_run_alive(struct uni_target *t)
{
	return t->ops->alive == NULL || t->ops->alive(t);
}

bool uni_run_has_left(const struct uni_sampler_cfg *cfg)
{
	return cfg->left != NULL && cfg->left(cfg->ctx);
}

uint64_t uni_run_end_ns(const struct uni_sampler_cfg *cfg, uint64_t now_ns)
{
	uint64_t end_ns;

	if (cfg->duration_ns == 0 || __builtin_add_overflow(now_ns, cfg->duration_ns, &end_ns))
		return UINT64_MAX;
	return end_ns;
}

static int check_run(struct uni_target *t, const struct uni_sampler_cfg *cfg, struct uni_err *err)
{
	bool exits = cfg->exits_every != 0;

	if (exits && (!uni_streamer_can(t) || !(t->ops->caps(t) & UNI_CAP_EXITS)))
		return uni_err_set(err, UNI_ENOTSUP,
			"target %s: VM exits are seen by the host's kernel only", t->ops->scheme);
	if (!isfinite(cfg->frequency) || cfg->frequency < 0.0 ||
		cfg->frequency > UNI_FREQUENCY_MAX || (cfg->frequency == 0.0 && !exits))
		return uni_err_set(err, UNI_EINVAL,
			"cannot sample %g times a second: give a frequency above 0 and up to %g",
			cfg->frequency, UNI_FREQUENCY_MAX);
	if (!isfinite(cfg->max_duty) || cfg->max_duty <= 0.0 || cfg->max_duty > 1.0)
		return uni_err_set(err, UNI_EINVAL,
			"the guest cannot be paused %g of the time: give more than 0 and up to 1",
			cfg->max_duty);
	if (cfg->unwinder == NULL || t->ops->snap == NULL || t->ops->gmem == NULL)
		return uni_err_set(
			err, UNI_ENOTSUP, "target %s: cannot be sampled", t->ops->scheme);
	if (t->ops->nr_vcpus(t) < 1)
		return uni_err_set(err, UNI_EINVAL, "target %s: it has no vCPU", t->ops->scheme);
	return t->ops->may_sample != NULL ? t->ops->may_sample(t, err) : 0;
}

bool uni_sampler_streams(struct uni_target *t)
{
	return uni_streamer_can(t);
}

const char *uni_sampler_method(struct uni_target *t)
{
	unsigned caps = t->ops->caps(t);

	if (uni_streamer_can(t))
		return t->ops->stream_method;
	if (caps & UNI_CAP_DEAD)
		return "replay";
	return caps & UNI_CAP_NO_PAUSE && !(caps & UNI_CAP_HOLD) ? "read" : "pause";
}

struct worker {
	pthread_t thread;
	struct uni_sampler_job *job;
};

static void *run_pauser(void *arg)
{
	uni_pauser_run(((struct worker *)arg)->job);
	return NULL;
}

/* Signals are for the thread that called us; the others look at cfg.stop often enough. */
static bool start_worker(struct worker *w)
{
	sigset_t all, old;
	int e;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	e = pthread_create(&w->thread, NULL, run_pauser, w);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (e != 0)
		w->job->rc = uni_err_set(&w->job->err, UNI_ENOMEM,
			"cannot start a thread for the guest: %s", strerror(e));
	return e == 0;
}

/* Alone, or the last that does not stream: this thread has nothing else to do. */
static void run_paused(struct uni_sampler_job *const *job, size_t nr,
	struct uni_sampler_job *const *streamed, size_t nr_streamed)
{
	struct worker worker[UNI_GUEST_MAX];
	size_t nr_workers = 0, first = nr_streamed == 0 ? 1 : 0;

	for (size_t i = first; i < nr; i++) {
		worker[nr_workers].job = job[i];
		nr_workers += start_worker(&worker[nr_workers]);
	}
	if (nr_streamed != 0)
		uni_streamer_run(streamed, nr_streamed);
	else if (nr != 0)
		uni_pauser_run(job[0]);
	for (size_t i = 0; i < nr_workers; i++)
		(void)pthread_join(worker[i].thread, NULL);
}

void uni_sampler_times(struct uni_target *t, struct uni_record_stats *st)
{
	for (uint32_t v = 0; t->ops->stream_times != NULL && v < UNI_VCPU_MAX; v++) {
		struct uni_vcpu_times times;

		if (t->ops->stream_times(t, v, &times) == 0 && uni_record_stats_room(st, v + 1))
			st->times[v] = times;
	}
}

void uni_sampler_run_all(struct uni_sampler_job *job, size_t nr)
{
	struct uni_sampler_job *streamed[UNI_GUEST_MAX], *paused[UNI_GUEST_MAX];
	size_t nr_streamed = 0, nr_paused = 0;

	for (size_t i = 0; i < nr && i < UNI_GUEST_MAX; i++) {
		job[i].err = (struct uni_err){ 0 };
		job[i].end = UNI_END_DURATION;
		uni_record_stats_deinit(&job[i].stats);
		job[i].stats = (struct uni_record_stats){ 0 };
		job[i].rc = check_run(job[i].t, &job[i].cfg, &job[i].err);
		if (job[i].rc < 0)
			continue;
		if (uni_streamer_can(job[i].t))
			streamed[nr_streamed++] = &job[i];
		else
			paused[nr_paused++] = &job[i];
	}
	run_paused(paused, nr_paused, streamed, nr_streamed);
}

int uni_sampler_run(struct uni_target *t, const struct uni_sampler_cfg *cfg,
	struct uni_record_stats *stats_ret, enum uni_sampler_end *end_ret, struct uni_err *err)
{
	struct uni_sampler_job job = { .t = t, .cfg = *cfg };

	uni_sampler_run_all(&job, 1);
	if (job.stats.begin_ns != 0) {
		*stats_ret = job.stats;
		*end_ret = job.end;
	} else {
		uni_record_stats_deinit(&job.stats);
	}
	if (job.rc < 0)
		return uni_err_set(err, (enum uni_errcode) - job.rc, "%s", job.err.msg);
	return 0;
}
