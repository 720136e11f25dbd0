/* SPDX-License-Identifier: BSD-2-Clause */
/* The system calls of a session, a guest, a file of tracepoints or a console, as the user names
 * it. */
#ifndef UNI_APP_SYSCALLS_H
#define UNI_APP_SYSCALLS_H

#include "app/options.h"
#include "app/part.h"
#include "obj/image.h"
#include "recording/recording.h"
#include "syscalls/source.h"

struct uni_syscalls_args {
	struct uni_opt_list images; /* the guest's, then programs that it loads */
	const char *guest, *symbols, *arch, *save, *qmp;
	struct uni_opt_list debug_dirs, threads, prefixes;
	struct uni_part part;
	double duration, wait;
	bool quiet, pieces;
	bool stops; /* of a guest as it is, by breakpoints */
	uint64_t string_max;
	bool duration_given, string_max_given;
	const struct uni_sysc_filter *filter;
	/* The lines of a guest are written while it is recorded. NULL: only the log is wanted. */
	const struct uni_sysc_print *lines;
	struct uni_sink *out;
	bool parts; /* out is a terminal: lines appear as far as they are known */
	bool log;   /* it is wanted, too */
};

/* *told_ret: the lines were written, and the log is empty unless it was wanted.
 * *realtime_offset_ns_ret: wall clock minus the log's times; 0: not known. */
int uni_syscalls_read(const char *what, const struct uni_syscalls_args *args,
	struct uni_sysc_log *log, bool *told_ret, uint64_t *realtime_offset_ns_ret,
	struct uni_err *err);

/* The image that was traced, to read its code or texts; the caller's to destroy. NULL: it cannot be
 * read, and a note says so with what happens otherwise. */
struct uni_image *uni_syscalls_image(const struct uni_syscalls_args *args,
	const struct uni_record_meta *meta, const char *otherwise);

#endif
