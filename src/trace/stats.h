/* SPDX-License-Identifier: BSD-2-Clause */
/* What a trace's functions cost: calls and their times, and the same of two traces side by side. */
#ifndef UNI_TRACE_STATS_H
#define UNI_TRACE_STATS_H

#include "base/err.h"
#include "base/vec.h"
#include "trace/calls.h"
#include "trace/funcs.h"
#include "trace/input.h"

/* Of a function. Times are ns; a call still open at the end of the trace, or of the time window,
 * counts with what it took until then. */
struct uni_func_stats {
	uint32_t func;
	uint64_t calls; /* all of them */
	uint64_t timed; /* of these: beginning and end are known */
	uint64_t cut;	/* of the timed: not seen to return */
	uint64_t total; /* in it and in what it called; calls of itself within count once */
	uint64_t self;	/* not in traced calls it made, nor while its thread was on no CPU */
	uint64_t sum;	/* of all timed calls: / timed is the average */
	uint64_t min, max;
	uint64_t p50, p99; /* of calls that returned, within 1/32; 0: not known */
};

struct uni_trace_report {
	UNI_VEC(struct uni_func_stats)
	func; /* by self time, most first; functions without time by
		 calls */
	struct uni_calls_stats stats;
};

/* filter NULL: all; its function pattern chooses rows. */
int uni_trace_report_make(const struct uni_trace_input *in, const struct uni_calls_filter *filter,
	struct uni_funcs *funcs, struct uni_trace_report *ret, struct uni_err *err);
void uni_trace_report_deinit(struct uni_trace_report *r);

#endif
