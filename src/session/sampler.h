/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampling loop over one target: absolute deadlines start + k/F with jitter, the pause guard,
 * a duty cap, unwinding after the resume where the target allows, statistics.
 */
#ifndef UNI_SESSION_SAMPLER_H
#define UNI_SESSION_SAMPLER_H

#include <stdatomic.h>

#include "session/recording.h"

struct uni_sampler_cfg {
	uint32_t guest;	      /* number that its samples carry */
	double frequency;     /* Hz */
	uint64_t duration_ns; /* 0: until stopped */
	double max_duty;      /* share of wall time the guest may be paused; 0.10 (1: no cap) */
	bool jitter;	      /* the deadline lies anywhere in its period */
	const struct uni_unwinder *unwinder;
	struct uni_watch *watch; /* first and last are filled; the caller's to free */
	size_t nr_watch;
	const atomic_bool *stop; /* set by a signal: end cleanly */
	/* Every sample, with the guest running again; may be NULL. */
	void (*on_sample)(void *ctx, const struct uni_sample *s);
	/* About five times a second; may be NULL. */
	void (*on_progress)(void *ctx, const struct uni_record_stats *stats, uint64_t elapsed_ns);
	void *ctx;
};

enum uni_sampler_end {
	UNI_END_DURATION, /* the time is over */
	UNI_END_STOPPED,  /* cfg.stop */
	UNI_END_GONE,	  /* the guest ended; what was collected is good */
};

/* Runs to its end. Negative only when nothing useful could be done (err says why). */
int uni_sampler_run(struct uni_target *t, const struct uni_sampler_cfg *cfg,
	struct uni_record_stats *stats_ret, enum uni_sampler_end *end_ret, struct uni_err *err);

#endif
