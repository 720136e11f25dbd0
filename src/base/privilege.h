/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rights of this process beyond those of its user: from root, or from its file's capabilities.
 */
#ifndef UNI_BASE_PRIVILEGE_H
#define UNI_BASE_PRIVILEGE_H

#include <stdbool.h>

#include "base/err.h"

bool uni_privilege_has(void);

/*
 * Gives up all capabilities for good; programs started later do not gain any. Call it before
 * reading the first byte of a file that others may have made, and before there are threads. Root
 * keeps two rights: to open files whatever their permissions, as it reads and writes in its users'
 * folders, and to bind low ports.
 */
int uni_privilege_drop(struct uni_err *err);

#endif
