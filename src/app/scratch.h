/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder for a while: gone when it is removed, and when this process ends in whatever way. */
#ifndef UNI_APP_SCRATCH_H
#define UNI_APP_SCRATCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct uni_scratch {
	char *path; /* NULL: none */
	int alive;  /* our end of the pipe by which the keeper sees that we are there */
	pid_t keeper;
};

/* In $TMPDIR, or /tmp. Forks: before there are threads. */
int uni_scratch_make(struct uni_scratch *ret, struct uni_err *err);
/* with its content; does nothing for a zeroed one */
void uni_scratch_remove(struct uni_scratch *s);

#endif
