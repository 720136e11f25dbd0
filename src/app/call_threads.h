/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of a trace that a user names, and its part by time and CPU. */
#ifndef UNI_APP_CALL_THREADS_H
#define UNI_APP_CALL_THREADS_H

#include "app/part.h"
#include "base/vec.h"
#include "trace/calls.h"

struct uni_call_threads { /* zeroed: none */
	UNI_VEC(uint64_t) ids;
};

/* Adds the threads whose name or number matches the glob, or whose id in switch records is `text`.
 * -UNI_ENOENT: there is none; the message lists the threads. */
int uni_call_threads_add(struct uni_call_threads *t, const struct uni_trace_input *in,
	const char *text, struct uni_err *err);
/* Only these; t must outlive the filter's use. */
void uni_call_threads_set(const struct uni_call_threads *t, struct uni_calls_filter *filter);
/* Its time and vCPU; begin_ns is 0 s, path is for messages. -UNI_EUSAGE, or -UNI_ENOENT: there is
 * no such CPU, or the trace has ended before. */
int uni_call_part(const struct uni_part *part, const char *path, const struct uni_trace_input *in,
	uint64_t begin_ns, struct uni_calls_filter *filter, struct uni_err *err);
void uni_call_threads_free(struct uni_call_threads *t);

#endif
