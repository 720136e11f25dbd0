/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of a packet (uniscope/trace_abi.h) one after the other, with complete time stamps.
 * Everything comes from the guest. An invalid id or length ends the packet, and the caller counts
 * the rest of it.
 */
#ifndef UNI_TRACE_RECORD_H
#define UNI_TRACE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "trace/ring.h"

struct uni_trace_record {
	uint64_t time; /* cycles of the CPU's counter */
	uint64_t
		value; /* ENTRY, LEAF: the function's address; EXIT: the stack pointer's low half */
	uint8_t kind;  /* enum uni_trace_kind */
	uint16_t cls;  /* EXT: enum uni_trace_class */
	uint16_t nr;   /* words that follow */
	const uint64_t *words; /* in the packet */
};

/* The gap fields of a record of the complete time: as struct uni_trace_sub. */
static inline uint64_t uni_trace_gaps(const struct uni_trace_record *sync)
{
	return sync->words[1] >> 32 | 1;
}

/* The whole gap word, as in struct uni_trace_sub for its first record. */
static inline uint64_t uni_trace_sync_told(const struct uni_trace_record *sync)
{
	return uni_trace_gaps(sync) | (uint64_t)UNI_TRACE_SESSION_OF_SYNC(sync->words[1]) << 48;
}

/* The gap fields of a packet's header, for its first record. */
static inline uint64_t uni_trace_sub_gaps(const struct uni_trace_sub *s)
{
	return (uint32_t)s->gaps;
}

struct uni_trace_cursor {
	const uint64_t *at, *end;
	uint64_t now;
	uint64_t window;
	const uint8_t *kinds;
};

/* packet, content: as uni_ring_packet_fn gets them; info must outlive the cursor. */
static inline struct uni_trace_cursor uni_trace_records(
	const struct uni_ring_info *info, const struct uni_trace_sub *packet, size_t content)
{
	const uint64_t *words = (const uint64_t *)(const void *)packet;

	return (struct uni_trace_cursor){ .at = words + UNI_TRACE_SUB_HEAD / 8,
		.end = words + content / 8,
		.now = packet->ts_begin,
		.window = info->text_window,
		.kinds = info->kinds };
}

/* Number of words after a record's first one; 0xffff: more than there are. */
static inline unsigned uni_trace_words(uint64_t word, uint8_t kind)
{
	if (kind == UNI_TRACE_KIND_SYNC)
		return 2;
	return kind == UNI_TRACE_KIND_EXT ? (unsigned)(word >> 36 & 0xfff) : 0;
}

/* By bit: the ids of events of one word. */
static inline unsigned uni_trace_short_ids(const uint8_t kinds[16])
{
	unsigned ids = 0;

	for (unsigned i = 0; i < 16; i++) {
		if (kinds[i] != UNI_TRACE_KIND_NONE && kinds[i] != UNI_TRACE_KIND_SYNC &&
			kinds[i] != UNI_TRACE_KIND_EXT)
			ids |= 1u << i;
	}
	return ids;
}

/* False at the end, or if the rest is invalid (then c->at < c->end). */
static inline bool uni_trace_next(struct uni_trace_cursor *c, struct uni_trace_record *ret)
{
	uint64_t word;
	uint8_t kind;
	unsigned nr;

	if (c->at >= c->end)
		return false;
	word = *c->at;
	kind = c->kinds[word >> 32 & 15];
	nr = uni_trace_words(word, kind);
	if (kind == UNI_TRACE_KIND_NONE || nr >= (size_t)(c->end - c->at))
		return false;
	/* 32 bits are enough from one record to the next; a SYNC follows if the time wraps more
	 * than once. */
	c->now += (uint32_t)((uint32_t)word - (uint32_t)c->now);
	ret->kind = kind;
	ret->value = c->window | (word >> 32 & ~UINT64_C(15));
	ret->cls = (uint16_t)(word >> 48);
	ret->nr = (uint16_t)nr;
	ret->words = c->at + 1;
	if (kind == UNI_TRACE_KIND_SYNC && ret->words[0] > c->now)
		c->now = ret->words[0];
	ret->time = c->now;
	c->at += 1 + nr;
	return true;
}

#endif
