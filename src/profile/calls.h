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

/* Each may be NULL; returns 0 or -UNI_ENOMEM, which ends the reading. */
struct uni_profile_calls_watch {
	void *ctx;
	/* A thread's state changes at time ns. node: its innermost call; UNI_NODE_ROOT: in none;
	 * UNI_NODE_NONE: it is on no CPU. */
	int (*runs)(void *ctx, uint32_t thread, uint64_t ns, uint32_t node);
	/* A call is added: it has ended, or its end is not known. Node numbers are those of the
	 * finished profile. */
	int (*added)(void *ctx, const struct uni_call_event *e, uint32_t node);
};

/*
 * Reads the timeline to its end. Each function below its callers gets its self time in nanoseconds.
 * With `count` it gets the number of its calls, which is then the profile's unit. watch: may be
 * NULL. Returns 0 or -UNI_ENOMEM.
 */
int uni_profile_add_calls(struct uni_profile *p, const struct uni_timeline *tl, bool count,
	const struct uni_profile_calls_watch *watch, struct uni_profile_calls *ret);
/* The same, each thread's below a frame "thread NAME" as samples have it (struct uni_build_opts).
 */
int uni_profile_add_calls_by_thread(struct uni_profile *p, const struct uni_timeline *tl,
	bool count, struct uni_profile_calls *ret);

#endif
