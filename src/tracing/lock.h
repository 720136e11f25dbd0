/* SPDX-License-Identifier: BSD-2-Clause */
/* One tracer of a guest at a time: to choose its functions for a while it holds a lock, which the
 * kernel gives back however it ends. The files are in /run/uniscope; without root, below
 * $XDG_RUNTIME_DIR, or in /tmp/uniscope-UID. Other users cannot take them. */
#ifndef UNI_TRACING_LOCK_H
#define UNI_TRACING_LOCK_H

#include "base/err.h"
#include "backend/target.h"

/*
 * *fd_ret: close it to give the guest back. `target` is what the user calls the guest: it tells
 * guests apart that are neither a process nor a domain of this host. -UNI_EBUSY: who has it.
 */
int uni_trace_own(
	const struct uni_target_info *info, const char *target, int *fd_ret, struct uni_err *err);

#endif
