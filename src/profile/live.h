/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile from a history, at one moment and over one window of time. */
#ifndef UNI_PROFILE_LIVE_H
#define UNI_PROFILE_LIVE_H

#include "profile/build.h"
#include "profile/profile.h"
#include "profile/history.h"

/* The guests that have samples in the history. */
struct uni_live_guests {
	const struct uni_build_guest *guest; /* nr of them */
	const uint32_t
		*first_vcpu; /* nr + 1: what its vCPU 0 is among those of all; last: how many */
	uint32_t nr;
};

struct uni_live_opts {
	uint64_t since_ns; /* samples after this; 0: since the start */
	uint64_t until_ns; /* and up to this */
	struct uni_sample_filter filter;
	struct uni_naming naming;
};

/* Weights of the window, whatever the options left out of the profile. */
struct uni_live_sums {
	uint64_t weight;   /* all vCPUs and states */
	uint64_t complete; /* of it: chains that reached their root */
	uint64_t shown;	   /* of it: in the profile */
	uint64_t state[UNI_SESSION_VCPUS_MAX][UNI_VCPU_STATE_NR]; /* by vCPU of all guests */
};

/* Each chain of these samples, with its weight in them; fn's non-zero result ends it. -UNI_ENOMEM.
 */
int uni_live_each(const struct uni_history *h, const struct uni_live_guests *guests,
	const struct uni_live_opts *opts, int (*fn)(void *ctx, const struct uni_sample *s),
	void *ctx, struct uni_live_sums *sums_ret);
/* 0 or -UNI_ENOMEM; the profile is finished and owned by the caller. */
int uni_live_profile(const struct uni_history *h, const struct uni_live_guests *guests,
	const struct uni_live_opts *opts, struct uni_profile **ret, struct uni_live_sums *sums_ret);

enum uni_live_sort { UNI_LIVE_SELF, UNI_LIVE_TOTAL, UNI_LIVE_NAME, UNI_LIVE_SORT_NR };

const char *uni_live_sort_name(enum uni_live_sort by); /* "self" */

/* Functions whose name contains `filter` (ignoring case; NULL or "" is all), sorted. The caller
 * frees the rows: free(). */
int uni_live_rows(const struct uni_profile *p, enum uni_live_sort by, const char *filter,
	struct uni_func_row **ret, size_t *nr_ret);

#endif
