/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables that the guest read with its calls, as counters: one for each variable. */
#ifndef UNI_FORMAT_COUNTERS_H
#define UNI_FORMAT_COUNTERS_H

#include "base/vec.h"
#include "trace/timeline.h"
#include "trace/values.h"

#define UNI_COUNTERS_MAX 1024 /* a guest is given 64; a wrong trace may have any number */

struct uni_counters {
	UNI_VEC(struct uni_trace_got) last; /* of each counter, its newest value */
};

struct uni_counted {
	size_t nr;	  /* of the counter, from 0 on */
	const char *name; /* of the variable */
	bool is_new;	  /* the counter's first value */
	bool is_signed;
	uint64_t value;
};

/* The variables of an event of `tl`, which was just read, that have another value than before.
 * Returns how many, or -UNI_ENOMEM. */
int uni_counters_take(struct uni_counters *c, const struct uni_timeline *tl,
	const struct uni_call_event *e, struct uni_counted ret[UNI_TRACE_READS_OF]);
void uni_counters_deinit(struct uni_counters *c);

#endif
