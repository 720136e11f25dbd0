/* SPDX-License-Identifier: BSD-2-Clause */
/* The rights of this process beyond those of its user: as root, or by capabilities of its file. */
#ifndef UNI_BASE_PRIVILEGE_H
#define UNI_BASE_PRIVILEGE_H

#include <stdbool.h>

#include "base/err.h"

bool uni_privilege_has(void);

/*
 * Before the first byte of a file that others may have made, and before there are threads: gives
 * all capabilities up for good, and no program that is started from here gains any. Root keeps the
 * right to open files whatever their permissions, for else it could not read and write in its
 * users' folders, and to bind low ports.
 */
int uni_privilege_drop(struct uni_err *err);

#endif
