/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of traces as profiles, and of two of them as one with two columns. */
#ifndef UNI_APP_CALL_PROFILE_H
#define UNI_APP_CALL_PROFILE_H

#include "app/source.h"
#include "profile/calls.h"
#include "trace/timeline.h"

/* The functions of a timeline, to its end; per_thread: as of samples. The caller's to destroy. */
int uni_call_profile_make(const struct uni_timeline *tl, bool count, bool per_thread,
	const struct uni_profile_calls_watch *watch, struct uni_profile **ret,
	struct uni_profile_calls *added_ret, struct uni_err *err);

/* by: the value of --calls; "" for times, or for numbers if one of the traces has no times. Losses
 * in the traces are reported on stderr. A trace without calls is refused. */
int uni_call_profile_diff(const struct uni_source_args *before, const struct uni_source_args *after,
	const char *by, bool scale, struct uni_profile **ret, struct uni_err *err);

/* For two sources, at least one of them only a trace. Returns 0 and reports that calls are
 * compared, or an error if they cannot be compared without --calls. */
int uni_call_profile_check(const struct uni_source *before, const char *before_path,
	const struct uni_source *after, const char *after_path, struct uni_err *err);

#endif
