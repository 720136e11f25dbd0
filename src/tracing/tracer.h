/* SPDX-License-Identifier: BSD-2-Clause */
/* The tracer of a guest, from outside: finds its rings, switches functions on and off, reads its
 * records. All state is in the guest itself, so any run goes on where another ended or died. */
#ifndef UNI_TRACING_TRACER_H
#define UNI_TRACING_TRACER_H

#include "base/err.h"
#include "obj/image.h"
#include "tracing/plan.h"
#include "recording/traced.h"
#include "backend/target.h"
#include "trace/ring.h"

struct uni_tracer; /* opaque */

struct uni_tracer_args {
	struct uni_target *t;
	const struct uni_image *image; /* NULL: the rings are found by their magic, read only */
	uint64_t bias;
	const char *head;		/* address of the head as the user gives it, or NULL */
	struct uni_image_search search; /* for debug data, which names parameters */
};

/* target and image must outlive it. */
int uni_tracer_open(
	const struct uni_tracer_args *args, struct uni_tracer **ret, struct uni_err *err);
void uni_tracer_close(struct uni_tracer *t); /* NULL-safe; the guest goes on as it is */

struct uni_ring *uni_tracer_ring(struct uni_tracer *t);
/* How its memory is read, and where its uni_trace_head is. */
const struct uni_ring_source *uni_tracer_source(const struct uni_tracer *t, uint64_t *head_ret);
/* Reads the guest's control line. Returns 0 or -UNI_E*. */
int uni_tracer_control(struct uni_tracer *t, struct uni_trace_control *ret);
/* Can it record the callers of calls (UNI_TRACE_CALLERS)? */
bool uni_tracer_tells_callers(struct uni_tracer *t);

struct uni_trace_done {
	uint32_t nr_functions, nr_sites; /* traced now */
	uint32_t nr_changed;		 /* places of code that had to be changed */
	uint64_t pause_ns;		 /* the longest time for which the guest was stopped */
	uint32_t nr_stops;
	uint32_t nr_no_exits, nr_pieces, nr_unlike; /* functions left out; struct uni_trace_plan */
	bool threads;				    /* their events are recorded */
	bool calls_itself; /* functions that need no patching are traced, too: all of them */
};

/* Traces exactly the chosen functions from now on. NULL: none, and every byte is as before. Stops
 * the guest only for the writing: once, or often if there are more places than the target writes in
 * a millisecond (tracing/slices.h). Needs an image. */
int uni_tracer_set(struct uni_tracer *t, const struct uni_trace_choice *choice,
	struct uni_trace_done *ret, struct uni_err *err);
/* From now on the rings show only records since the newest start, if the guest numbers starts
 * (info.tells_sessions); uni_tracer_set() does this for its own. */
int uni_tracer_newest(struct uni_tracer *t, struct uni_err *err);
/* False: since uni_tracer_set() another tool chose functions. */
bool uni_tracer_is_ours(struct uni_tracer *t);
/* Checks a choice as uni_tracer_set() would before it changes anything: 0 or the same error. */
int uni_tracer_check(
	struct uni_tracer *t, const struct uni_trace_choice *choice, struct uni_err *err);
/* The guest's own switch, whatever is patched. */
int uni_tracer_enable(struct uni_tracer *t, bool on, struct uni_err *err);

/* Fills info and sizes of the rings; to be deinitialised by the caller, also on failure. */
int uni_tracer_describe(struct uni_tracer *t, struct uni_record_trace *ret, struct uni_err *err);

#endif
