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

/* Called when a thread's state changes at time ns. node: its innermost call; UNI_NODE_ROOT: in
 * none; UNI_NODE_NONE: it is on no CPU. Returns 0 or -UNI_ENOMEM, which ends the reading. */
struct uni_profile_calls_watch {
	void *ctx;
	int (*runs)(void *ctx, uint32_t thread, uint64_t ns, uint32_t node);
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
