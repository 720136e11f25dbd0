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
/* The same for a folder that is there, and that its owner removes: a process that ends without
 * uni_scratch_leave() has it removed. */
int uni_scratch_keep(struct uni_scratch *ret, const char *path, struct uni_err *err);
/* The folder is gone. Does nothing for a zeroed one. */
void uni_scratch_leave(struct uni_scratch *s);

#endif
