/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Part of the walk (walk.h): a trigger on one CPU stops the tracer on all. Calls that were open on
 * the others have no end in the trace: they are cut at that time. CPUs are walked one after the
 * other, so the walk has to know that time beforehand, unless it goes by time anyway (calls.c).
 */
#ifndef UNI_TRACE_WALK_STOPS_H
#define UNI_TRACE_WALK_STOPS_H

#include "trace/record.h"
#include "trace/walk.h"

/* A CPU may be inside a hook when another one stops the tracer: its records within this number of
 * cycles still count. */
#define UNI_WALK_STOP_SLACK 4096

static inline bool uni_walk_is_stop(const struct uni_trace_record *rec)
{
	return rec->kind == UNI_TRACE_KIND_EXT && rec->cls == UNI_TRACE_CLASS_CALL &&
	       rec->nr >= 1 && rec->words[0] >> 32 == UNI_TRACE_STOPS;
}

/* Looks for all of them, once. False: out of memory. */
bool uni_walk_stops_find(struct uni_walk *w);
/* Up to when CPUs may be walked one after the other. */
uint64_t uni_walk_stops_next(const struct uni_walk *w);
/* All CPUs were walked up to that time. */
void uni_walk_stops_pass(struct uni_walk *w, uint64_t time);

/* c came to such a record. */
void uni_walk_stop_comes(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t time);
/* The others stop, too. */
void uni_walk_stop(struct uni_walk *w);

#endif
