/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics: a histogram of durations that never allocates (16 steps an octave, so percentiles are
 * exact to 1/32 of their value), and counting samples.
 */
#ifndef UNI_RECORDING_STATS_H
#define UNI_RECORDING_STATS_H

#include <stdint.h>

#include "recording/recording.h"

#define UNI_HIST_STEP_BITS 4
#define UNI_HIST_BUCKETS   ((64 - UNI_HIST_STEP_BITS + 1) << UNI_HIST_STEP_BITS)

struct uni_hist { /* zeroed is empty */
	uint64_t nr, sum, max;
	uint64_t bucket[UNI_HIST_BUCKETS];
};

void uni_hist_add(struct uni_hist *h, uint64_t v);
/* The value that a share q (0..1) of the entries does not pass; 0 if there are none. */
uint64_t uni_hist_quantile(const struct uni_hist *h, double q);
void uni_hist_summary(const struct uni_hist *h, struct uni_pause_stats *ret);

/* Adds one sample to the numbers that count weights: its chain, its state, itself. */
void uni_record_stats_count(struct uni_record_stats *st, const struct uni_sample *s);

/* Takes what the functions here count of single samples, and nothing else. */
void uni_record_stats_take_shares(struct uni_record_stats *to, const struct uni_record_stats *from);

/* The same for where its chain lies; hints are of the guest's images, NULL: they are not known. */
void uni_record_stats_place(struct uni_record_stats *st, const struct uni_sample *s,
	const struct uni_unwind_hints *hints);
/* The same where that is known; the chain is not empty. */
void uni_record_stats_lies(struct uni_record_stats *st, const struct uni_sample *s, bool inside);

#endif
