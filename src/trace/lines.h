/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace as JSON, one object a line (docs/formats/events.md): for scripts over events. Events come
 * from uni_calls_read(). Text is escaped as base/json.h does.
 */
#ifndef UNI_TRACE_LINES_H
#define UNI_TRACE_LINES_H

#include "trace/text.h"

struct uni_trace_lines; /* opaque */

/*
 * It heeds thread_name, args and their contexts in opts. The first line is written at once. out
 * and funcs must outlive it. NULL: out of memory.
 */
struct uni_trace_lines *uni_trace_lines_open(
	struct uni_sink *out, struct uni_funcs *funcs, const struct uni_trace_text_opts *opts);
/* Returns 0 or -UNI_ENOMEM; whether the sink failed it does not ask. */
int uni_trace_lines_put(struct uni_trace_lines *l, const struct uni_call_event *e, size_t nr);
void uni_trace_lines_close(struct uni_trace_lines *l); /* NULL-safe */

#endif
