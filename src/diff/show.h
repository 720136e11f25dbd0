/* SPDX-License-Identifier: BSD-2-Clause */
/* A comparison as text and as JSON (docs/diff.md). */
#ifndef UNI_DIFF_SHOW_H
#define UNI_DIFF_SHOW_H

#include "base/sink.h"
#include "base/strbuf.h"
#include "diff/compare.h"
#include "diff/condition.h"
#include "recording/recording.h"

/* One side in words. */
struct uni_diff_side_info {
	const char *const *path; /* of its runs */
	size_t nr;
	double samples; /* 0: not known */
	double counted; /* all values of all runs */
	double seconds; /* of all runs; 0: not known */
	/* A trace says, ns: its vCPUs had a CPU, or could have run. Both 0: not known. */
	double host_on, host_ready;
	const char *unit;
};

struct uni_diff_show {
	const struct uni_diff_sides *d;
	const struct uni_diff_result *r;
	const struct uni_diff_limits *limits;
	const char *of;		     /* --of */
	const char *whole;	     /* "the guest's time on a CPU" */
	const char *counted;	     /* what that consists of: "time", "exits", "instructions" */
	const char *per;	     /* "call of GLOB": the known work; NULL: it is not known */
	const char *value;	     /* the unit of values per unit of work; "s": shown as a time */
	const char *part;	     /* of each recording: "2 s to 3.5 s only"; NULL: all of it */
	struct uni_record_part only; /* the same, if it is a part; its thread is borrowed */
	bool inlined;		     /* inlined functions have rows */
	/* A session without data of them, for which they have none; NULL: all have. */
	const char *no_inline;
	const char *hint; /* another way to compare them; NULL: none */
	struct uni_diff_side_info side[UNI_SIDES];
	const struct uni_condition *condition; /* judged */
	size_t nr_conditions;
	bool traced;	 /* times of a trace are compared */
	size_t max_rows; /* 0: all */
	bool all;	 /* also rows that did not change */
};

/* The part of its time in which the host ran something else; NAN: not known. */
double uni_diff_stolen(const struct uni_diff_side_info *side);
/* The verdict in one line, without its end. */
void uni_diff_verdict(const struct uni_diff_show *s, struct uni_strbuf *ret);
void uni_diff_text(const struct uni_diff_show *s, struct uni_sink *out);
void uni_diff_json(const struct uni_diff_show *s, struct uni_sink *out);

#endif
