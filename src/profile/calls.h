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
 * Reads the timeline to its end. Each function below its callers gets the nanoseconds that it took
 * itself, or with `count` the number of its calls. 0 or -UNI_ENOMEM.
 */
int uni_profile_add_calls(struct uni_profile *p, const struct uni_timeline *tl, bool count,
	struct uni_profile_calls *ret);

#endif
