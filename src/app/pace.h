/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of all commands that stop guests for samples: how often and how long. */
#ifndef UNI_APP_PACE_H
#define UNI_APP_PACE_H

#include "app/options.h"
#include "app/quality.h"
#include "recording/recording.h"
#include "sampling/sampler.h"

/* As given; zeroed: the defaults. */
struct uni_pace {
	const char *max_pause, *sched;
	bool skip_late;
};

#define UNI_PACE_OPTIONS(p)                                                                     \
	{ 0, "max-pause", UNI_OPT_STR, &(p).max_pause, "PERCENT|off",                           \
		"pause the guest for at most this share of the time; then samples are skipped " \
		"(default 10)",                                                                 \
		"off", NULL },                                                                  \
		{ 0, "skip-late", UNI_OPT_FLAG, &(p).skip_late, NULL,                           \
			"where samples pause the guest: skip those that are late, instead of "  \
			"taking them late",                                                     \
			NULL, NULL },                                                           \
	{                                                                                       \
		0, "sched", UNI_OPT_STR, &(p).sched, "fifo|other",                              \
			"scheduling class of the thread that pauses guests; with fifo a "       \
			"paused guest waits for no CPU (default fifo where permitted)",         \
			"fifo other", NULL                                                      \
	}

/* -UNI_EUSAGE: a value makes no sense. */
int uni_pace_check(const struct uni_pace *p, struct uni_err *err);
/* For options that were checked. */
void uni_pace_apply(const struct uni_pace *p, struct uni_sampler_cfg *cfg);
/*
 * One line if a guest that is paused, or read while it runs, gave fewer samples than were asked
 * for: how many, and why. False: it gave nearly all.
 */
bool uni_pace_limited(
	char *ret, size_t cap, const struct uni_record_meta *m, const struct uni_record_stats *st);
/* So many equal samples would tell shares as well. m: NULL if not known. */
uint64_t uni_pace_taken(const struct uni_record_meta *m, const struct uni_record_stats *st,
	const struct uni_sample_filter *shown);
/* Do many fewer looks stand behind samples of a process? Says in one line how many. */
bool uni_pace_looks(char ret[UNI_QUALITY_METHOD], const struct uni_record_meta *m,
	const struct uni_record_stats *st, const struct uni_sample_filter *shown);
/* The scheduling class in words. */
const char *uni_pace_class(bool realtime);

#endif
