/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From an address to the symbol that covers it, in tens of nanoseconds.
 *
 * Symbols may nest and overlap. So they are first flattened to pieces that do not: each piece ends
 * where the next one begins, and gaps are pieces of no symbol. If several symbols cover an address,
 * a stated size goes before a guessed one (labels inside an assembler function). After that, the
 * symbol that starts last wins.
 *
 *   symbols   A |---------------|      C |-----|
 *                   B |---|
 *   pieces    A       B   A     gap      C     gap
 */
#ifndef UNI_OBJ_RANGES_H
#define UNI_OBJ_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "obj/image.h"

#define UNI_RANGE_GAP UINT32_MAX

struct uni_ranges {
	uint64_t *start; /* rising */
	uint32_t *sym;	 /* index of the symbol, or UNI_RANGE_GAP */
	size_t nr;
	uint32_t *bucket; /* the piece that holds the first address of bucket i */
	size_t nr_buckets;
	unsigned shift; /* a bucket is 1 << shift bytes, from start[0] on */
};

/*
 * syms: sorted by address, sizes not 0 and not past the top. If several start together, the last
 * one in the array counts as the one that starts last. False: out of memory.
 */
bool uni_ranges_build(const struct uni_symbol *syms, size_t nr, struct uni_ranges *ret);
void uni_ranges_deinit(struct uni_ranges *r);
/* Index of the symbol that covers addr, or UNI_RANGE_GAP. */
uint32_t uni_ranges_find(const struct uni_ranges *r, uint64_t addr);
/* Adjacent addresses with a common property; size is not 0. */
struct uni_span {
	uint64_t start, size;
};
/* The same; also cuts the span, which must have addr, to the piece. */
uint32_t uni_ranges_find_in(const struct uni_ranges *r, uint64_t addr, struct uni_span *span);
/* Is addr in one of the spans, which are sorted and do not overlap? */
bool uni_spans_has(const struct uni_span *v, size_t nr, uint64_t addr);

#endif
