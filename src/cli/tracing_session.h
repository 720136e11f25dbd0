/* SPDX-License-Identifier: BSD-2-Clause */
/* The session that `trace record` and `trace dump` write. */
#ifndef UNI_CLI_TRACING_SESSION_H
#define UNI_CLI_TRACING_SESSION_H

#include "cli/tracing.h"

struct uni_tracing_session {
	const char *output; /* NULL: the guest's name */
	bool overwrite, quiet;
	bool snapshot;		   /* only what the rings hold */
	double duration;	   /* of a recording, s; 0: until Ctrl-C */
	struct uni_choice *choice; /* to switch on, and off again at the end; NULL: as it is */
	bool keep;		   /* do not switch off */
};

int uni_tracing_write(
	struct uni_tracing *t, const struct uni_tracing_session *s, struct uni_err *err);

#endif
