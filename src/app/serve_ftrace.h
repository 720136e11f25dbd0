/* SPDX-License-Identifier: BSD-2-Clause */
/* `serve --ftrace`: a guest's trace, as Nanos serves it from inside. */
#ifndef UNI_APP_SERVE_FTRACE_H
#define UNI_APP_SERVE_FTRACE_H

#include "app/tracing.h"

struct uni_serve_ftrace_args {
	const struct uni_tracing_args *tracing;
	uint16_t port; /* 0: any that is free */
	size_t buffer; /* bytes of the trace that are kept */
	bool on;       /* record at once */
	bool keep;     /* leave the functions switched on */
};

/* Until Ctrl-C, or the guest's end. */
int uni_serve_ftrace(
	const char *target, const struct uni_serve_ftrace_args *args, struct uni_err *err);

#endif
