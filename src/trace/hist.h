/* SPDX-License-Identifier: BSD-2-Clause */
/* Histogram of durations: 16 steps for each doubling, so that a value is known within 1/32. */
#ifndef UNI_TRACE_HIST_H
#define UNI_TRACE_HIST_H

#include <stdint.h>

#define UNI_HIST_STEPS	 16
#define UNI_HIST_BUCKETS (UNI_HIST_STEPS * 42) /* up to 2^45 */

static inline uint32_t uni_hist_bucket(uint64_t v)
{
	unsigned high = 63u - (unsigned)__builtin_clzll(v | 1);
	uint64_t b;

	if (v < UNI_HIST_STEPS)
		return (uint32_t)v;
	b = (uint64_t)(high - 3) * UNI_HIST_STEPS + (v >> (high - 4) & (UNI_HIST_STEPS - 1));
	return b < UNI_HIST_BUCKETS ? (uint32_t)b : UNI_HIST_BUCKETS - 1;
}

/* The middle of a bucket's range. */
static inline uint64_t uni_hist_value(uint32_t bucket)
{
	unsigned shift;

	if (bucket < 2 * UNI_HIST_STEPS)
		return bucket;
	shift = bucket / UNI_HIST_STEPS - 1;
	return ((uint64_t)(UNI_HIST_STEPS + bucket % UNI_HIST_STEPS) << shift) +
	       (UINT64_C(1) << shift) / 2;
}

/* The value below which `of` / 100 of nr values are. */
static inline uint64_t uni_hist_percentile(const uint32_t *hist, uint64_t nr, unsigned of)
{
	uint64_t want = nr / 100 * of + (nr % 100 * of + 99) / 100, seen = 0;

	for (uint32_t i = 0; i < UNI_HIST_BUCKETS; i++) {
		seen += hist[i];
		if (seen >= want && seen != 0)
			return uni_hist_value(i);
	}
	return 0;
}

#endif
