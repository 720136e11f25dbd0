/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intervals of one row, sorted and not overlapping, and what a picture of them needs at any zoom:
 * the work for a view depends on its pixels, not on how many intervals there are. For each 64
 * intervals the index has the sum of all before and the longest; 64 of those are one of the next
 * level, and so on. It grows at the end only, so that it serves a recording that goes on.
 */
#ifndef UNI_PAGE_LOD_H
#define UNI_PAGE_LOD_H

#include <stddef.h>
#include <stdint.h>

struct uni_lod; /* opaque */

struct uni_lod *uni_lod_create(void);	 /* NULL: out of memory */
void uni_lod_destroy(struct uni_lod *l); /* NULL-safe */
/* What would begin before the end of the last one is cut. 0 or -UNI_ENOMEM. */
int uni_lod_add(struct uni_lod *l, uint64_t start, uint64_t dur, uint32_t id);
/* Brings the index up to what was added; the functions below know no more. 0 or -UNI_ENOMEM. */
int uni_lod_index(struct uni_lod *l);
size_t uni_lod_nr(const struct uni_lod *l);
size_t uni_lod_index_bytes(const struct uni_lod *l);

/* nr intervals: one as it is, or neighbours that share a pixel: the first one's start, their sum,
 * the longest one's id. */
struct uni_lod_span {
	uint64_t start, dur;
	uint32_t id, nr;
};

struct uni_lod_span uni_lod_get(const struct uni_lod *l, size_t i);
/* The first one that ends after t; uni_lod_nr() if none does. */
size_t uni_lod_seek(const struct uni_lod *l, uint64_t t);
/* Over from <= i < to, which are at most uni_lod_nr(); of none 0. */
uint64_t uni_lod_sum(const struct uni_lod *l, size_t from, size_t to);
/* The first of the longest of these; from < to. */
size_t uni_lod_longest(const struct uni_lod *l, size_t from, size_t to);

/*
 * What is to be seen of t0 <= t < t1 on so many pixels, from left to right: what is a pixel wide or
 * more each, the rest one a pixel. Not 0 from fn ends it and is passed on.
 */
typedef int (*uni_lod_fn)(void *ctx, const struct uni_lod_span *s);
int uni_lod_view(
	const struct uni_lod *l, uint64_t t0, uint64_t t1, uint32_t px, uni_lod_fn fn, void *ctx);

#endif
