/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The trace of a MirageOS guest's threads. A guest on Xen may grant it as a ring. Else it is in
 * uniscope's own ring, or in one of mirage-profile somewhere in memory.
 */
#ifndef UNI_APP_MPROF_H
#define UNI_APP_MPROF_H

#include "base/err.h"
#include "base/sink.h"
#include "app/promises.h"

/* Saves it below `folder`, as a file with the packets or as a session; *path_ret is the caller's to
 * free. The guest is stopped for moments at most. images: what it runs, as -e of other commands. */
int uni_mprof_fetch(const char *target, const struct uni_opt_list *images, const char *folder,
	char **path_ret, struct uni_err *err);

/*
 * The packets of FILE: a ring as it is, a session converted. as_it_is: whatever a guest has granted
 * counts as a ring, because it may be damaged.
 */
int uni_mprof_write(const char *path, const struct uni_promises_args *args, bool as_it_is,
	struct uni_sink *out, struct uni_err *err);

#endif
