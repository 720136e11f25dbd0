/* SPDX-License-Identifier: BSD-2-Clause */
/* Sampling running guests, in the best way that each target offers. Either the host's kernel makes
 * samples (streamer.c), which stops nothing, or each sample is a pause (pauser.c). */
#ifndef UNI_SAMPLING_SAMPLER_H
#define UNI_SAMPLING_SAMPLER_H

#include <pthread.h>
#include <stdatomic.h>

#include "guest/guest.h"
#include "sampling/lookout.h"
#include "recording/recording.h"

struct uni_sampler_cfg {
	uint32_t guest;	      /* number that its samples carry */
	double frequency;     /* Hz; 0: no samples, only exits */
	uint64_t duration_ns; /* 0: until stopped */
	double max_duty;      /* share of wall time the guest may be paused; 0.10 (1: no cap) */
	bool skip_late;	      /* else a sample that is late is taken late */
	uint64_t pause_ns;    /* reading ends after this in each pause; 0: as long as usual */
	bool jitter;	      /* the deadline lies anywhere in its period */
	uint32_t exits_every; /* one VM exit of so many is recorded, 0: none; needs UNI_CAP_EXITS */
	bool counts;	      /* counts of equal chains will do, where the kernel makes them */
	bool hurry;	      /* a thread that pauses guests goes before all others, if it may */
	const struct uni_unwinder *unwinder; /* and its hints for the kernel */
	/* By which threads are known, where the guest is paused; NULL: samples have no thread. */
	const struct uni_model *model;
	bool threads; /* every thread, running or not, and not only those on vCPUs */
	/* For images that the guest loads later, if it is paused; NULL: none. Borrowed. */
	struct uni_lookout *lookout;
	struct uni_watch *watch; /* first and last are filled; the caller's to free */
	size_t nr_watch;
	const atomic_bool *stop; /* set by a signal: end cleanly */
	/* NULL, or held for reading while a guest is held. A thread that wants to stop the whole
	 * process takes it for writing, inside or outside of the callbacks below. */
	pthread_rwlock_t *gate;
	/* Every sample, with the guest running; may be NULL. */
	void (*on_sample)(void *ctx, const struct uni_sample *s);
	/* A thread, before its first sample; may be NULL. */
	void (*on_thread)(void *ctx, const struct uni_record_thread *t);
	/* VM exits, the same way. */
	void (*on_exit)(void *ctx, const struct uni_stream_exit *e);
	/* As soon as samples are taken; may be NULL. */
	void (*on_begin)(void *ctx);
	/* About five times a second; may be NULL. */
	void (*on_progress)(void *ctx, const struct uni_record_stats *stats, uint64_t elapsed_ns);
	/* Does the guest run now, according to its VMM? Called before it is stopped for a sample: a
	 * guest that is already stopped is not sampled. NULL: not known. */
	bool (*awake)(void *ctx);
	/* Has the guest left this VMM for another one? Then the run ends as if the guest had. NULL:
	 * not known. */
	bool (*left)(void *ctx);
	void *ctx;
};

enum uni_sampler_end {
	UNI_END_DURATION, /* the time is over */
	UNI_END_STOPPED,  /* cfg.stop */
	UNI_END_GONE,	  /* the guest ended; the samples so far are good */
};

/* How this target will be sampled: "bpf", "perf", "pause", "read" (while it runs) or "replay". */
const char *uni_sampler_method(struct uni_target *t);
/* By the host's kernel, without a stop: one of the first two. */
bool uni_sampler_streams(struct uni_target *t);

/* Adds the vCPUs' times so far, if the target has them, including vCPUs plugged in later. A vCPU
 * that never ran has no times. */
void uni_sampler_times(struct uni_target *t, struct uni_record_stats *st);

/* Runs to its end; *stats_ret is deinitialised by the caller. Negative only when nothing useful
 * could be done (err says why). */
int uni_sampler_run(struct uni_target *t, const struct uni_sampler_cfg *cfg,
	struct uni_record_stats *stats_ret, enum uni_sampler_end *end_ret, struct uni_err *err);

/* One guest of several; rc and below are results, as above. */
struct uni_sampler_job {
	struct uni_target *t;
	struct uni_sampler_cfg cfg;
	int rc;
	struct uni_err err;
	enum uni_sampler_end end;
	uint64_t halted_ns; /* so long before the end no interrupt could wake any vCPU; 0: it could,
			       or that is not known */
	struct uni_record_stats stats; /* deinitialised by the caller */
};

/*
 * All of them at once; guests that end or fail leave the others alone. Those that stream share the
 * calling thread, the others have one each: their callbacks come from there. At most UNI_GUEST_MAX.
 */
void uni_sampler_run_all(struct uni_sampler_job *job, size_t nr);

#endif
