/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/diffing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/given_twice.h"
#include "base/checked.h"
#include "recording/exact.h"
#include "obj/usym.h"
#include "profile/copy.h"

static const struct uni_diff_of kinds[] = {
	{ "time", "the guest's time on a CPU", "samples", "s", false, false, NULL, false },
	{ "wall", "all time of all vCPUs", "samples", "s", true, false, NULL, false },
	{ "waiting", "the threads' waiting", "samples", "s", false, true, NULL, false },
	{ "exits", "all VM exits", "exits", "exits", false, false, "count", false },
	{ "calls", "all calls of functions", "calls", "calls", false, false, NULL, true },
};

static const struct uni_diff_of *find_kind(const char *of, struct uni_err *err)
{
	for (size_t i = 0; i < uni_array_len(kinds); i++) {
		if (of == NULL || strcmp(kinds[i].name, of) == 0)
			return &kinds[i];
	}
	(void)uni_err_set(err, UNI_EUSAGE, "--of %s: it is one of " UNI_DIFFING_OF, of);
	return NULL;
}

/* "call of f", "exit io out 0x3f8", "run": for messages. */
static char *name_per(const struct uni_diff_per *per)
{
	char *ret = NULL;

	if (per->kind == UNI_DIFF_PER_RUN)
		return strdup("run");
	if (per->kind == UNI_DIFF_PER_EACH)
		return strdup("call");
	return asprintf(&ret, "%s %s", per->kind == UNI_DIFF_PER_CALL ? "call of" : "exit",
		       per->glob) < 0
		       ? NULL
		       : ret;
}

/* Was this one recorded with the same command as those before, which did not fail? */
static bool has_same_work(const char *path, struct uni_record_work *first)
{
	struct uni_record_work w;
	bool same = uni_diff_run_work(path, &w) && w.status == 0 &&
		    (first->command[0] == '\0' || strcmp(first->command, w.command) == 0);

	if (same)
		*first = w;
	return same;
}

/*
 * If all runs did the same, they are what is compared, provided there are enough. Exact counts are
 * of all that a guest did, so their totals are compared, as those of one on each side are.
 */
static void choose_per(
	const struct uni_diffing_args *args, struct uni_diff_per *per, struct uni_diffing *x)
{
	struct uni_record_work work = { 0 };
	bool exact = args->of == NULL, same = true;

	for (int s = 0; s < UNI_SIDES; s++) {
		for (size_t i = 0; i < args->side[s].nr; i++) {
			exact = exact && uni_exact_is_there(args->side[s].path[i], 0);
			same = same && has_same_work(args->side[s].path[i], &work);
		}
	}
	if (!exact && !same)
		return;
	if (args->side[UNI_BEFORE].nr >= UNI_DIFF_RUNS_MIN &&
		args->side[UNI_AFTER].nr >= UNI_DIFF_RUNS_MIN)
		per->kind = UNI_DIFF_PER_RUN;
	else if (!exact)
		x->show.hint = "all were recorded with the same command: give 3 recordings of "
			       "each side, and its time is compared";
	else
		x->show.hint = "exact counts: give one session of each side, or 3, and their "
			       "totals are compared";
}

static int check_per(
	const struct uni_diffing_args *args, const struct uni_diff_per *per, struct uni_err *err)
{
	if (per->kind == UNI_DIFF_PER_RUN && (args->side[UNI_BEFORE].nr < UNI_DIFF_RUNS_MIN ||
						     args->side[UNI_AFTER].nr < UNI_DIFF_RUNS_MIN))
		return uni_err_set(err, UNI_EUSAGE,
			"--per run compares whole runs: give at least %d recordings of each side",
			UNI_DIFF_RUNS_MIN);
	return 0;
}

static const char *kind_of(const struct uni_diff_read *r, const struct uni_diff_of *of)
{
	if (r->calls != NULL)
		return "a function trace";
	return of->exits != NULL || uni_diff_run_is_time(r) ? "samples"
							    : uni_profile_unit(r->run.p);
}

/* Says what is counted, if that is no time: instructions, or what a file says ("cycles"). */
static int name_counted(struct uni_diffing *x, const struct uni_diff_read *r,
	const struct uni_diff_of *of, const char *path, struct uni_err *err)
{
	const char *kind = kind_of(r, of);
	bool first = x->kind == NULL;

	if (!first && strcmp(x->kind, kind) != 0)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s holds %s, and the file before it %s: only like can be compared with "
			"like",
			path, kind, x->kind);
	if (first && (x->kind = strdup(kind)) == NULL)
		return uni_err_nomem(err);
	if (r->calls != NULL) {
		x->show.whole = of->calls ? of->whole : "the time in traced functions";
		return 0;
	}
	if (of->exits != NULL || uni_diff_run_is_time(r))
		return 0;
	if (of->all_time)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s has numbers of %s: --of %s is about samples of time", path, kind,
			of->name);
	x->show.counted = x->show.value = x->kind;
	if (first && asprintf(&x->whole, "%s %s", r->exact ? "the guest's" : "all", x->kind) < 0) {
		x->whole = NULL;
		return uni_err_nomem(err);
	}
	x->show.whole = x->whole;
	return 0;
}

/* One run without the host's times leaves those of its side unknown. */
static void add_trace(struct uni_diffing *x, enum uni_side side, const struct uni_diff_read *r,
	const struct uni_diff_of *of)
{
	struct uni_diff_side_info *s = &x->show.side[side];

	s->unit = "calls";
	x->show.traced = !of->calls;
	s->host_on += r->host_known ? r->host_on : NAN;
	s->host_ready += r->host_known ? r->host_ready : NAN;
}

/* The first session that has, or has not, data of inlined functions; NULL: none. */
static const char *find_with_places(const struct uni_diffing_args *args, bool places)
{
	for (int s = 0; s < UNI_SIDES; s++) {
		for (size_t i = 0; i < args->side[s].nr; i++) {
			const struct uni_symtab *symtab;
			struct uni_recording *rec = NULL;
			bool found;

			if (uni_recording_open(args->side[s].path[i], &rec, NULL) != 0)
				continue;
			symtab = uni_recording_guest(rec, 0).symtab;
			found = symtab != NULL && uni_symtab_has_places(symtab) == places;
			uni_recording_close(rec);
			if (found)
				return args->side[s].path[i];
		}
	}
	return NULL;
}

static int add_run(struct uni_diffing *x, enum uni_side side, struct uni_source_args *args,
	const struct uni_diff_of *of, const struct uni_diff_per *per, struct uni_err *err)
{
	struct uni_diff_read r;
	int rc;

	args->all_time = of->all_time;
	args->off_cpu = of->off_cpu;
	args->exits = of->exits;
	args->quiet = true;
	rc = uni_diff_run_read(args, of, per, &r, err);
	if (rc == 0)
		rc = name_counted(x, &r, of, args->path, err);
	if (rc == 0 && uni_diff_add(x->d, side, &r.run) != 0)
		rc = uni_err_nomem(err);
	if (rc == 0 && x->tree != NULL &&
		uni_profile_add_copy(x->tree, r.run.p, 1, side == UNI_AFTER) != 0)
		rc = uni_err_nomem(err);
	if (rc == 0) {
		x->show.side[side].samples += r.run.samples;
		if (x->tree != NULL)
			uni_profile_set_unit(x->tree, uni_profile_unit(r.run.p));
		x->show.side[side].counted += uni_profile_total(r.run.p);
		x->show.side[side].seconds += r.seconds;
		if (r.calls != NULL)
			add_trace(x, side, &r, of);
	}
	uni_diff_run_close(&r);
	return rc;
}

static int add_side(struct uni_diffing *x, enum uni_side side, const struct uni_diffing_args *args,
	const struct uni_diff_of *of, const struct uni_diff_per *per, struct uni_err *err)
{
	int rc = 0;

	x->show.side[side] = (struct uni_diff_side_info){
		.path = args->side[side].path, .nr = args->side[side].nr, .unit = of->unit
	};
	for (size_t i = 0; rc == 0 && i < args->side[side].nr; i++) {
		struct uni_source_args one = args->src;

		one.path = args->side[side].path[i];
		one.build.naming.inlined = one.build.naming.inlined && x->show.no_inline == NULL;
		rc = add_run(x, side, &one, of, per, err);
	}
	if (!uni_diff_knows_samples(x->d, side))
		x->show.side[side].samples = 0;
	return rc;
}

static int name_part(const struct uni_source_args *args, struct uni_diffing *x, struct uni_err *err)
{
	char text[UNI_PART_TEXT];

	if (!uni_source_part(args, &x->show.only))
		return 0;
	uni_part_text(text, &x->show.only);
	x->show.part = x->part = strdup(text);
	return x->part != NULL ? 0 : uni_err_nomem(err);
}

static bool create_tree(struct uni_diffing *x)
{
	x->tree = uni_profile_create();
	return x->tree != NULL && uni_profile_enable_second(x->tree) == 0;
}

/* Shares of both sides are at the same scale. */
static int finish_tree(struct uni_diffing *x, struct uni_err *err)
{
	uni_profile_scale_first(x->tree);
	return uni_profile_finish(x->tree) == 0 ? 0 : uni_err_nomem(err);
}

int uni_diffing_open(
	const struct uni_diffing_args *args, struct uni_diffing *ret, struct uni_err *err)
{
	const struct uni_diff_of *of = find_kind(args->of, err);
	const size_t nr[UNI_SIDES] = { args->side[UNI_BEFORE].nr, args->side[UNI_AFTER].nr };
	struct uni_diffing x = { 0 };
	struct uni_diff_per per;
	int rc = of != NULL ? uni_diff_per_parse(args->per, &per, err) : -UNI_EUSAGE;

	if (rc == 0 && per.kind == UNI_DIFF_PER_EACH && strcmp(of->name, "time") != 0)
		rc = uni_err_set(
			err, UNI_EUSAGE, "--per call compares times: not with --of %s", of->name);
	if (rc == 0)
		rc = check_per(args, &per, err);
	for (int s = 0; rc == 0 && s < UNI_SIDES; s++)
		rc = uni_given_twice(args->side[s].path, args->side[s].nr, err);
	if (rc != 0)
		return rc;
	x.d = uni_diff_create(nr);
	if (x.d == NULL)
		return uni_err_nomem(err);
	x.show = (struct uni_diff_show){ .d = x.d,
		.of = of->name,
		.whole = of->whole,
		.value = of->value,
		.counted = strcmp(of->value, "s") == 0 ? "time" : of->value };
	if (per.kind == UNI_DIFF_PER_NONE)
		choose_per(args, &per, &x);
	if (per.kind != UNI_DIFF_PER_NONE)
		x.show.per = x.per = name_per(&per);
	if (per.kind != UNI_DIFF_PER_NONE && x.per == NULL)
		rc = uni_err_nomem(err);
	if (rc == 0)
		rc = name_part(&args->src, &x, err);
	/* Otherwise all that is inlined would be new, or gone. */
	if (args->src.build.naming.inlined && find_with_places(args, true) != NULL)
		x.show.no_inline = find_with_places(args, false);
	x.show.inlined = args->src.build.naming.inlined && x.show.no_inline == NULL;
	if (rc == 0 && args->tree && !create_tree(&x))
		rc = uni_err_nomem(err);
	for (int s = 0; rc == 0 && s < UNI_SIDES; s++)
		rc = add_side(&x, (enum uni_side)s, args, of, &per, err);
	if (rc == 0 && x.tree != NULL)
		rc = finish_tree(&x, err);
	if (rc == 0)
		*ret = x;
	else
		uni_diffing_close(&x);
	return rc;
}

void uni_diffing_close(struct uni_diffing *x)
{
	uni_diff_destroy(x->d);
	uni_profile_destroy(x->tree);
	free(x->per);
	free(x->part);
	free(x->whole);
	free(x->kind);
	*x = (struct uni_diffing){ 0 };
}
