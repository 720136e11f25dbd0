/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intervals of one row, sorted and not overlapping, with an index for pictures at any zoom. The
 * work for a view depends on its pixels, not on the number of intervals. For each 64 intervals the
 * index has the longest, and the sum of all before. Each 64 of those are one entry of the next
 * level, and so on. The index only grows at its end, so it serves a recording that goes on.
 */
#ifndef UNI_PAGE_LOD_H
#define UNI_PAGE_LOD_H

#include <stddef.h>
#include <stdint.h>

struct uni_lod; /* opaque */

struct uni_lod *uni_lod_create(void);	 /* NULL: out of memory */
void uni_lod_destroy(struct uni_lod *l); /* NULL-safe */
/* Cuts a start that is before the end of the last interval. 0 or -UNI_ENOMEM. */
int uni_lod_add(struct uni_lod *l, uint64_t start, uint64_t dur, uint32_t id);
/* Brings the index up to date; the functions below only see indexed intervals. 0 or -UNI_ENOMEM. */
int uni_lod_index(struct uni_lod *l);
size_t uni_lod_nr(const struct uni_lod *l);
size_t uni_lod_index_bytes(const struct uni_lod *l);

/*
 * nr intervals: a single one, or neighbours that share a pixel. The latter have the first one's
 * start, their sum, and the longest one's id.
 */
struct uni_lod_span {
	uint64_t start, dur;
	uint32_t id, nr;
};

struct uni_lod_span uni_lod_get(const struct uni_lod *l, size_t i);
/* The first interval that ends after t; uni_lod_nr() if none does. */
size_t uni_lod_seek(const struct uni_lod *l, uint64_t t);
/* The sum over from <= i < to, which are at most uni_lod_nr(); 0 if from == to. */
uint64_t uni_lod_sum(const struct uni_lod *l, size_t from, size_t to);
/* The first of the longest of these; from < to. */
size_t uni_lod_longest(const struct uni_lod *l, size_t from, size_t to);

/*
 * Shows t0 <= t < t1 on so many pixels, from left to right. An interval that is a pixel wide or
 * more is a span of its own; the others are one span for each pixel. If fn returns not 0, the view
 * ends and returns that value.
 */
typedef int (*uni_lod_fn)(void *ctx, const struct uni_lod_span *s);
int uni_lod_view(
	const struct uni_lod *l, uint64_t t0, uint64_t t1, uint32_t px, uni_lod_fn fn, void *ctx);

#endif
