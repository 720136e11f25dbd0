/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/clock_fit.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"

#define MANY 4 /* points, of which one may be refused */

static uint64_t fit_width(const struct uni_tclock_point *p)
{
	return p->to_ns - p->from_ns;
}

static uint64_t fit_apart(const struct uni_tclock_point *a, const struct uni_tclock_point *b)
{
	return b->from_ns > a->to_ns ? b->from_ns - a->to_ns : 0;
}

void uni_tclock_keep(struct uni_tclock_points *p, const struct uni_tclock_point *point)
{
	if (point->to_ns == 0 || (p->nr != 0 && p->at[p->nr - 1].cycles == point->cycles))
		return;
	if (p->nr == UNI_TCLOCK_POINTS) {
		p->nr = UNI_TCLOCK_POINTS / 2;
		for (unsigned i = 0; i < p->nr; i++) {
			const struct uni_tclock_point *a = &p->at[2 * i], *b = a + 1;

			p->at[i] = fit_width(a) <= fit_width(b) ? *a : *b;
		}
	}
	p->at[p->nr++] = *point;
}

const struct uni_tclock_point *uni_tclock_narrowest(const struct uni_tclock_points *p)
{
	const struct uni_tclock_point *best = NULL;

	for (unsigned i = 0; i < p->nr; i++) {
		if (best == NULL || fit_width(&p->at[i]) < fit_width(best))
			best = &p->at[i];
	}
	return best;
}

/* A point relative to the line's own place, after so many ns. */
struct bounds {
	__int128 after, low, high, slack;
};

static struct bounds bounds_of(
	const struct uni_tclock_point *p, uint64_t cycles, uint64_t hz, unsigned slack_bits)
{
	__int128 after = ((__int128)p->cycles - cycles) * (int64_t)UNI_NSEC_PER_SEC / hz;
	__int128 slack = (after < 0 ? -after : after) >> slack_bits;

	return (struct bounds){ after, (__int128)p->from_ns - after, (__int128)p->to_ns - after,
		slack };
}

/* The place that is inside most of them: it begins at the beginning of one of them. */
static unsigned most_met(const struct bounds *b, unsigned nr, __int128 *low_ret, __int128 *high_ret)
{
	unsigned best = 0;

	for (unsigned i = 0; i < nr; i++) {
		__int128 low = b[i].low - b[i].slack, high = b[i].high + b[i].slack;
		unsigned met = 0;

		for (unsigned k = 0; k < nr; k++) {
			__int128 end = b[k].high + b[k].slack;

			if (b[k].low - b[k].slack > low || end < low)
				continue;
			met++;
			high = end < high ? end : high;
		}
		if (met <= best)
			continue;
		best = met;
		*low_ret = low;
		*high_ret = high;
	}
	return best;
}

/* The largest possible distance between the line and the point's true time. */
static uint64_t off_by(const struct bounds *b, __int128 line)
{
	__int128 off = line - b->low > b->high - line ? line - b->low : b->high - line;

	return (uint64_t)off;
}

static bool is_refused(const struct bounds *b, __int128 line)
{
	return b->low - b->slack > line || b->high + b->slack < line;
}

/* The true line passes these points, too, so the error of our line changes linearly. The narrowest
 * point of each half bounds it between them, and beyond them as far as there are points. */
static uint64_t error_of(const struct bounds *b, unsigned nr, __int128 line)
{
	__int128 first, last, to_end, between;
	const struct bounds *a = NULL, *z = NULL;
	uint64_t most;

	if (nr == 0)
		return UINT64_MAX;
	first = last = b[0].after;
	for (unsigned i = 1; i < nr; i++) {
		first = b[i].after < first ? b[i].after : first;
		last = b[i].after > last ? b[i].after : last;
	}
	for (unsigned i = 0; i < nr; i++) {
		const struct bounds **half = b[i].after - first <= last - b[i].after ? &a : &z;

		if (is_refused(&b[i], line))
			continue;
		if (*half == NULL || off_by(&b[i], line) < off_by(*half, line))
			*half = &b[i];
	}
	if (a == NULL && z == NULL)
		return UINT64_MAX;
	if (a == NULL || z == NULL)
		return off_by(a != NULL ? a : z, line);
	most = uni_max(off_by(a, line), off_by(z, line));
	between = z->after - a->after;
	to_end = uni_max(a->after - first, last - z->after);
	return most + (uint64_t)(2 * (__int128)most * to_end / uni_max(between, (__int128)1));
}

#define AGREE 2 /* refused points that are no error of one look */

static bool has_stepped(const struct bounds *b, unsigned nr, __int128 line)
{
	struct bounds other[UNI_TCLOCK_POINTS];
	__int128 low, high;
	unsigned n = 0;

	for (unsigned i = 0; i < nr; i++) {
		if (is_refused(&b[i], line))
			other[n++] = b[i];
	}
	return is_refused(&b[0], line) || is_refused(&b[nr - 1], line) ||
	       most_met(other, n, &low, &high) >= AGREE;
}

bool uni_tclock_fit_at(const struct uni_tclock_points *p, uint64_t hz, unsigned slack_bits,
	struct uni_tclock_fit *ret)
{
	const struct uni_tclock_point *narrow = uni_tclock_narrowest(p);
	struct bounds b[UNI_TCLOCK_POINTS];
	__int128 low = 0, high = 0, line;

	*ret = (struct uni_tclock_fit){ .nr = 0 };
	if (narrow == NULL || hz == 0)
		return false;
	for (unsigned i = 0; i < p->nr; i++)
		b[i] = bounds_of(&p->at[i], narrow->cycles, hz, slack_bits);
	ret->nr = most_met(b, p->nr, &low, &high);
	line = low + (high - low) / 2;
	if (line < 0 || ret->nr < (p->nr < MANY ? p->nr : p->nr - p->nr / MANY))
		return false;
	ret->cycles = narrow->cycles;
	ret->ns = (uint64_t)line;
	ret->half_ns = (uint64_t)((high - low + 1) / 2);
	ret->error_ns = error_of(b, p->nr, line);
	ret->stepped = has_stepped(b, p->nr, line);
	return true;
}

uint64_t uni_tclock_sharpness(const struct uni_tclock_points *p)
{
	uint64_t best = 0;

	for (unsigned i = 0; i < p->nr; i++) {
		for (unsigned k = 0; k < p->nr; k++)
			best = uni_max(
				best, fit_apart(&p->at[i], &p->at[k]) /
					      (fit_width(&p->at[i]) + fit_width(&p->at[k]) + 1));
	}
	return best;
}

uint64_t uni_tclock_span(const struct uni_tclock_points *p)
{
	uint64_t end = UINT64_MAX, begin = 0;

	for (unsigned i = 0; i < p->nr; i++) {
		end = uni_min(end, p->at[i].to_ns);
		begin = uni_max(begin, p->at[i].from_ns);
	}
	return begin > end ? begin - end : 0;
}

static uint64_t rate_of(uint64_t cycles, uint64_t ns)
{
	unsigned __int128 hz = (unsigned __int128)cycles * UNI_NSEC_PER_SEC / uni_max(ns, 1u);

	return hz > UINT64_MAX ? UINT64_MAX : (uint64_t)hz;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

uint64_t uni_tclock_slope(const struct uni_tclock_points *p, uint64_t apart_ns)
{
	uint64_t least = 0, most = UINT64_MAX;
	uint64_t slope[UNI_TCLOCK_POINTS * (UNI_TCLOCK_POINTS - 1) / 2];
	unsigned nr = 0;

	for (unsigned i = 0; i < p->nr; i++) {
		for (unsigned k = 0; k < p->nr; k++) {
			const struct uni_tclock_point *a = &p->at[i], *b = &p->at[k];
			uint64_t cycles = b->cycles - a->cycles, near = fit_apart(a, b);

			if (b->cycles <= a->cycles)
				continue;
			least = uni_max(
				least, rate_of(cycles, b->to_ns - uni_min(a->from_ns, b->to_ns)));
			if (near != 0)
				most = uni_min(most, rate_of(cycles, near));
			if (near >= apart_ns)
				slope[nr++] =
					rate_of(cycles, near + (fit_width(a) + fit_width(b)) / 2);
		}
	}
	if (nr == 0)
		return 0;
	if (least <= most)
		return least + (most - least) / 2;
	/* Some contradict others: most do not. */
	qsort(slope, nr, sizeof(slope[0]), by_value);
	return slope[nr / 2];
}
