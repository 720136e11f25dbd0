/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls of a guest as it is: it is stopped where each one enters its kernel. */
#ifndef UNI_APP_SYSCALLS_STOPS_H
#define UNI_APP_SYSCALLS_STOPS_H

#include "app/syscalls.h"

/* Adds calls to the log: names, arguments, and texts that they point to. Results are not known.
 * *realtime_offset_ns_ret as in uni_syscalls_read(). */
int uni_syscalls_by_stops(const char *target, const struct uni_syscalls_args *args,
	struct uni_sysc_log *log, uint64_t *realtime_offset_ns_ret, struct uni_err *err);

#endif
