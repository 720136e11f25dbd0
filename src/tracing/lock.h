/* SPDX-License-Identifier: BSD-2-Clause */
/* Allows one tracer of a guest at a time. It holds a lock while its functions are chosen; the
 * kernel releases the lock however the tracer ends. The files are in /run/uniscope; without root,
 * below $XDG_RUNTIME_DIR, or in /tmp/uniscope-UID. Other users cannot take them. */
#ifndef UNI_TRACING_LOCK_H
#define UNI_TRACING_LOCK_H

#include "base/err.h"
#include "backend/target.h"

/*
 * *fd_ret: close it to release the guest. `target` is the user's name for the guest: it identifies
 * a guest that is neither a process nor a domain of this host. -UNI_EBUSY: the message names the
 * holder.
 */
int uni_trace_own(
	const struct uni_target_info *info, const char *target, int *fd_ret, struct uni_err *err);

/*
 * The lock of the guardian (app/unpatch.h): held by the tracer's guardian until the guest is as it
 * was. The kernel releases it when all copies are closed.
 */
int uni_trace_guard(const char *target, int *fd_ret, struct uni_err *err);
/* If the guest's tracer has died, waits until its guardian is done, or for a minute. Does nothing
 * in a process with this variable: the guardian's own. */
#define UNI_TRACE_GUARDIAN "UNISCOPE_GUARDIAN"
void uni_trace_await_guardian(const char *target);

#endif
