/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls one after the other, wherever they come from: a trace (trace/calls.h) or a text
 * (trace/text/fcalls.h). What exporters see. It is read once.
 */
#ifndef UNI_TRACE_TIMELINE_H
#define UNI_TRACE_TIMELINE_H

#include "trace/calls.h"

struct uni_timeline {
	void *ctx;
	/* As uni_calls_read(): 1; 0 at the end; -UNI_ENOMEM. */
	int (*read)(void *ctx, const struct uni_call_event **ret, size_t *nr_ret);
	const char *(*func)(const void *ctx, uint32_t func); /* clean; "" for UNI_FUNC_NONE */
	const char *(*thread)(const void *ctx, uint32_t thread, uint64_t *number_ret);
	uint64_t (*address)(const void *ctx, uint32_t func); /* NULL: functions are names only */
};

#endif
