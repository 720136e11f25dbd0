/* SPDX-License-Identifier: BSD-2-Clause */
/* Part of the walk (walk.h): goes from one packet to the next, and handles losses between them. */
#ifndef UNI_TRACE_WALK_PACKETS_H
#define UNI_TRACE_WALK_PACKETS_H

#include "trace/walk.h"

/* Time of the CPU's last record. */
static inline uint64_t uni_walk_time_of(const struct uni_walk_cpu *c)
{
	return c->now + c->offset;
}

/* From here on the thread on c is not known, nor what threads on no CPU did. */
void uni_walk_forget(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t time);
/* The same if `count` events are missing: it is not known either which calls returned. */
void uni_walk_lose(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t count, uint64_t time);

/* The gap fields of the record at c->at, as struct uni_trace_sub; 0: none. */
static inline uint64_t uni_walk_gaps_at(const struct uni_walk *w, const struct uni_walk_cpu *c)
{
	return w->in->info.kinds[*c->at >> 32 & 15] == UNI_TRACE_KIND_SYNC && c->end - c->at > 2
		       ? c->at[2] >> 32 | 1
		       : 0;
}

static inline bool uni_walk_is_gap(const struct uni_walk_cpu *c, uint64_t gaps)
{
	return c->gaps != 0 && gaps != 0 && gaps != c->gaps;
}

/* Tracing was off, or other functions were traced, before c's next record: open calls have no end
 * in the trace. They end where they were seen last, and it is c's turn to do so. */
void uni_walk_gap(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t gaps);
/* A CPU has reported it, at that time: CPUs without records since then do not report it
 * themselves. */
void uni_walk_gap_told(struct uni_walk *w, uint64_t gaps, uint64_t time);

#endif
