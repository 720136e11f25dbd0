/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls of a session of exact counts: how often each function that answers one was called.
 */
#ifndef UNI_APP_SYSCALLS_EXACT_H
#define UNI_APP_SYSCALLS_EXACT_H

#include "app/syscalls.h"

bool uni_syscalls_are_counts(const char *what);
/* A line a function, the most called first. -UNI_ENOENT: none of its functions answers one. */
int uni_syscalls_put_counts(const char *session, const struct uni_syscalls_args *args,
	struct uni_sink *out, struct uni_err *err);

#endif
