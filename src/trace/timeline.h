/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls one after the other, from a trace (trace/calls.h) or a text (format/ftrace/fcalls.h).
 * Exporters read this. It can be read once. */
#ifndef UNI_TRACE_TIMELINE_H
#define UNI_TRACE_TIMELINE_H

#include "base/sink.h"
#include "trace/calls.h"

struct uni_timeline {
	void *ctx;
	/* As uni_calls_read(): 1; 0 at the end; -UNI_ENOMEM. */
	int (*read)(void *ctx, const struct uni_call_event **ret, size_t *nr_ret);
	const char *(*func)(void *ctx, uint32_t func); /* clean; "" for UNI_FUNC_NONE */
	const char *(*thread)(void *ctx, uint32_t thread, uint64_t *number_ret);
	/* Instead of reading it: the text that Nanos prints; function: not function_graph. */
	int (*text)(void *ctx, bool function, struct uni_sink *out, struct uni_err *err);
	/* Words of a UNI_CALL_EXT that was just read; NULL: such events do not come. */
	const uint64_t *(*words)(void *ctx, const struct uni_call_event *e);
	/* Bytes that were invalid, in the data read so far; NULL: not known. */
	uint64_t (*damaged)(void *ctx);
	/* The name of a guest's variable that has this low half of its address, as text of argument
	 * `variables`; NULL: no call brings any. */
	const char *(*variable)(void *variables, uint32_t low);
	void *variables;
	double ns_per_cycle; /* of the guest's counter; 0 without words */
	uint64_t end_ns;     /* when it was stopped; 0: with the last event, or not known */
};

struct uni_trace_timeline; /* opaque: that of a trace */

/* in, filter and what naming borrows must outlive it. */
int uni_trace_timeline_open(const struct uni_trace_input *in, const struct uni_calls_filter *filter,
	const struct uni_funcs_naming *naming, struct uni_trace_timeline **ret,
	struct uni_err *err);
void uni_trace_timeline_close(struct uni_trace_timeline *t); /* NULL-safe */
struct uni_timeline uni_trace_timeline_get(struct uni_trace_timeline *t);
const struct uni_calls_stats *uni_trace_timeline_stats(const struct uni_trace_timeline *t);

#endif
