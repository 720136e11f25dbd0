/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls in a file that a user names: a text of ftrace, or the trace in a session. */
#ifndef UNI_APP_TIMELINE_H
#define UNI_APP_TIMELINE_H

#include "app/source.h"
#include "trace/timeline.h"

struct uni_call_source; /* opaque */

/* Returns 0, or an error that names an option of args that fits only samples, if there are only
 * calls. */
int uni_calls_args_check(const struct uni_source_args *args, struct uni_err *err);
/* Uses the guest, names, CPU and threads of args. Damage in the text is reported on stderr. Options
 * that a file without a session, or a trace without samples, cannot follow are refused. */
int uni_call_source_open(
	const struct uni_source_args *args, struct uni_call_source **ret, struct uni_err *err);
void uni_call_source_close(struct uni_call_source *s); /* NULL-safe */
const struct uni_timeline *uni_call_source_get(const struct uni_call_source *s);
/* Are there calls of functions in it, according to its form? */
bool uni_call_source_has_calls(const struct uni_call_source *s);
/* Number of samples besides, in a session. */
uint64_t uni_call_source_nr_samples(const struct uni_call_source *s);
/* Are there events in it, and not one call among them? It is opened for that and closed again. */
int uni_call_source_lacks_calls(const struct uni_source_args *args, bool *ret, struct uni_err *err);
/* After the timeline was read to its end: reports its losses on stderr. */
void uni_call_source_note(const struct uni_call_source *s);

#endif
