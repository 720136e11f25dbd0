/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/ranges.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"

#define BUCKETS_MAX ((size_t)1 << 22)

/* Keeps ends as the last address, since the end may be one past the top. */
static uint64_t last_of(const struct uni_symbol *s)
{
	return s->addr + (s->size - 1);
}

static void emit_range(struct uni_ranges *r, uint64_t start, uint32_t sym)
{
	if (r->nr != 0 && r->start[r->nr - 1] == start)
		r->nr--; /* a piece of no length */
	if (r->nr != 0 && r->sym[r->nr - 1] == sym)
		return;
	r->start[r->nr] = start;
	r->sym[r->nr++] = sym;
}

/* Symbols that are open at the sweep's address, the last one started on top. */
struct open_syms {
	const struct uni_symbol *syms;
	uint32_t *v;
	size_t nr;
};

/* Ends the top symbol: goes on with the next symbol that reaches further, or begins a gap. */
static void close_top(struct open_syms *open, struct uni_ranges *r)
{
	uint64_t last = last_of(&open->syms[open->v[open->nr - 1]]);

	while (open->nr != 0 && last_of(&open->syms[open->v[open->nr - 1]]) <= last)
		open->nr--;
	if (last != UINT64_MAX)
		emit_range(r, last + 1, open->nr != 0 ? open->v[open->nr - 1] : UNI_RANGE_GAP);
}

static void flatten_symbols(
	const struct uni_symbol *syms, size_t nr, struct open_syms *open, struct uni_ranges *r)
{
	uint64_t sized_last = 0; /* last address of all symbols of stated size so far */
	bool any_sized = false;

	for (size_t i = 0; i < nr; i++) {
		const struct uni_symbol *s = &syms[i];

		if (s->guessed_size && any_sized && s->addr <= sized_last)
			continue;
		if (!s->guessed_size) {
			sized_last = any_sized ? uni_max(sized_last, last_of(s)) : last_of(s);
			any_sized = true;
		}
		while (open->nr != 0 && last_of(&syms[open->v[open->nr - 1]]) < s->addr)
			close_top(open, r);
		emit_range(r, s->addr, (uint32_t)i);
		open->v[open->nr++] = (uint32_t)i;
	}
	while (open->nr != 0)
		close_top(open, r);
}

/* About two buckets for each piece, so that the search inside a bucket takes a step or two. */
static bool make_buckets(struct uni_ranges *r)
{
	uint64_t hull = r->start[r->nr - 1] - r->start[0];
	size_t want = uni_min(2 * r->nr, BUCKETS_MAX), piece = 0;

	while (hull >> r->shift >= want)
		r->shift++;
	r->nr_buckets = (size_t)(hull >> r->shift) + 1;
	r->bucket = calloc(r->nr_buckets, sizeof(*r->bucket));
	if (r->bucket == NULL)
		return false;
	for (size_t b = 0; b < r->nr_buckets; b++) {
		uint64_t off = (uint64_t)b << r->shift;

		while (piece + 1 < r->nr && r->start[piece + 1] - r->start[0] <= off)
			piece++;
		r->bucket[b] = (uint32_t)piece;
	}
	return true;
}

bool uni_ranges_build(const struct uni_symbol *syms, size_t nr, struct uni_ranges *ret)
{
	_cleanup_free_ uint32_t *stack = calloc(nr + 1, sizeof(*stack));
	struct open_syms open = { .syms = syms, .v = stack };
	struct uni_ranges r = { 0 };

	/* A symbol begins one piece, and its end begins another. */
	r.start = calloc(2 * nr + 1, sizeof(*r.start));
	r.sym = calloc(2 * nr + 1, sizeof(*r.sym));
	if (stack == NULL || r.start == NULL || r.sym == NULL) {
		uni_ranges_deinit(&r);
		return false;
	}
	flatten_symbols(syms, nr, &open, &r);
	if (r.nr != 0 && !make_buckets(&r)) {
		uni_ranges_deinit(&r);
		return false;
	}
	*ret = r;
	return true;
}

void uni_ranges_deinit(struct uni_ranges *r)
{
	free(r->start);
	free(r->sym);
	free(r->bucket);
	*r = (struct uni_ranges){ 0 };
}

/* The piece that has addr, which is not below the first piece. */
static size_t find_piece(const struct uni_ranges *r, uint64_t addr)
{
	uint64_t b = (addr - r->start[0]) >> r->shift;
	size_t lo, hi;

	/* Addresses behind all buckets are in the last piece. */
	if (b >= r->nr_buckets)
		return r->nr - 1;
	lo = r->bucket[b];
	hi = b + 1 < r->nr_buckets ? (size_t)r->bucket[b + 1] : r->nr - 1;
	while (lo < hi) {
		size_t mid = lo + (hi - lo + 1) / 2;

		if (r->start[mid] <= addr)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

uint32_t uni_ranges_find(const struct uni_ranges *r, uint64_t addr)
{
	if (r->nr == 0 || addr < r->start[0])
		return UNI_RANGE_GAP;
	return r->sym[find_piece(r, addr)];
}

uint32_t uni_ranges_find_in(const struct uni_ranges *r, uint64_t addr, struct uni_span *span)
{
	uint64_t first = span->start, last = span->start + (span->size - 1), end;
	uint32_t sym = UNI_RANGE_GAP;

	if (r->nr == 0)
		return UNI_RANGE_GAP;
	if (addr < r->start[0]) {
		end = r->start[0] - 1;
	} else {
		size_t i = find_piece(r, addr);

		sym = r->sym[i];
		first = uni_max(first, r->start[i]);
		end = i + 1 < r->nr ? r->start[i + 1] - 1 : UINT64_MAX;
	}
	last = uni_min(last, end);
	span->start = first;
	span->size = uni_min(last - first, UINT64_MAX - 1) + 1;
	return sym;
}

bool uni_spans_has(const struct uni_span *v, size_t nr, uint64_t addr)
{
	size_t low = 0, high = nr;

	while (low < high) { /* the first span behind addr */
		size_t mid = low + (high - low) / 2;

		if (v[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low != 0 && uni_range_has(v[low - 1].start, v[low - 1].size, addr);
}
