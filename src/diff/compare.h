/* SPDX-License-Identifier: BSD-2-Clause */
/* Two sides compared: which functions changed, how sure that is, and a verdict. */
#ifndef UNI_DIFF_COMPARE_H
#define UNI_DIFF_COMPARE_H

#include "diff/sides.h"

#define UNI_DIFF_FDR 0.05 /* share of false discoveries among the functions that changed */

enum uni_verdict {
	UNI_VERDICT_SAME,
	UNI_VERDICT_SMALLER, /* nothing takes a larger share, something takes a smaller one */
	UNI_VERDICT_LARGER,  /* a function takes a larger share, or more time for the same work */
	UNI_VERDICT_FASTER,  /* the same work takes less, or more */
	UNI_VERDICT_SLOWER,
	UNI_VERDICT_UNSURE,
};

struct uni_diff_limits {
	double threshold; /* share (0 to 1): smaller changes are no changes */
	double tolerance; /* "the same" needs all intervals within this */
	/* Times of a trace: the part in which the host ran something else, 0 to 1. */
	double stolen[UNI_SIDES];
};

struct uni_diff_value {
	struct uni_change c;
	double q;     /* rate of false discoveries at which it is one */
	bool tested;  /* large enough that it could have changed */
	bool changed; /* a discovery, and at least the threshold */
};

struct uni_diff_row {
	size_t function;
	struct uni_diff_value value[UNI_COLUMNS];
};

struct uni_diff_result {
	enum uni_verdict verdict;
	bool has_work;
	bool each; /* a function's change is one of a call of it: relative, before.share is a call's
		      time */
	struct uni_diff_value whole; /* if the work is known: relative, c.before.share is 1 */
	struct uni_diff_row *row; /* those with a value; changed ones first, largest change first */
	size_t nr, nr_changed;
	size_t nr_larger, nr_smaller; /* of these */
	size_t main_row;	      /* that the verdict names */
	double bound;		      /* no tested function changed by more (each with 95 %) */
	size_t bound_row;	      /* the row that gives it; nr if none */
	double more; /* times as many samples (or runs) as now would tell; 0: not known */
	double corr; /* of neighbouring blocks, all functions together */
	/* Unsure because a side begins with another phase, such as a boot: this part of it. */
	double phase[UNI_SIDES];
};

/* 0 or -UNI_ENOMEM. */
int uni_diff_compare(const struct uni_diff_sides *d, const struct uni_diff_limits *limits,
	struct uni_diff_result *ret);
void uni_diff_result_deinit(struct uni_diff_result *r);
/* For each frame of a profile: is it known that its function takes more (1) or less (-1)? Owned by
 * the caller; NULL: no memory. */
int8_t *uni_diff_sure_frames(const struct uni_diff_sides *d, const struct uni_diff_result *r,
	const struct uni_profile *p);
/* The column that the row is about: total if only that changed. */
enum uni_column uni_diff_main_column(const struct uni_diff_row *row);

#endif
