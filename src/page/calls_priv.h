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

/* Of a thread: its rows by depth, and the nodes of its open calls. */
struct uni_calls_open {
	UNI_VEC(uint32_t) rows, nodes;
};

struct uni_calls_adder {
	struct uni_part_calls *ret;
	const struct uni_timeline *tl;
	UNI_VEC(uint32_t) frames; /* of functions; UNI_NODE_NONE: not asked yet */
	UNI_VEC(struct uni_calls_open) threads;
	UNI_VEC(struct uni_calls_row) rows;
	UNI_VEC(struct uni_calls_span) spans; /* empty from when there is a store */
	bool told;			      /* there was what the guest tells by itself */
	const struct uni_page_whole *whole;
};

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
