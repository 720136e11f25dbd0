/* SPDX-License-Identifier: BSD-2-Clause */
/* Which options `trace syscalls` takes for a guest, a session and a file. */
#ifndef UNISCOPE_APP_SYSCALLS_OPTIONS_H
#define UNISCOPE_APP_SYSCALLS_OPTIONS_H

#include "app/syscalls.h"
#include "base/err.h"

enum uni_syscalls_source {
	UNI_SYSCALLS_GUEST = 1,
	UNI_SYSCALLS_SESSION = 2,
	UNI_SYSCALLS_FILE = 4,
	UNI_SYSCALLS_COUNTS = 8, /* a session of exact counts */
};

/* -UNI_EUSAGE, with the option's name, if an option is given that this source (what) does not use.
 */
int uni_syscalls_check(const struct uni_syscalls_args *a, const char *what,
	enum uni_syscalls_source source, struct uni_err *err);

#endif
