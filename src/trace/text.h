/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces as the text that Nanos and Linux print: function_graph (durations, braces) and function
 * (a line a call), byte for byte. Events come from uni_calls_read() or from a parser of such text.
 */
#ifndef UNI_TRACE_TEXT_H
#define UNI_TRACE_TEXT_H

#include "base/err.h"
#include "base/sink.h"
#include "trace/calls.h"

enum uni_trace_text_kind {
	UNI_TRACE_TEXT_GRAPH,	 /* "# tracer: function_graph" */
	UNI_TRACE_TEXT_FUNCTION, /* "# tracer: function" */
	UNI_TRACE_TEXT_NOP,	 /* "# tracer: nop": the header only */
};

struct uni_trace_text_opts {
	enum uni_trace_text_kind kind;
	bool no_header;
	bool no_switches; /* graph: leave out the blocks that show a switch of threads, as Nanos
			   * does */
	/* Names of threads; -> uni_calls_thread_name(). NULL: "tid" and the event's number. */
	const char *(*thread_name)(const void *ctx, uint32_t thread, uint64_t *number_ret);
	const void *ctx;
	/* graph, of events of type UNI_CALL_EXT with arguments or a value: the text, at most size
	 * bytes with its end; "" for none. NULL: they are left out. */
	void (*args)(void *ctx, const struct uni_call_event *e, char *buf, size_t size);
	void *args_ctx;
	/* graph, of other events of type UNI_CALL_EXT: a comment between calls; as args. */
	void (*note)(void *ctx, const struct uni_call_event *e, char *buf, size_t size);
	void *note_ctx;
};

struct uni_trace_text; /* opaque */

/* The header is written at once. out and funcs must outlive it. NULL: out of memory. */
struct uni_trace_text *uni_trace_text_open(
	struct uni_sink *out, struct uni_funcs *funcs, const struct uni_trace_text_opts *opts);
/* Returns 0 or -UNI_ENOMEM; whether the sink failed it does not ask. */
int uni_trace_text_put(struct uni_trace_text *t, const struct uni_call_event *e, size_t nr);
/* Sends the text so far to the sink, for live readers. */
void uni_trace_text_flush(struct uni_trace_text *t);
/* Writes the calls whose opening line still waited for the next event. NULL-safe. */
void uni_trace_text_close(struct uni_trace_text *t);

#endif
