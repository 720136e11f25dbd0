/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of locks as text, between a trace's calls: "beta waits for disk, which alpha has". */
#ifndef UNI_APP_LOCK_NOTES_H
#define UNI_APP_LOCK_NOTES_H

#include "app/trace_values.h"
#include "trace/input.h"

struct uni_lock_notes; /* opaque */

/* NULL: out of memory. All is borrowed; values->calls has to be set. */
struct uni_lock_notes *uni_lock_notes_open(
	const struct uni_trace_input *in, struct uni_trace_values *values);
/* An event of values->calls, all of which have to come in their order; "": it is none of locks. */
void uni_lock_notes_text(
	struct uni_lock_notes *n, const struct uni_call_event *e, char *ret, size_t cap);
void uni_lock_notes_close(struct uni_lock_notes *n); /* NULL-safe */

#endif
