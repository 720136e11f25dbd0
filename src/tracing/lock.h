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

#endif
