/* SPDX-License-Identifier: BSD-2-Clause */
/* Two sessions with exact counts, compared: differences are facts, and nothing is estimated. */
#ifndef UNI_APP_DIFF_EXACT_H
#define UNI_APP_DIFF_EXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sink.h"

struct uni_exact_diff_row {
	char *name;		     /* owned */
	uint64_t insns[2], calls[2]; /* before, after */
};

struct uni_exact_diff {
	struct uni_exact_diff_row *row; /* the largest change first; then by name */
	size_t nr;
	uint64_t insns[2]; /* of all functions */
};

/* Does the session have exact counts? */
bool uni_exact_diff_has(const char *path);
/* Functions are the same if their names are. */
int uni_exact_diff_open(const char *before, const char *after, bool mangled,
	struct uni_exact_diff *ret, struct uni_err *err);
void uni_exact_diff_deinit(struct uni_exact_diff *d);

/* A condition of --fail-if, and the function with the largest change that it names. */
struct uni_exact_judged {
	const char *text; /* borrowed */
	const char *name; /* borrowed; NULL: all of it, or no function has such a name */
	bool known;	  /* there is something to compare */
	bool failed;
	bool relative; /* change: a part of the instructions before; else of shares */
	double change; /* INFINITY: there were none before */
};

/* condition: "total +5%", "function GLOB +20%" (more of its instructions), "function GLOB +2pp". */
int uni_exact_diff_judge(const struct uni_exact_diff *d, const char *condition,
	struct uni_exact_judged *ret, struct uni_err *err);

/* max: rows at most, 0: all. */
void uni_exact_diff_text(const struct uni_exact_diff *d, const struct uni_exact_judged *judged,
	size_t nr_judged, uint64_t max, bool all, struct uni_sink *out);
void uni_exact_diff_json(const struct uni_exact_diff *d, bool all, struct uni_sink *out);

#endif
