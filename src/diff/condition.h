/* SPDX-License-Identifier: BSD-2-Clause */
/* Conditions under which a comparison fails: "function tcp_* +2pp", "total +5%". */
#ifndef UNI_DIFF_CONDITION_H
#define UNI_DIFF_CONDITION_H

#include "base/err.h"
#include "diff/compare.h"

enum uni_condition_result {
	UNI_CONDITION_PASSED, /* no such function can have grown so much, or none was found to */
	UNI_CONDITION_UNSURE, /* an interval reaches the limit */
	UNI_CONDITION_FAILED, /* a function is a discovery, and grew by at least the limit */
};

struct uni_condition {
	const char *text;
	char *glob;    /* NULL: it is about the whole */
	double limit;  /* of the share, 0 to 1 */
	bool relative; /* of a function: a part of what a call took before */
	enum uni_condition_result result;
	size_t nr_named; /* functions of either side that have such a name */
	size_t row;	 /* that decided; of no function, or the whole: the number of rows */
	enum uni_column column;
};

/* text is borrowed. -UNI_EUSAGE, also for limits below the threshold. */
int uni_condition_parse(const char *text, const struct uni_diff_limits *limits,
	struct uni_condition *ret, struct uni_err *err);
/* One about the whole is for results with work only. */
void uni_condition_judge(
	struct uni_condition *c, const struct uni_diff_sides *d, const struct uni_diff_result *r);
void uni_condition_deinit(struct uni_condition *c);

#endif
