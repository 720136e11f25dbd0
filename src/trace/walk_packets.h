/* SPDX-License-Identifier: BSD-2-Clause */
/* Of a walk (walk.h): from one packet to the next, and what is missing between them. */
#ifndef UNI_TRACE_WALK_PACKETS_H
#define UNI_TRACE_WALK_PACKETS_H

#include "trace/walk.h"

/* Of the CPU's last record. */
static inline uint64_t uni_walk_time_of(const struct uni_walk_cpu *c)
{
	return c->now + c->offset;
}

/* Which thread runs on c is not known from here on, and of those that run nowhere what they did. */
void uni_walk_forget(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t time);
/* The same where `count` events are missing: who returned is not known either. */
void uni_walk_lose(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t count, uint64_t time);

/* What the record at c->at tells of gaps, as struct uni_trace_sub; 0: nothing. */
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

/* Tracing was off, or other functions were traced, before what c records next: what is open has no
 * end in the trace. It is over where it was seen last, and that is c's turn. */
void uni_walk_gap(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t gaps);
/* A CPU has told it, at that time: those that recorded nothing since do not tell it themselves. */
void uni_walk_gap_told(struct uni_walk *w, uint64_t gaps, uint64_t time);

#endif
