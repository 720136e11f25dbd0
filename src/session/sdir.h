/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder of a session: made, locked while it is recorded, replaced only if it is one. */
#ifndef UNI_SESSION_SDIR_H
#define UNI_SESSION_SDIR_H

#include <stdbool.h>

#include "base/err.h"

#define UNI_SDIR_JSON	 "session.json"
#define UNI_SDIR_SYMBOLS "symbols"
#define UNI_SDIR_GUEST	 "guest-0"
#define UNI_SDIR_STREAM	 "guest-0/samples-vcpu%u"

/*
 * Makes path with its empty sub-folders and locks it; *fd_ret is the folder, the caller's to
 * close. An existing path is refused, unless `overwrite` and it is a session that holds nothing
 * but session files and that nobody records: then those files are removed,
 * but for session.json, which the caller replaces.
 */
int uni_sdir_create(const char *path, bool overwrite, int *fd_ret, struct uni_err *err);

#endif
