/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints system calls while they are recorded. */
#ifndef UNI_APP_SYSCALLS_LIVE_H
#define UNI_APP_SYSCALLS_LIVE_H

#include "app/tracing_session.h"
#include "syscalls/source.h"

struct uni_sysc_live; /* opaque */

struct uni_sysc_live_args {
	struct uni_tracing *t;
	const struct uni_sysc_prefixes *prefixes;
	const struct uni_sysc_filter *filter;
	const struct uni_sysc_memory *memory;
	const struct uni_sysc_print *print; /* but for the wall clock */
	struct uni_sink *out;		    /* whole lines at a time, unless `parts` */
	bool parts;			    /* the output is a terminal */
};

/* Borrows all. */
int uni_sysc_live_create(
	const struct uni_sysc_live_args *args, struct uni_sysc_live **ret, struct uni_err *err);
void uni_sysc_live_destroy(struct uni_sysc_live *l); /* NULL-safe */
/* For struct uni_tracing_session; borrowed. */
const struct uni_trecord_watcher *uni_sysc_live_watcher(struct uni_sysc_live *l);
/* When the recording is over: writes the rest, and reports losses on stderr. */
int uni_sysc_live_end(struct uni_sysc_live *l, const char *what, struct uni_err *err);

#endif
