/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two sides of a comparison: what each function took in each block of time, or in each run.
 * Functions are the same if their names are, without what compilers append (".part.0") and without
 * marks. Addresses without names are one row, "[unknown]".
 */
#ifndef UNI_DIFF_SIDES_H
#define UNI_DIFF_SIDES_H

#include <stdbool.h>

#include "diff/stats.h"
#include "profile/profile.h"

enum uni_side { UNI_BEFORE, UNI_AFTER, UNI_SIDES };
enum uni_column { UNI_SELF, UNI_TOTAL, UNI_COLUMNS };

#define UNI_DIFF_RUNS_MIN 3   /* on each side, for the runs to be what is compared */
#define UNI_DIFF_BLOCKS	  128 /* of a side */
#define UNI_DIFF_FEW	  32  /* the same, of few samples, or if each function has its own calls */
#define UNI_DIFF_RUNS_MAX 512 /* of a side */

/* One sample in the order of time. */
struct uni_diff_entry {
	uint32_t node;
	double value;
	uint64_t t_ns; /* only where the run has work */
};

/* Work that was done: calls, exits. In the order of time. */
struct uni_diff_work {
	uint64_t t_ns;
	double units;
};

struct uni_diff_run {
	const struct uni_profile *p;	    /* finished */
	const struct uni_diff_entry *entry; /* NULL: its samples have no times */
	size_t nr;
	double samples; /* that its values come from; 0: not known */
	/* Known work: all runs have some, or none has. Without times, the runs are compared. */
	const struct uni_diff_work *work;
	size_t nr_work;
	double scale; /* of the values: seconds; 0: they stay as they are */
	bool each; /* entries are calls: each function is compared by its own. All runs, or none */
};

struct uni_diff_sides; /* opaque */

struct uni_diff_sides *uni_diff_create(const size_t nr_runs[UNI_SIDES]); /* NULL: no memory */
void uni_diff_destroy(struct uni_diff_sides *d);			 /* NULL-safe */
/* The next run of a side, of as many as were announced. 0 or -UNI_ENOMEM. */
int uni_diff_add(struct uni_diff_sides *d, enum uni_side side, const struct uni_diff_run *run);

size_t uni_diff_nr_functions(const struct uni_diff_sides *d);
const char *uni_diff_name(const struct uni_diff_sides *d, size_t function);
/* The function of a frame of any profile; the number of functions if it has none. */
size_t uni_diff_function_of(
	const struct uni_diff_sides *d, const struct uni_profile *p, uint32_t frame);
/* Frames of ours ("[idle]", a guest's name): only their self values mean something. */
bool uni_diff_is_synthetic(const struct uni_diff_sides *d, size_t function);
/* Does it have any value on that side? */
bool uni_diff_has(const struct uni_diff_sides *d, size_t function, enum uni_side side);
/* Two functions are one, which has another name after: nothing is left of the other one. */
void uni_diff_rename(struct uni_diff_sides *d, size_t before, size_t after);
/* p, a tree of both sides, with the new names of renamed functions on both. *ret NULL: none is in
 * it. */
int uni_diff_join_renamed(
	const struct uni_diff_sides *d, const struct uni_profile *p, struct uni_profile **ret);
const char *uni_diff_new_name(const struct uni_diff_sides *d, size_t function); /* NULL: the same */
/* Was it inlined everywhere on that side? */
bool uni_diff_was_inlined(const struct uni_diff_sides *d, size_t function, enum uni_side side);
/* Borrowed until the next add. */
struct uni_blocks uni_diff_blocks(const struct uni_diff_sides *d, size_t function,
	enum uni_side side, enum uni_column column);
bool uni_diff_of_runs(const struct uni_diff_sides *d); /* runs, not blocks, are compared */
/*
 * Is the work known? Then 1 is what a unit of it took before. Functions are measured in that, and
 * the whole of a side (uni_diff_whole()) can grow.
 */
bool uni_diff_has_work(const struct uni_diff_sides *d);
double uni_diff_work_value(const struct uni_diff_sides *d); /* of that 1, in values */
double uni_diff_work_units(const struct uni_diff_sides *d, enum uni_side side);
struct uni_blocks uni_diff_whole(const struct uni_diff_sides *d, enum uni_side side);
/*
 * Is each function compared by its own calls? Then its blocks are those in which it has ended
 * calls, and n is their number there. Blocks of which there are too few to compare have nr 0.
 * Borrowed until the next question about that side.
 */
bool uni_diff_is_each(const struct uni_diff_sides *d);
bool uni_diff_knows_samples(const struct uni_diff_sides *d, enum uni_side side);
/* Are there neither blocks nor runs: samples are taken as independent? */
bool uni_diff_is_independent(const struct uni_diff_sides *d, enum uni_side side);

#endif
