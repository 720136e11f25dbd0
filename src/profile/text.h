/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles as text: what `report` prints. Whether to use colour, and how wide the terminal is, the
 * caller decides. A differential profile has a column of changes in each table.
 */
#ifndef UNI_PROFILE_TEXT_H
#define UNI_PROFILE_TEXT_H

#include "base/sink.h"
#include "profile/profile.h"

struct uni_text_opts {
	bool colour;	    /* ANSI: highlights hot rows */
	unsigned width;	    /* columns; longer names are cut with "..": 0 = never */
	size_t max_rows;    /* of a table, or lines of the tree: 0 = all */
	double min_percent; /* of the total, below which a row or a branch is left out */
	unsigned max_depth; /* of the tree: 0 = any */
	const int8_t *sure; /* by frame: those other than 0 get a * in the tree; NULL: none */
};

/* "1,234,567": v rounded to a whole number. ret has room for UNI_NUMBER_MAX bytes. */
#define UNI_NUMBER_MAX 64
void uni_text_number(char *ret, double v);
/* The terminal's colour for such a share; "" for a small one. */
const char *uni_text_heat(double percent);

/* Below rows with marks. */
#define UNI_UNSURE_LEGEND                          \
	UNI_UNSURE_MARK "  " UNI_UNSURE_MEANS "\n" \
			"    (where a chain ends is in doubt, and not the callers in it)\n"
/* Functions by self value, with totals. States how many were left out. */
int uni_text_functions(
	const struct uni_profile *p, const struct uni_text_opts *opts, struct uni_sink *out);
/* The call tree, callers first, heaviest branch first; a chain of only children does not indent. */
int uni_text_tree(
	const struct uni_profile *p, const struct uni_text_opts *opts, struct uni_sink *out);
/*
 * One row for each "vcpu N" frame below the root or below a guest's (uni_build_opts.per_vcpu), with
 * its hottest function. Nothing if there is no such frame.
 */
int uni_text_vcpus(
	const struct uni_profile *p, const struct uni_text_opts *opts, struct uni_sink *out);

#endif
