/* SPDX-License-Identifier: BSD-2-Clause */
/* A guardian of traced guests: a child that switches all functions off if this process dies. */
#ifndef UNI_APP_UNPATCH_H
#define UNI_APP_UNPATCH_H

#include "base/err.h"
#include "app/tracing.h"

/*
 * Call it before functions are switched on, and before there are threads. The guest itself holds
 * what is switched on. So the guardian does what `uniscope trace stop` does, with the same options.
 * Until it is done, it holds the locks of the guest: copies of t->owner, and of one that
 * uni_tracing_open() waits for. A guest that is reached over a line of its own has no guardian.
 */
int uni_unpatch_begin(struct uni_tracing *t, const char *target,
	const struct uni_tracing_args *args, struct uni_err *err);
/* The guest is as it was, or is to stay as it is. Does nothing if there is no guardian. */
void uni_unpatch_end(struct uni_tracing *t);

#endif
