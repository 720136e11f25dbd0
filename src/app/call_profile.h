/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of traces as profiles, and of two of them as one with two columns. */
#ifndef UNI_APP_CALL_PROFILE_H
#define UNI_APP_CALL_PROFILE_H

#include "app/source.h"
#include "profile/calls.h"
#include "trace/timeline.h"

/* The functions of a timeline, to its end; per_thread: as of samples. The caller's to destroy. */
int uni_call_profile_make(const struct uni_timeline *tl, bool count, bool per_thread,
	struct uni_profile **ret, struct uni_profile_calls *added_ret, struct uni_err *err);

/*
 * by: as --calls has it, "" for times, or numbers where one of them tells no times. What the traces
 * lack is said on stderr. A trace without calls is refused.
 */
int uni_call_profile_diff(const struct uni_source_args *before, const struct uni_source_args *after,
	const char *by, bool scale, struct uni_profile **ret, struct uni_err *err);

/*
 * Of two sources, at least one of them a trace alone: 0, and it is said that their calls are
 * compared; or why they cannot be compared unasked.
 */
int uni_call_profile_check(const struct uni_source *before, const char *before_path,
	const struct uni_source *after, const char *after_path, struct uni_err *err);

#endif
