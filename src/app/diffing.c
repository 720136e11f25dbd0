/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/diffing.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/vec.h"

/* The values that are compared. */
static const struct kind {
	const char *name, *whole, *unit;
	bool all_time, off_cpu;
	const char *exits;
} kinds[] = {
	{ "time", "the guest's time on a CPU", "samples", false, false, NULL },
	{ "wall", "all time of all vCPUs", "samples", true, false, NULL },
	{ "waiting", "the threads' waiting", "samples", false, true, NULL },
	{ "exits", "all VM exits", "exits", false, false, "count" },
};

struct collecting {
	UNI_VEC(struct uni_diff_entry) entries;
};

static int collect_node(struct collecting *c, uint32_t node, uint64_t weight)
{
	const struct uni_diff_entry e = { .node = node, .value = (double)weight };

	return uni_vec_push(&c->entries, e) ? 0 : -UNI_ENOMEM;
}

static int collect_sample(void *ctx, const struct uni_sample *s, uint32_t node)
{
	return collect_node(ctx, node, s->weight);
}

static int collect_exit(void *ctx, const struct uni_stream_exit *e, uint32_t node)
{
	return collect_node(ctx, node, e->weight);
}

static const struct kind *find_kind(const char *of, struct uni_err *err)
{
	for (size_t i = 0; i < uni_array_len(kinds); i++) {
		if (of == NULL || strcmp(kinds[i].name, of) == 0)
			return &kinds[i];
	}
	(void)uni_err_set(err, UNI_EUSAGE, "--of %s: it is one of " UNI_DIFFING_OF, of);
	return NULL;
}

static double gcd_of(double a, double b)
{
	while (b != 0) {
		double rest = fmod(a, b);

		a = b;
		b = rest;
	}
	return a;
}

/*
 * The number of samples behind values without times. Values in nanoseconds are multiples of the
 * period of the profiler. 0: there is no such period.
 */
static double count_samples(const struct uni_profile *p)
{
	double period = 0, sum = uni_profile_total(p);

	if (strcmp(uni_profile_unit(p), "samples") == 0)
		return sum;
	for (size_t i = 0; i < uni_profile_nr_nodes(p); i++) {
		double self = uni_profile_node(p, (uint32_t)i)->self;

		if (self != floor(self) || fabs(self) > 0x1p53)
			return 0;
		period = gcd_of(fabs(self), period);
	}
	/* With one stack or none, any number would be the period. */
	return period > 1 && uni_profile_nr_nodes(p) > 2 && sum / period > 1 ? sum / period : 0;
}

static double seconds_of(const struct uni_source *s)
{
	const struct uni_record_stats *st = s->rec != NULL ? uni_recording_stats(s->rec) : NULL;

	return st != NULL && st->end_ns > st->begin_ns ? (double)(st->end_ns - st->begin_ns) / 1e9
						       : 0;
}

static int check_profile(const struct uni_source *s, const struct uni_source_args *args,
	const struct kind *k, struct uni_err *err)
{
	if (uni_source_is_trace(s))
		return uni_err_set(err, UNI_ENOTSUP,
			"%s holds a function trace, and no samples: compare its calls with "
			"`uniscope export --calls --before`",
			args->path);
	if (uni_profile_total(s->profile) > 0)
		return 0;
	return uni_err_set(
		err, UNI_ENOENT, "%s holds nothing of %s to compare", args->path, k->whole);
}

static int add_run(struct uni_diffing *x, enum uni_side side, const struct uni_source_args *from,
	const struct kind *k, struct uni_err *err)
{
	struct collecting c = { 0 };
	const struct uni_build_watch watch = {
		.ctx = &c, .sample = collect_sample, .exit = collect_exit
	};
	struct uni_source_args args = *from;
	struct uni_diff_run run = { 0 };
	struct uni_source s;
	bool timed;
	int rc;

	args.build.watch = &watch;
	rc = uni_source_open(&args, &s, err);
	if (rc == 0 && (rc = check_profile(&s, &args, k, err)) == 0) {
		timed = s.rec != NULL && !uni_recording_meta(s.rec)->aggregate;
		run = (struct uni_diff_run){ .p = s.profile,
			.entry = timed ? c.entries.v : NULL,
			.nr = c.entries.nr,
			.samples = timed ? (double)c.entries.nr : count_samples(s.profile) };
		if (uni_diff_add(x->d, side, &run) != 0)
			rc = uni_err_nomem(err);
		x->show.side[side].samples += run.samples;
		x->show.side[side].seconds += seconds_of(&s);
	}
	if (s.profile != NULL || s.rec != NULL)
		uni_source_close(&s);
	uni_vec_free(&c.entries);
	return rc;
}

static void choose_values(struct uni_source_args *args, const struct kind *k)
{
	args->all_time = k->all_time;
	args->off_cpu = k->off_cpu;
	args->exits = k->exits;
	args->quiet = true;
}

int uni_diffing_open(
	const struct uni_diffing_args *args, struct uni_diffing *ret, struct uni_err *err)
{
	const struct kind *k = find_kind(args->of, err);
	const size_t nr[UNI_SIDES] = { args->side[UNI_BEFORE].nr, args->side[UNI_AFTER].nr };
	struct uni_diffing x = { 0 };
	int rc = 0;

	if (k == NULL)
		return -UNI_EUSAGE;
	x.d = uni_diff_create(nr);
	if (x.d == NULL)
		return uni_err_nomem(err);
	x.show = (struct uni_diff_show){ .d = x.d, .of = k->name, .whole = k->whole };
	for (int s = 0; rc == 0 && s < UNI_SIDES; s++) {
		x.show.side[s] = (struct uni_diff_side_info){
			.path = args->side[s].path, .nr = nr[s], .unit = k->unit
		};
		for (size_t i = 0; rc == 0 && i < nr[s]; i++) {
			struct uni_source_args one = args->src;

			one.path = args->side[s].path[i];
			choose_values(&one, k);
			rc = add_run(&x, (enum uni_side)s, &one, k, err);
		}
		if (!uni_diff_knows_samples(x.d, (enum uni_side)s))
			x.show.side[s].samples = 0;
	}
	if (rc == 0)
		*ret = x;
	else
		uni_diffing_close(&x);
	return rc;
}

void uni_diffing_close(struct uni_diffing *x)
{
	uni_diff_destroy(x->d);
	x->d = NULL;
}
