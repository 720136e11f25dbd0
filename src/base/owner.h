/* SPDX-License-Identifier: BSD-2-Clause */
/* Files to read that another user may have made so that they harm us: refused, as perf does. */
#ifndef UNI_BASE_OWNER_H
#define UNI_BASE_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* --force: set, if at all, before the first input is opened. */
extern bool uni_owner_force;

/* Is it root, the caller, or who called sudo? */
bool uni_owner_is_ours(uid_t uid);

/*
 * -UNI_EPERM: the file or folder `fd` belongs neither to the caller nor to root. The caller is also
 * who called sudo. Pipes and the like are nobody's.
 */
int uni_owner_check(int fd, const char *path, struct uni_err *err);

#endif
