/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls become rows: of those that are read in one go, and of those of a trace that grows. */
#ifndef UNI_PAGE_CALLS_PRIV_H
#define UNI_PAGE_CALLS_PRIV_H

#include "base/checked.h"
#include "base/vec.h"
#include "page/parts.h"

struct uni_calls_span {
	uint64_t begin, duration, off;
	uint32_t row, node;
	uint16_t cpu;
};

/* The store has one for each vCPU. */
struct uni_calls_kept {
	uint16_t cpu;
	uint32_t row;
};

struct uni_calls_row {
	uint32_t thread, depth;
	size_t nr;
	uint16_t cpu; /* the first one's */
	bool mixed;   /* others have been on another CPU */
	UNI_VEC(struct uni_calls_kept) kept;
	size_t last; /* of kept: the last call's */
};

/* An open call, or what is left of it since its thread went on another CPU. */
struct uni_calls_call {
	uint64_t begin, waited; /* waited: spans tell of it */
	uint32_t node;
	bool whole; /* nothing of it was told yet */
	bool began; /* before the time that is looked at */
};

/* Of a thread: its rows by depth, and its open calls. */
struct uni_calls_open {
	UNI_VEC(uint32_t) rows;
	UNI_VEC(struct uni_calls_call) calls;
	uint64_t out_ns; /* it is on no CPU since then, if out_of is not 0 */
	size_t out_of;	 /* calls that were open then */
	uint32_t out_node;
	uint16_t cpu; /* the last one's */
};

struct uni_calls_adder {
	struct uni_part_calls *ret;
	const struct uni_timeline *tl;
	UNI_VEC(uint32_t) frames; /* of functions; UNI_NODE_NONE: not asked yet */
	UNI_VEC(struct uni_calls_open) threads;
	UNI_VEC(struct uni_calls_row) rows;
	UNI_VEC(struct uni_calls_span) spans; /* empty from when there is a store */
	uint64_t parts;			      /* spans that are no calls */
	uint32_t waiting;		      /* a frame; 0: not yet */
	bool told;			      /* there was what the guest tells by itself */
	const struct uni_page_whole *whole;
};

/* A span that is no call of its own: waiting, or the part of a call on one CPU. 0 or -UNI_ENOMEM.
 */
int uni_calls_add_part(struct uni_calls_adder *a, uint32_t thread, uint32_t depth,
	const struct uni_calls_span *part);
/*
 * calls_wait.c: an open call's time on no CPU becomes a span "[waiting]" in it, and a call whose
 * thread goes on elsewhere a span for each CPU, so that sums over a part of the time or over one
 * CPU are right. 0 or -UNI_ENOMEM.
 */
int uni_calls_switch(struct uni_calls_adder *a, const struct uni_call_event *e);
/* Before a LEAVE of its newest call. waited_ret: of this call's `off` spans tell so much. */
int uni_calls_wait_end(struct uni_calls_adder *a, struct uni_calls_open *t,
	const struct uni_call_event *e, uint64_t *waited_ret);
/* It is seen to run: whatever is missing, it waits no more. */
int uni_calls_seen(
	struct uni_calls_adder *a, struct uni_calls_open *t, const struct uni_call_event *e);

/* 0 or -UNI_ENOMEM. */
int uni_calls_adder_put(struct uni_calls_adder *a, const struct uni_call_event *e);
/* All that the timeline has. */
int uni_calls_adder_read(struct uni_calls_adder *a);
void uni_calls_name_threads(struct uni_calls_adder *a);
void uni_calls_put_rows(const struct uni_calls_adder *a, struct uni_blob *b);
void uni_calls_adder_deinit(struct uni_calls_adder *a);

/* Of a row whose calls so far end at `at`: one that was seen to end late may seem to overlap with
 * the next. */
static inline uint64_t uni_calls_span_left(const struct uni_calls_span *s, uint64_t at)
{
	return s->begin > at ? s->duration : s->duration - uni_min(at - s->begin, s->duration);
}

#endif
