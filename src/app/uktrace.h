/* SPDX-License-Identifier: BSD-2-Clause */
/* Unikraft's tracepoints from any source that a user names. */
#ifndef UNI_APP_UKTRACE_H
#define UNI_APP_UKTRACE_H

#include "app/options.h"
#include "app/symbols.h"
#include "format/uktrace/order.h"

struct uni_uktrace_args {
	struct uni_target_shared *shared; /* with other looks at this guest; NULL: none */
	const char *image, *qmp;
	struct uni_opt_list debug_dirs;
	double wait;
};

/* `a` is a struct uni_uktrace_args. */
#define UNI_UKTRACE_OPTIONS(a)                                                               \
	UNI_DEBUG_DIR_OPTION((a).debug_dirs),                                                \
		{ 0, "qmp", UNI_OPT_STR, &(a).qmp, "PATH",                                   \
			"QMP socket of the VMM: finds guest memory exactly", "FILE", NULL }, \
	{                                                                                    \
		0, "wait", UNI_OPT_DOUBLE, &(a).wait, "SECONDS",                             \
			"keep trying for this time while the guest still boots "             \
			"(default 0)",                                                       \
			NULL, NULL                                                           \
	}

/* Out of a guest, with the image of args. Free ret whenever this returned 0. */
int uni_uktrace_fetch(const char *target, const struct uni_uktrace_args *args,
	struct uni_ukt_file *ret, struct uni_err *err);

/* A trace file, an image (then only its definitions are there), or a guest. */
int uni_uktrace_open(const char *what, const struct uni_uktrace_args *args,
	struct uni_ukt_file *ret, struct uni_err *err);

/* A trace file's content; its definitions are those of args' image, if there is one. */
int uni_uktrace_of(const char *path, const char *data, size_t size,
	const struct uni_uktrace_args *args, struct uni_ukt_file *ret, struct uni_err *err);

/* Reports errors in the trace, or losses in the guest, on stderr. */
void uni_uktrace_note(const char *what, const struct uni_ukt_trace *t);

/* The list that Unikraft's own scripts print: a table, or lines "%016d name: message". */
void uni_uktrace_print(const struct uni_ukt_trace *t, bool table, struct uni_sink *out);
void uni_uktrace_json(const struct uni_ukt_trace *t, struct uni_sink *out);
/* The tracepoints themselves. */
void uni_uktrace_definitions(const struct uni_ukt_trace *t, bool json, struct uni_sink *out);

#endif
