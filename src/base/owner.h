/* SPDX-License-Identifier: BSD-2-Clause */
/* Refuses input files of another user, who may have made them to harm us; perf does the same. */
#ifndef UNI_BASE_OWNER_H
#define UNI_BASE_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* --force. If it is set at all, it is set before the first input is opened. */
extern bool uni_owner_force;

/* Is it root, the caller, or the user who called sudo? */
bool uni_owner_is_ours(uid_t uid);

/*
 * -UNI_EPERM: the file or folder `fd` belongs neither to the caller nor to root. A user who called
 * sudo counts as the caller. Pipes and the like have no owner.
 */
int uni_owner_check(int fd, const char *path, struct uni_err *err);

#endif
