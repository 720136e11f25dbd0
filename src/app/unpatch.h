/* SPDX-License-Identifier: BSD-2-Clause */
/* A guardian of traced guests: a child that switches all functions off if this process dies. */
#ifndef UNI_APP_UNPATCH_H
#define UNI_APP_UNPATCH_H

#include "base/err.h"
#include "app/tracing.h"

/*
 * Call it before there are threads, and with the rights that the guardian will need. The guest
 * itself holds what is switched on. So the guardian does what `uniscope trace stop` does, with the
 * same options. Until it is done, it holds the locks of the guest: copies of t->owner, and of one
 * that uni_tracing_open() waits for. pid: of the guest's process, or 0.
 */
int uni_unpatch_begin(struct uni_tracing *t, int pid, const char *target,
	const struct uni_tracing_args *args, struct uni_err *err);
/*
 * Before functions are switched on. If this process dies earlier, the guardian does nothing. A
 * guest that is reached over a line of its own has none from now on.
 */
void uni_unpatch_arm(struct uni_tracing *t);
/* The guest is as it was, or is to stay as it is. Does nothing if there is no guardian. */
void uni_unpatch_end(struct uni_tracing *t);

#endif
