/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared code of the front ends for Nanos' trace utilities. */
#ifndef UNI_COMPAT_NANOS_CALLS_H
#define UNI_COMPAT_NANOS_CALLS_H

#include "base/err.h"
#include "base/sink.h"
#include "profile/calltable.h"

/* Calls of a trace.csv, a text of ftrace or a session, added up. t is made here; deinit it. */
int uni_compat_calls(const char *path, bool by_cpu, struct uni_call_table *t, struct uni_err *err);

/* "function,count,tot lat,self lat" in milliseconds, or with `table` in columns. */
void uni_compat_summary(const struct uni_call_table *merged, bool table, struct uni_sink *out);

/* Self times of each thread's (CPU's) functions; t is sorted. */
void uni_compat_breakdown(const struct uni_call_table *t, const char *where, struct uni_sink *out);
void uni_compat_breakdown_json(
	const struct uni_call_table *t, const char *where, struct uni_sink *out);

#endif
