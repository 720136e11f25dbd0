/* SPDX-License-Identifier: BSD-2-Clause */
/* One recording of a comparison: its values, and the work that was done meanwhile. */
#ifndef UNI_APP_DIFF_RUN_H
#define UNI_APP_DIFF_RUN_H

#include "app/source.h"
#include "base/vec.h"
#include "diff/sides.h"

/* The values that are compared (--of). */
struct uni_diff_of {
	const char *name, *whole, *unit; /* of entries */
	const char *value;		 /* of their values */
	bool all_time, off_cpu;
	const char *exits;
	bool calls; /* of a trace: their number */
};

/* The work that is known (--per). */
struct uni_diff_per {
	enum uni_diff_per_kind {
		UNI_DIFF_PER_NONE,
		UNI_DIFF_PER_RUN,  /* each recording is one unit */
		UNI_DIFF_PER_CALL, /* calls of functions, of a trace */
		UNI_DIFF_PER_EXIT, /* VM exits of a kind */
		UNI_DIFF_PER_EACH, /* of a trace: each function by its own calls */
	} kind;
	const char *glob;
};

/* "run", "call", "call GLOB", "exit GLOB"; NULL: none. glob points into text. */
int uni_diff_per_parse(const char *text, struct uni_diff_per *ret, struct uni_err *err);

/* The command that this session was recorded with; false: none, or it is no session. */
bool uni_diff_run_work(const char *path, struct uni_record_work *ret);

struct uni_diff_read {
	struct uni_source s;
	struct uni_profile *calls; /* owned; NULL: samples are compared */
	UNI_VEC(struct uni_diff_entry) entries;
	UNI_VEC(struct uni_diff_work) work;
	struct uni_diff_run run; /* borrows all of these */
	double seconds;		 /* that it took; 0: not known */
	bool exact;		 /* its values are instructions, all of them */
	bool host_known;	 /* of a trace: */
	double host_on, host_ready;
};

/* Are its values time, or samples of it? */
bool uni_diff_run_is_time(const struct uni_diff_read *r);
/* Close it in any case. */
int uni_diff_run_read(const struct uni_source_args *args, const struct uni_diff_of *of,
	const struct uni_diff_per *per, struct uni_diff_read *ret, struct uni_err *err);
void uni_diff_run_close(struct uni_diff_read *r);

#endif
