/* SPDX-License-Identifier: BSD-2-Clause */
/* Breaks down a trace's time: self time of each function on each CPU, or in each thread. */
#ifndef UNI_TRACE_BREAKDOWN_H
#define UNI_TRACE_BREAKDOWN_H

#include "base/err.h"
#include "base/vec.h"
#include "trace/calls.h"
#include "trace/funcs.h"
#include "trace/input.h"

#define UNI_BREAKDOWN_CELLS_MAX (1u << 20)

struct uni_breakdown_cell {
	uint32_t group; /* CPU, or thread as in struct uni_breakdown.thread */
	uint32_t func;	/* UNI_FUNC_NONE: in no traced function, as far as is known */
	uint64_t self;	/* ns on the CPU */
	uint64_t calls; /* begun there */
	uint64_t timed; /* of these: their time is in `self`, and not in their callers' */
};

struct uni_breakdown {
	UNI_VEC(struct uni_breakdown_cell) cell; /* by group, then self time, most first */
	UNI_VEC(struct uni_calls_thread) thread; /* of threads: their ids */
	uint64_t left_out;			 /* ns for which there were too many cells */
	struct uni_calls_stats stats;
};

/* filter NULL: all; its function pattern means nothing here. */
int uni_breakdown_make(const struct uni_trace_input *in, const struct uni_calls_filter *filter,
	struct uni_funcs *funcs, bool threads, struct uni_breakdown *ret, struct uni_err *err);
void uni_breakdown_deinit(struct uni_breakdown *b);

#endif
