/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNI_PAGE_LOD_PRIV_H
#define UNI_PAGE_LOD_PRIV_H

#include "base/vec.h"
#include "page/lod.h"

#define UNI_LOD_WAYS   64u
#define UNI_LOD_GROUP  (UNI_LOD_WAYS * UNI_LOD_WAYS)
#define UNI_LOD_LEVELS 6 /* 64^6 intervals */
#define UNI_LOD_LONG \
	UINT32_MAX /* a duration that is among those in `over`; a sum that is too large */

struct uni_lod_over {
	size_t i;
	uint64_t dur;
};

/*
 * One entry for each 64 of the level below: the longest one's duration, and its index among the 64.
 */
struct uni_lod_level {
	UNI_VEC(uint32_t) max;
	UNI_VEC(uint8_t) at;
};

/* A group of 64 times 64 intervals: the values that its entries are relative to. */
struct uni_lod_group {
	uint64_t start, before; /* start of the first; sum of all before it */
	unsigned shift;
};

struct uni_lod {
	UNI_VEC(uint64_t) start;
	UNI_VEC(uint32_t) dur;
	UNI_VEC(uint32_t) id;
	UNI_VEC(struct uni_lod_over) over; /* in order */
	UNI_VEC(uint32_t) sum;		   /* of each 64 intervals, or UNI_LOD_LONG */
	UNI_VEC(uint32_t) tick; /* of each 64 intervals: start relative to the group's, >> shift */
	UNI_VEC(struct uni_lod_group) group; /* the last one is not full */
	struct uni_lod_level level[UNI_LOD_LEVELS];
	size_t nr; /* of indexed intervals */
};

/* As uni_lod_longest(), with the duration; mostly without reading the interval. */
size_t uni_lod_longest_dur(const struct uni_lod *l, size_t from, size_t to, uint64_t *dur_ret);
uint64_t uni_lod_dur(const struct uni_lod *l, size_t i);
/* The first of from <= i < to that begins at t or later. */
size_t uni_lod_search(const struct uni_lod *l, size_t from, size_t to, uint64_t t);

#endif
