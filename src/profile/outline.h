/* SPDX-License-Identifier: BSD-2-Clause */
/* A call tree as lines from top to bottom, heaviest branch first, for text and screens. */
#ifndef UNI_PROFILE_OUTLINE_H
#define UNI_PROFILE_OUTLINE_H

#include "base/vec.h"
#include "profile/profile.h"

struct uni_outline_opts {
	size_t max_lines;   /* 0 = all */
	double min_percent; /* of the whole, below which a branch is left out */
	unsigned max_depth; /* 0 = any */
};

/* Only where a path forks does the indent grow, so that deep stacks stay readable. */
struct uni_outline_line {
	uint32_t node;
	uint32_t depth, indent;
	bool forked; /* has siblings on show */
};

struct uni_outline {
	UNI_VEC(struct uni_outline_line) lines;
	size_t left; /* branches left out */
};

/* From the root, which is the first line. Zeroed is empty; deinit it in any case. */
int uni_outline_init(
	struct uni_outline *o, const struct uni_profile *p, const struct uni_outline_opts *opts);
void uni_outline_deinit(struct uni_outline *o);

/* A value's share of the whole in percent; with a second column whichever is more. */
double uni_outline_share(const struct uni_profile *p, double before, double after);

#endif
