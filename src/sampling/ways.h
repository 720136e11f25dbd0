/* SPDX-License-Identifier: BSD-2-Clause */
/* The two ways to sample, for sampler.c, and their shared parts. */
#ifndef UNI_SAMPLING_WAYS_H
#define UNI_SAMPLING_WAYS_H

#include "sampling/sampler.h"

#define UNI_PROGRESS_NS	  (200 * UNI_NSEC_PER_MSEC)
#define UNI_WATCH_NS	  UNI_NSEC_PER_SEC /* between refreshes of the last values */
#define UNI_FREQUENCY_MAX 1e6

uint64_t uni_run_cpu_ns(void); /* CPU time of this process */
bool uni_run_asked_to_stop(const struct uni_sampler_cfg *cfg);
bool uni_run_alive(struct uni_target *t);
bool uni_run_has_left(const struct uni_sampler_cfg *cfg);
/* When a run that begins now ends; UINT64_MAX: never by itself. */
uint64_t uni_run_end_ns(const struct uni_sampler_cfg *cfg, uint64_t now_ns);

bool uni_streamer_can(struct uni_target *t);
/* All in this thread, until the last has ended. */
void uni_streamer_run(struct uni_sampler_job *const *job, size_t nr);

/* A pause for each sample. */
void uni_pauser_run(struct uni_sampler_job *job);

#endif
