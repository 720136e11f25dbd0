/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by both ways in which calls become rows: read at once, or from a trace that grows. */
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

/* The row in the store; there is one for each vCPU. */
struct uni_calls_kept {
	uint16_t cpu;
	uint32_t row;
};

struct uni_calls_row {
	uint32_t thread, depth;
	size_t nr;
	uint16_t cpu; /* the first call's */
	bool mixed;   /* other calls were on another CPU */
	UNI_VEC(struct uni_calls_kept) kept;
	size_t last; /* index into kept: the last call's */
};

/* An open call, or the rest of it since its thread moved to another CPU. */
struct uni_calls_call {
	uint64_t begin, waited; /* waited: time that spans already show */
	uint32_t node;
	bool whole; /* no part of it was reported yet */
	bool began; /* it began before the requested time */
};

/* A thread: its rows by depth, and its open calls. */
struct uni_calls_open {
	UNI_VEC(uint32_t) rows;
	UNI_VEC(struct uni_calls_call) calls;
	uint64_t out_ns; /* it has been on no CPU since then, if out_of is not 0 */
	size_t out_of;	 /* number of calls that were open then */
	uint32_t out_node;
	uint16_t cpu; /* the last CPU */
};

struct uni_calls_adder {
	struct uni_part_calls *ret;
	const struct uni_timeline *tl;
	UNI_VEC(uint32_t) frames; /* of functions; UNI_NODE_NONE: not looked up yet */
	UNI_VEC(struct uni_calls_open) threads;
	UNI_VEC(struct uni_calls_row) rows;
	UNI_VEC(struct uni_calls_span) spans; /* empty once there is a store */
	uint64_t parts;			      /* spans that are no calls */
	uint32_t waiting;		      /* a frame; 0: not made yet */
	bool told;			      /* the guest reported more than calls */
	const struct uni_page_whole *whole;
};

/*
 * Adds a span that is no call of its own: waiting, or the part of a call on one CPU. 0 or
 * -UNI_ENOMEM.
 */
int uni_calls_add_part(struct uni_calls_adder *a, uint32_t thread, uint32_t depth,
	const struct uni_calls_span *part);
/*
 * calls_wait.c: an open call's time on no CPU becomes a span "[waiting]" in it. If a call's thread
 * changes its CPU, the call becomes one span for each CPU. So sums over a part of the time, or over
 * one CPU, are right. 0 or -UNI_ENOMEM.
 */
int uni_calls_switch(struct uni_calls_adder *a, const struct uni_call_event *e);
/*
 * Call it before a LEAVE of the newest call. *waited_ret: the part of this call's `off` that spans
 * show.
 */
int uni_calls_wait_end(struct uni_calls_adder *a, struct uni_calls_open *t,
	const struct uni_call_event *e, uint64_t *waited_ret);
/* The thread was seen to run, so it waits no more, even if the event for that is missing. */
int uni_calls_seen(
	struct uni_calls_adder *a, struct uni_calls_open *t, const struct uni_call_event *e);

/* 0 or -UNI_ENOMEM. */
int uni_calls_adder_put(struct uni_calls_adder *a, const struct uni_call_event *e);
/* Adds all events that the timeline has. */
int uni_calls_adder_read(struct uni_calls_adder *a);
void uni_calls_name_threads(struct uni_calls_adder *a);
void uni_calls_put_rows(const struct uni_calls_adder *a, struct uni_blob *b);
void uni_calls_adder_deinit(struct uni_calls_adder *a);

/*
 * The rest of a call's duration in a row that ends at `at`. If a call's end was seen late, it may
 * seem to overlap with the next call.
 */
static inline uint64_t uni_calls_span_left(const struct uni_calls_span *s, uint64_t at)
{
	return s->begin > at ? s->duration : s->duration - uni_min(at - s->begin, s->duration);
}

#endif
