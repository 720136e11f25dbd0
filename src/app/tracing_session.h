/* SPDX-License-Identifier: BSD-2-Clause */
/* The session that `trace record` and `trace dump` write. */
#ifndef UNI_APP_TRACING_SESSION_H
#define UNI_APP_TRACING_SESSION_H

#include "app/tracing.h"
#include "tracing/record.h"

struct uni_tracing_session {
	const char *output; /* NULL: the guest's name */
	const char *write;  /* in one stream, to this file instead; "-": standard output */
	bool overwrite, quiet;
	bool snapshot;		   /* only what the rings hold */
	bool all_sessions;	   /* of a snapshot: also data from before the newest start */
	double duration;	   /* of a recording, s; 0: until Ctrl-C */
	struct uni_choice *choice; /* to switch on, and off again at the end; NULL: as it is */
	bool keep;		   /* do not switch off */
	double names;		   /* look for new threads so often, s; 0: never */
	/* Gets the records and prints them: there is no progress then. NULL: none. */
	const struct uni_trecord_watcher *watcher;
};

/* `s` is a struct uni_tracing_session. */
#define UNI_TRACING_OUTPUT_OPTIONS(s)                                                              \
	{ 'o', "output", UNI_OPT_STR, &(s).output, "NAME",                                         \
		"session folder to write (default: the guest's name.uniscope, numbered)", "FILE",  \
		NULL },                                                                            \
		{ 'w', "write", UNI_OPT_STR, &(s).write, "FILE",                                   \
			"write the session as one stream (a tar archive) into this file, - is "    \
			"standard output: what reads sessions takes it, also from a pipe. All "    \
			"of it comes at the end: the archive tells a file's size before the file", \
			"FILE", NULL },                                                            \
	{                                                                                          \
		0, "overwrite", UNI_OPT_FLAG, &(s).overwrite, NULL,                                \
			"replace the session that --output names, if there is one", NULL, NULL     \
	}

int uni_tracing_write(
	struct uni_tracing *t, const struct uni_tracing_session *s, struct uni_err *err);

#endif
