/* SPDX-License-Identifier: BSD-2-Clause */
/* A call tree of traced calls. */
#ifndef UNI_PROFILE_CALLS_H
#define UNI_PROFILE_CALLS_H

#include "profile/profile.h"
#include "trace/timeline.h"

struct uni_profile_calls {
	uint64_t calls; /* added */
	uint64_t cut;	/* of these: not seen to return */
	uint64_t lost;	/* events that are missing */
};

/*
 * Told what a thread does from ns on: the node of its newest call; UNI_NODE_ROOT: in none;
 * UNI_NODE_NONE: it is on no CPU. 0 or -UNI_ENOMEM, which ends the reading.
 */
struct uni_profile_calls_watch {
	void *ctx;
	int (*runs)(void *ctx, uint32_t thread, uint64_t ns, uint32_t node);
};

/*
 * Reads the timeline to its end. Each function below its callers gets the nanoseconds that it took
 * itself, or with `count` the number of its calls, which is the profile's unit then. watch: NULL
 * for nobody. 0 or -UNI_ENOMEM.
 */
int uni_profile_add_calls(struct uni_profile *p, const struct uni_timeline *tl, bool count,
	const struct uni_profile_calls_watch *watch, struct uni_profile_calls *ret);
/* The same, each thread's below a frame "thread NAME" as samples have it (struct uni_build_opts).
 */
int uni_profile_add_calls_by_thread(struct uni_profile *p, const struct uni_timeline *tl,
	bool count, struct uni_profile_calls *ret);

#endif
