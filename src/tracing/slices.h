/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a plan of patches in stops that are short, however many places there are. */
#ifndef UNI_TRACING_SLICES_H
#define UNI_TRACING_SLICES_H

#include "backend/target.h"
#include "tracing/plan.h"

struct uni_trace_stops {
	uint64_t longest_ns; /* of them */
	uint32_t nr;	     /* attempts that failed do not count */
	uint64_t bad_va;     /* after a failure: the place that is to blame; 0: none */
};

/* True: this target takes all of it in one stop. */
bool uni_trace_fits_one(const struct uni_target *t, const struct uni_trace_plan *p);

/*
 * Each stop writes whole places, and lets the guest run as long as it stood. The words and triggers
 * are written all at once: behind the code if they switch on, else before it. So nothing is
 * recorded while only some functions are patched, if nothing was before. A caller that dies between
 * two stops leaves a guest that records nothing, and a later plan finds each place as it is.
 *
 * Adds to *ret. Returns as uni_patch_run(): after a failure some code may be changed if more than
 * one stop was needed.
 */
int uni_trace_write(
	struct uni_target *t, const struct uni_trace_plan *p, bool on, struct uni_trace_stops *ret);
/* One stop for a job that is small; a vCPU may be where nothing can be changed for a moment. */
int uni_trace_write_job(struct uni_target *t, struct uni_patch_job *job);

#endif
