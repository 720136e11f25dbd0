/* SPDX-License-Identifier: BSD-2-Clause */
/* A straight line through intervals: how a counter goes with a clock, if it goes evenly. */
#ifndef UNI_TRACING_CLOCK_FIT_H
#define UNI_TRACING_CLOCK_FIT_H

#include <stdbool.h>
#include <stdint.h>

#define UNI_TCLOCK_POINTS 64
#define UNI_TCLOCK_EXACT  63 /* slack_bits: the frequency is not off at all */

/* The guest's counter was `cycles` at some moment of [from_ns, to_ns]. */
struct uni_tclock_point {
	uint64_t cycles, from_ns, to_ns; /* to_ns 0: none */
};

struct uni_tclock_points {
	struct uni_tclock_point at[UNI_TCLOCK_POINTS];
	unsigned nr;
};

/* Adds a point. If there is no room, the narrower one of each two neighbours stays. */
void uni_tclock_keep(struct uni_tclock_points *p, const struct uni_tclock_point *point);

struct uni_tclock_fit {
	uint64_t cycles, ns; /* of the line */
	uint64_t half_ns;    /* the line may be moved by so much either way */
	uint64_t error_ns;   /* and is off by no more from the first to the last point */
	unsigned nr;	     /* points that it meets */
	/* The first or the last point is one of the others, or several of these agree. So the
	 * counter stood still or jumped meanwhile, or does not go at that frequency: no line has a
	 * bound. */
	bool stepped;
};

/*
 * The line of that frequency which meets most points; these may be off by one in 2^slack_bits of
 * the distance. True if it meets all of them, or 3 of 4 if there are at least 4: the others
 * contradict these, and are refused.
 */
bool uni_tclock_fit_at(const struct uni_tclock_points *p, uint64_t hz, unsigned slack_bits,
	struct uni_tclock_fit *ret);
/* A frequency at which the line meets all points that do not contradict the others. 0: they are
 * less than apart_ns apart, or no frequency is possible. */
uint64_t uni_tclock_slope(const struct uni_tclock_points *p, uint64_t apart_ns);
/* The distance, relative to their widths, of the two points that determine a frequency best. */
uint64_t uni_tclock_sharpness(const struct uni_tclock_points *p);
/* The narrowest; NULL: there is none. */
const struct uni_tclock_point *uni_tclock_narrowest(const struct uni_tclock_points *p);
/* Between the latest beginning and the earliest end of two points. */
uint64_t uni_tclock_span(const struct uni_tclock_points *p);

#endif
