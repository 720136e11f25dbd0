/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdbool.h>

#include "base/checked.h"
#include "page/lod_priv.h"

#define WAYS	 UNI_LOD_WAYS
#define TOGETHER 16	    /* spans that are found before they are reported */
#define MANY	 (3 * WAYS) /* so many in a pixel that it may end with a whole 64 */

/*
 * The first of from <= i < to that begins at t or later; it is probably about `step` further on.
 * Makes two guesses by the density of intervals, then searches wider and wider around the second
 * one. Most of the time is spent waiting for memory, so it prefetches what the next search reads
 * first.
 */
static size_t search_near(const struct uni_lod *l, size_t from, size_t to, uint64_t t, size_t step)
{
	size_t guess = from + uni_min(step, to - from), width = 4;
	uint64_t begin = l->start.v[from - 1];

	if (guess < to) {
		double density =
			(double)(guess - from + 1) / (double)(l->start.v[guess] - begin + 1);
		double want = density * (double)(t - begin);

		guess = from + (want < (double)(to - from) ? (size_t)want : to - from);
		__builtin_prefetch(l->start.v + guess + uni_min(step, to - guess));
		__builtin_prefetch(l->dur.v + guess + uni_min(step, to - guess));
	}
	while (guess < to && l->start.v[guess] < t) {
		from = guess + 1;
		guess += uni_min(width, to - guess);
		width *= 2;
	}
	to = guess;
	while (to - from > width && l->start.v[to - width] >= t) {
		to -= width;
		width *= 2;
	}
	return uni_lod_search(l, to - from > width ? to - width : from, to, t);
}

struct scale {
	uint64_t t0;
	double ns; /* length of a pixel */
};

/* Begin of the pixel after the one that has t; UINT64_MAX after all pixels. */
static uint64_t next_pixel(const struct scale *s, uint64_t t)
{
	double px = t > s->t0 ? floor((double)(t - s->t0) / s->ns) + 1 : 1;
	double at = ceil(px * s->ns);

	return at < 0x1p63 && (uint64_t)at < UINT64_MAX - s->t0 ? s->t0 + (uint64_t)at : UINT64_MAX;
}

/* Begin of a block, or slightly earlier. */
static uint64_t begin_of(const struct uni_lod *l, size_t block)
{
	const struct uni_lod_group *g = &l->group.v[block / WAYS];

	return g->start + ((uint64_t)l->tick.v[block] << g->shift);
}

static bool is_near(const struct scale *s, uint64_t t, uint64_t end)
{
	return t <= end || (double)(t - end) < s->ns / 3;
}

/*
 * If a pixel has very many intervals, the index is enough. The pixel is taken to end with a whole
 * block, if that block is much shorter than a pixel. 0: that is not known.
 */
static size_t end_of_pixel(const struct uni_lod *l, const struct scale *s, size_t from, size_t step)
{
	size_t first = from / WAYS, block = first + step / WAYS / 2 + 1;
	uint64_t t;

	if (from % WAYS != 0 || step < MANY || block >= l->tick.nr)
		return 0;
	t = next_pixel(s, begin_of(l, first));
	while (block > first + 1 && begin_of(l, block - 1) >= t)
		block--;
	while (block < l->tick.nr && begin_of(l, block) < t)
		block++;
	if (block == l->tick.nr || !is_near(s, begin_of(l, block), t))
		return 0;
	return block * WAYS;
}

/* A span whose start and id are still to be read, as they are not in the index. */
struct found {
	size_t from, nr, longest;
	uint64_t dur;
};

struct view {
	const struct uni_lod *l;
	struct scale s;
	uint64_t wide;
	size_t i, end, step; /* the next; the end; how many the previous pixel had */
};

static struct found merged_run(const struct uni_lod *l, size_t from, size_t to, size_t longest)
{
	return (struct found){ from, to - from, longest, uni_lod_sum(l, from, to) };
}

/* Takes all up to `to` as one span, unless one of them is wide. */
static bool take_run(struct view *v, size_t to, struct found *ret)
{
	uint64_t dur;
	size_t longest = uni_lod_longest_dur(v->l, v->i, to, &dur);

	if (dur >= v->wide)
		return false;
	*ret = merged_run(v->l, v->i, to, longest);
	v->step = to - v->i;
	v->i = to;
	return true;
}

static struct found next_span(struct view *v)
{
	const struct uni_lod *l = v->l;
	size_t next = end_of_pixel(l, &v->s, v->i, v->step), up;
	struct found one;
	uint64_t t;

	if (next != 0 && next <= v->end && take_run(v, next, &one))
		return one;
	one = (struct found){ v->i, 1, v->i, uni_lod_dur(l, v->i) };
	next = v->i + 1;
	if (one.dur < v->wide) {
		t = next_pixel(&v->s, l->start.v[v->i]);
		next = search_near(l, next, v->end, t, v->step);
		v->step = next - v->i;
		/*
		 * Takes the rest of a block, too, so that the index is enough for the next pixel.
		 */
		up = (next + WAYS - 1) / WAYS * WAYS;
		if (v->step >= MANY && up <= v->end && is_near(&v->s, l->start.v[up - 1], t) &&
			take_run(v, up, &one))
			return one;
		/* The last one that begins in a pixel may reach beyond it. */
		if (next > v->i + 1 && uni_lod_dur(l, next - 1) >= v->wide)
			next--;
	}
	if (next > v->i + 1)
		one = merged_run(l, v->i, next, uni_lod_longest(l, v->i, next));
	v->i = next;
	return one;
}

/*
 * Several spans at a time: their begins and ids are anywhere in memory, and are waited for
 * together.
 */
int uni_lod_view(
	const struct uni_lod *l, uint64_t t0, uint64_t t1, uint32_t px, uni_lod_fn fn, void *ctx)
{
	struct view v = { .l = l, .s = { t0, (double)(t1 - t0) / px }, .step = 1 };
	struct found found[TOGETHER];
	int rc = 0;

	v.wide = v.s.ns < 0x1p63 ? (uint64_t)uni_max(ceil(v.s.ns), 1.0) : UINT64_MAX;
	v.i = uni_lod_seek(l, t0);
	v.end = uni_lod_search(l, v.i, l->nr, t1);
	while (rc == 0 && v.i < v.end) {
		unsigned nr = 0;

		for (; nr < TOGETHER && v.i < v.end; nr++) {
			found[nr] = next_span(&v);
			__builtin_prefetch(l->start.v + found[nr].from);
			__builtin_prefetch(l->id.v + found[nr].longest);
		}
		for (unsigned k = 0; rc == 0 && k < nr; k++) {
			const struct found *f = &found[k];
			struct uni_lod_span one = { l->start.v[f->from], f->dur,
				l->id.v[f->longest], (uint32_t)uni_min(f->nr, (size_t)UINT32_MAX) };

			rc = fn(ctx, &one);
		}
	}
	return rc;
}
