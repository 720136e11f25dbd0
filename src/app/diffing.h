/* SPDX-License-Identifier: BSD-2-Clause */
/* Recordings and imports of two sides, read for a comparison (diff/compare.h). */
#ifndef UNI_APP_DIFFING_H
#define UNI_APP_DIFFING_H

#include "app/diff_run.h"
#include "diff/compare.h"
#include "diff/show.h"

struct uni_diffing_side {
	const char *const *path;
	size_t nr;
};

struct uni_diffing_args {
	struct uni_source_args src; /* path is not used */
	const char *of;		    /* NULL: time */
	const char *per;	    /* NULL: the command that all were recorded with, or nothing */
	struct uni_diffing_side side[UNI_SIDES];
	bool tree; /* make a tree of both sides, too */
};

struct uni_diffing {
	struct uni_diff_sides *d;
	struct uni_diff_show show; /* all but r and limits */
	struct uni_profile *tree;  /* NULL: not asked for */
	char *per, *part, *whole;  /* owned: show.per, show.part, show.whole or NULL */
	char *kind;		   /* what its recordings hold, in a word; NULL: not known yet */
};

/* Words of --of, for completion. */
#define UNI_DIFFING_OF "time wall waiting exits calls"

int uni_diffing_open(
	const struct uni_diffing_args *args, struct uni_diffing *ret, struct uni_err *err);
void uni_diffing_close(struct uni_diffing *x);

#endif
