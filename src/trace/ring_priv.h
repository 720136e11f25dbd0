/* SPDX-License-Identifier: BSD-2-Clause */
/* A reader of rings, as the files that make it up see it. */
#ifndef UNI_TRACE_RING_PRIV_H
#define UNI_TRACE_RING_PRIV_H

#include "trace/record.h"
#include "trace/ring.h"

#define SUB_MASK ((uint64_t)UNI_TRACE_SUB_SIZE - 1)

struct uni_ring_cpu {
	uint64_t ring, cpu, base, nr_subs; /* addresses; ring: of its struct uni_trace_ring */
	uint64_t next_seq;		   /* of the sub-buffer to read next */
	uint64_t next_words;		   /* words that were before it, when that is known */
	uint64_t cut_seq; /* the sub-buffer of which only words after next_words are new; 0: none */
	uint64_t way;	  /* sub-buffers to leave out when the next copy is torn */
	/* The sub-buffer that uni_ring_now() saw last: up to where its records are known, when the
	 * last of these was made. */
	uint64_t seen_seq, seen_end, seen_time;
	bool in_session; /* it has come to the records that are asked for */
	struct uni_ring_from from;
	struct uni_ring_stats stats;
};

struct uni_ring {
	struct uni_ring_source source;
	struct uni_ring_info info;
	bool one_session; /* nothing older than `session` is passed on */
	uint16_t session;
	bool hasty;
	bool slow;		 /* its line: a copy is given up in the middle */
	bool (*over)(void *ctx); /* NULL: never */
	void *over_ctx;
	union {
		struct uni_trace_sub head;
		uint8_t bytes[UNI_TRACE_SUB_SIZE];
	} copy;
	struct uni_ring_cpu cpu[]; /* info.nr_cpus */
};

/* Words from `at` on that are no events. */
uint64_t uni_ring_extra_words(const struct uni_ring *r, const uint64_t *at, const uint64_t *end);
/* Removes the first records of the copy, up to `at`. Returns what is left of `content`. */
size_t uni_ring_cut_at(struct uni_ring *r, const struct uni_trace_cursor *at, size_t content);
/* Removes records of other sessions from the copy. Returns UNI_TRACE_SUB_HEAD if nothing is
 * left. */
size_t uni_ring_cut_session(struct uni_ring *r, struct uni_ring_cpu *c, size_t content);

#endif
