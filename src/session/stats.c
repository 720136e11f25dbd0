/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/stats.h"

#include "base/checked.h"

#define STEPS (1u << UNI_HIST_STEP_BITS)

/* Values below STEPS have a bucket each; above, the octave and its next 4 bits. */
static unsigned bucket_of(uint64_t v)
{
	unsigned octave;

	if (v < STEPS)
		return (unsigned)v;
	octave = 63u - (unsigned)__builtin_clzll(v) - UNI_HIST_STEP_BITS;
	return (octave + 1) * STEPS + (unsigned)(v >> octave & (STEPS - 1));
}

/* The middle of a bucket. */
static uint64_t value_of(unsigned bucket)
{
	unsigned octave;
	uint64_t low;

	if (bucket < STEPS)
		return bucket;
	octave = bucket / STEPS - 1;
	low = (uint64_t)(STEPS + bucket % STEPS) << octave;
	return low + ((1ull << octave) >> 1);
}

void uni_hist_add(struct uni_hist *h, uint64_t v)
{
	h->nr++;
	if (__builtin_add_overflow(h->sum, v, &h->sum))
		h->sum = UINT64_MAX;
	h->max = uni_max(h->max, v);
	h->bucket[bucket_of(v)]++;
}

uint64_t uni_hist_quantile(const struct uni_hist *h, double q)
{
	uint64_t want = (uint64_t)(q * (double)h->nr), seen = 0;

	if (h->nr == 0)
		return 0;
	want = uni_min(want, h->nr - 1);
	for (unsigned i = 0; i < UNI_HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen > want)
			return uni_min(value_of(i), h->max);
	}
	return h->max;
}

void uni_hist_summary(const struct uni_hist *h, struct uni_pause_stats *ret)
{
	ret->nr = h->nr;
	ret->sum_ns = h->sum;
	ret->p50_ns = uni_hist_quantile(h, 0.50);
	ret->p99_ns = uni_hist_quantile(h, 0.99);
	ret->max_ns = h->max;
}
