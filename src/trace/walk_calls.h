/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the ops of a walk (walk.h) by calls that were read (calls.h). Rules need this: they know a
 * call's arguments and duration before they let it in. It is slower than the walk over records, and
 * equal to it where no call is left out.
 */
#ifndef UNI_TRACE_WALK_CALLS_H
#define UNI_TRACE_WALK_CALLS_H

#include "trace/walk.h"

struct uni_walk_calls {
	struct uni_calls *calls;
	struct uni_calls_rules rules; /* w's, which also tell of what w itself leaves out */
	/* The last events: calls that are open where the trace or the window ends. */
	const struct uni_call_event *end;
	size_t nr_end;
};

/* Close it in any case. w->cpu[].last is set if that CPU had begun before the window. */
int uni_walk_calls_open(struct uni_walk *w, struct uni_walk_calls *ret);
/* All that w's filter lets in, up to those last events. Then w->cpu[].at is not its end if the
 * CPU's records go on after the window. */
int uni_walk_calls(struct uni_walk *w, struct uni_walk_calls *c);
/* Those, and w->stats; then closes. Returns 0, or w->failed. */
int uni_walk_calls_close(struct uni_walk *w, struct uni_walk_calls *c);

/* All three, for ops that do nothing in between. */
int uni_walk_all_calls(struct uni_walk *w);

/* The calls that were open when the window began are the first events, whether or not their thread
 * is seen in it. */
void uni_calls_announce(struct uni_calls *c);
/* The walk of `c`, and whether the events just read are its last. */
const struct uni_walk *uni_calls_walked(const struct uni_calls *c, bool *over_ret);

#endif
