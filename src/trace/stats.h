/* SPDX-License-Identifier: BSD-2-Clause */
/* The cost of a trace's functions: calls and their times, and the same of two traces side by
 * side. */
#ifndef UNI_TRACE_STATS_H
#define UNI_TRACE_STATS_H

#include "base/err.h"
#include "base/sink.h"
#include "base/vec.h"
#include "trace/calls.h"
#include "trace/funcs.h"
#include "trace/input.h"

/* Numbers of a function. Times are ns. A call still open at the end of the trace, or of the time
 * window, counts with its time until then. */
struct uni_func_stats {
	uint32_t func;
	uint64_t calls; /* all of them */
	uint64_t timed; /* of these: beginning and end are known */
	uint64_t cut;	/* of the timed: not seen to return */
	uint64_t total; /* in it and in calls it made; counts recursive calls once */
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

enum uni_trace_sort {
	UNI_TRACE_BY_SELF,
	UNI_TRACE_BY_TOTAL,
	UNI_TRACE_BY_CALLS,
	UNI_TRACE_BY_AVG,
	UNI_TRACE_BY_MAX,
	UNI_TRACE_BY_P99,
	UNI_TRACE_BY_NAME,
};
#define UNI_TRACE_SORTS "self total calls avg max p99 name" /* in that order */

/* Largest first (names: first ones first). -UNI_EINVAL: no such order. */
int uni_trace_sort_named(const char *name, enum uni_trace_sort *ret);
void uni_trace_report_sort(
	struct uni_trace_report *r, struct uni_funcs *funcs, enum uni_trace_sort by);
/* A table; at most max_rows functions, 0: all. */
void uni_trace_report_print(const struct uni_trace_report *r, struct uni_funcs *funcs,
	uint64_t max_rows, struct uni_sink *out);

static inline uint64_t uni_func_avg(const struct uni_func_stats *f)
{
	return f->timed != 0 ? f->sum / f->timed : 0;
}

/* Are the times of the timed calls those of the function? Calls that made no call have no end in
 * mode lite, and none has one in mode function. */
static inline bool uni_calls_have_time(uint64_t calls, uint64_t timed)
{
	return timed != 0 && calls - timed <= calls / 10;
}

#define UNI_SPAN_MAX 32
/* "12.345 us": a time for people, 10 columns. */
void uni_trace_span(char ret[UNI_SPAN_MAX], uint64_t ns);

/* A function in two traces; either may have no calls of it. By name: addresses differ. */
struct uni_func_diff {
	const char *name; /* the funcs' of the trace that has it */
	struct uni_func_stats a, b;
};
struct uni_trace_diff {
	UNI_VEC(struct uni_func_diff) func; /* by how much self time differs, most first */
};
int uni_trace_diff_make(const struct uni_trace_report *a, struct uni_funcs *a_funcs,
	const struct uni_trace_report *b, struct uni_funcs *b_funcs, struct uni_trace_diff *ret);
void uni_trace_diff_print(const struct uni_trace_diff *d, uint64_t max_rows, struct uni_sink *out);
void uni_trace_diff_deinit(struct uni_trace_diff *d);

#endif
