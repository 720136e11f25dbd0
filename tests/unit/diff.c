/* SPDX-License-Identifier: BSD-2-Clause */
/* The statistics of `uniscope diff`, against published values and against simulated recordings. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "diff/compare.h"
#include "diff/condition.h"
#include "diff/show.h"
#include "diff_sim.h"

#define CLOSE(a, b, limit) assert_true(fabs((a) - (b)) <= (limit))

/* Student's t as in any table. */
static void test_t(void **state)
{
	(void)state;
	CLOSE(uni_stat_t_tails(12.7062047, 1), 0.05, 1e-8);
	CLOSE(uni_stat_t_tails(2.22813885, 10), 0.05, 1e-8);
	CLOSE(uni_stat_t_tails(-3.64595863, 30), 0.001, 1e-8);
	CLOSE(uni_stat_t_tails(1, 1), 0.5, 1e-12);
	CLOSE(uni_stat_t_tails(1.95996398, INFINITY), 0.05, 1e-8);
	CLOSE(uni_stat_t_tails(0, 5), 1, 1e-12);
	CLOSE(uni_stat_t_tails(INFINITY, 5), 0, 0);
	CLOSE(uni_stat_t_tails(NAN, 5), 1, 0);
	CLOSE(uni_stat_t_limit(0.05, 4), 2.77644511, 1e-7);
	CLOSE(uni_stat_t_limit(0.05, 62), 1.99897152, 1e-7);
	CLOSE(uni_stat_t_limit(0.01, INFINITY), 2.57582930, 1e-7);
}

/* The example in Benjamini and Hochberg (1995): with 5 %, the first four. */
static void test_fdr(void **state)
{
	static const double p[] = { 0.0344, 0.0001, 0.0004, 1.0000, 0.0019, 0.0095, 0.0201, 0.0278,
		0.0298, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590 };
	double q[uni_array_len(p)], weight[uni_array_len(p)];
	size_t nr = 0;

	(void)state;
	assert_int_equal(uni_stat_fdr(p, NULL, uni_array_len(p), q), 0);
	for (size_t i = 0; i < uni_array_len(p); i++) {
		nr += q[i] <= 0.05;
		assert_true((q[i] <= 0.05) == (p[i] <= 0.0095));
		weight[i] = i == 0 ? 100 : 1;
	}
	assert_int_equal(nr, 4);
	CLOSE(q[1], 0.0015, 1e-12);
	CLOSE(q[5], 0.0095 * 15 / 4, 1e-12);
	/* The first is now worth 100 of 114, and comes first. */
	assert_int_equal(uni_stat_fdr(p, weight, uni_array_len(p), q), 0);
	assert_true(q[0] <= 0.05);
	assert_true(q[6] > 0.05);
	assert_int_equal(uni_stat_fdr(p, NULL, 0, q), 0);
}

/* Welch's test of two small samples, worked by hand: means 3 and 6, variances 2.5 and 10 of 5. */
static void test_change(void **state)
{
	static const double x[] = { 1, 2, 3, 4, 5 }, y[] = { 2, 4, 6, 8, 10 },
			    n[] = { 100, 100, 100, 100, 100 };
	static const uint32_t run[] = { 0, 1, 2, 3, 4 };
	const struct uni_blocks a = { x, n, run, 5, 0, 15, 500 }, b = { y, n, run, 5, 0, 30, 500 };
	const struct uni_corr none = { 0 };
	struct uni_change c = uni_stat_change(&a, &b, &none);

	(void)state;
	CLOSE(c.diff, 0.03, 1e-12);
	CLOSE(c.se, sqrt(2.5) / 100, 1e-12);
	CLOSE(c.p, 0.107531192, 1e-8); /* t = 1.8973666, df = 5.88235 */
	CLOSE(c.high - c.diff, 2.45887 * sqrt(2.5) / 100, 1e-6);
	assert_true(c.corr == 0);
	c = uni_stat_change(&a, &a, &none);
	assert_true(c.p == 1 && c.diff == 0);
}

/* Samples without times: the binomial variance. */
static void test_independent(void **state)
{
	const struct uni_blocks a = { .samples = 1000, .sum_x = 300, .sum_n = 1000 };
	const struct uni_blocks b = { .samples = 4000, .sum_x = 14, .sum_n = 40 };
	const struct uni_blocks unknown = { .sum_x = 14, .sum_n = 40 };
	const struct uni_corr none = { 0 };
	struct uni_change c = uni_stat_change(&a, &b, &none);

	(void)state;
	CLOSE(c.diff, 0.05, 1e-12);
	CLOSE(c.se, sqrt(0.3 * 0.7 / 1000 + 0.35 * 0.65 / 4000), 1e-4);
	assert_true(c.p < 0.01);
	assert_true(uni_stat_change(&a, &unknown, &none).p > 0.5);
}

/* Blocks that follow each other closely: the correction makes the interval wider. */
static void test_corr(void **state)
{
	enum { NR = 32 };
	double x[NR], n[NR];
	uint32_t run[NR] = { 0 };
	struct uni_blocks b = { x, n, run, NR, 3200, 0, 3200 };
	struct uni_corr c;
	double se;

	(void)state;
	for (size_t i = 0; i < NR; i++) {
		n[i] = 100;
		x[i] = i / 8 % 2 != 0 ? 60 : 40; /* phases of 8 blocks */
		b.sum_x += x[i];
	}
	c = uni_stat_corr(&b, &b);
	/* 31 neighbours in 3 changes of phase: (31 - 2 * 3) / 32. */
	CLOSE(c.products / c.squares, 25.0 / 32, 1e-12);
	assert_true(uni_stat_change(&b, &b, &c).corr > 0.7);
	se = uni_stat_change(&b, &b, &c).se;
	/* Blocks of different runs are no neighbours. */
	for (size_t i = 0; i < NR; i++)
		run[i] = (uint32_t)i;
	c = uni_stat_corr(&b, &b);
	assert_true(uni_stat_change(&b, &b, &c).corr == 0);
	assert_true(se > 2 * uni_stat_change(&b, &b, &c).se);
}

/* No sample at all on both sides: that is no proof that there is none. */
static void test_few(void **state)
{
	static const double n[] = { 100, 100, 100, 100 };
	static const uint32_t run[] = { 0, 0, 0, 0 };
	const struct uni_blocks none = { NULL, n, run, 4, 400, 0, 400 };
	const struct uni_change c = uni_stat_change(&none, &none, &(struct uni_corr){ 0 });

	(void)state;
	assert_true(c.p == 1);
	assert_true(c.high > 0.005 && c.high < 0.03 && c.low == -c.high);
}

struct side_text {
	const char *stack; /* "a;b" */
	double value;
};

static struct uni_profile *make_profile(const struct side_text *t, enum uni_frame_kind kind)
{
	struct uni_profile *p = uni_profile_create();

	for (; t->stack != NULL; t++) {
		const char *at = t->stack;
		uint32_t frames[8];
		size_t nr = 0;

		for (;;) {
			size_t len = strcspn(at, ";");

			frames[nr++] = uni_profile_frame_named(p, at, len, kind);
			if (at[len] == '\0')
				break;
			at += len + 1;
		}
		assert_int_equal(uni_profile_add(p, frames, nr, t->value, 0), 0);
	}
	assert_int_equal(uni_profile_finish(p), 0);
	return p;
}

static struct uni_diff_sides *make_sides(const struct side_text *before,
	enum uni_frame_kind before_kind, const struct side_text *after)
{
	const size_t runs[UNI_SIDES] = { 1, 1 };
	struct uni_diff_sides *d = uni_diff_create(runs);
	const struct side_text *text[UNI_SIDES] = { before, after };

	for (int s = 0; s < UNI_SIDES; s++) {
		struct uni_profile *p =
			make_profile(text[s], s == UNI_BEFORE ? before_kind : UNI_FK_GUEST);
		const struct uni_diff_run run = { .p = p, .samples = uni_profile_total(p) };

		assert_int_equal(uni_diff_add(d, (enum uni_side)s, &run), 0);
		uni_profile_destroy(p);
	}
	return d;
}

/* Three runs of each side, all alike. */
static struct uni_diff_sides *make_repeated(
	const struct side_text *const text[UNI_SIDES], double samples)
{
	const size_t runs[UNI_SIDES] = { 3, 3 };
	struct uni_diff_sides *d = uni_diff_create(runs);

	for (int i = 0; i < 6; i++) {
		struct uni_profile *p = make_profile(text[i % UNI_SIDES], UNI_FK_GUEST);
		const struct uni_diff_run run = { .p = p, .samples = samples };

		assert_int_equal(uni_diff_add(d, (enum uni_side)(i % UNI_SIDES), &run), 0);
		uni_profile_destroy(p);
	}
	return d;
}

static const struct uni_diff_row *find_row(
	const struct uni_diff_sides *d, const struct uni_diff_result *r, const char *name)
{
	for (size_t i = 0; i < r->nr; i++) {
		if (strcmp(uni_diff_name(d, r->row[i].function), name) == 0)
			return &r->row[i];
	}
	return NULL;
}

static const struct uni_diff_limits usual = { .threshold = 0.01, .tolerance = 0.05 };

/* Runs that agree to the last digit: exact counts are known, shares of samples have their error. */
static void test_repeated(void **state)
{
	static const struct side_text few[] = { { "main;f", 1001 }, { "main;g", 8999 },
		{ NULL, 0 } };
	static const struct side_text many[] = { { "main;f", 7003 }, { "main;g", 8999 },
		{ NULL, 0 } };
	static const double samples[] = { 0, 10000 };
	const struct side_text *const changed[] = { few, many }, *const same[] = { few, few };

	(void)state;
	for (size_t i = 0; i < uni_array_len(samples); i++) {
		struct uni_diff_sides *d = make_repeated(changed, samples[i]);
		const struct uni_diff_row *row;
		struct uni_diff_result r;

		assert_int_equal(uni_diff_compare(d, &usual, &r), 0);
		assert_int_equal(r.verdict, UNI_VERDICT_LARGER);
		row = find_row(d, &r, "f");
		assert_true(row->value[UNI_SELF].changed);
		CLOSE(row->value[UNI_SELF].c.diff, 7003.0 / 16002 - 0.1001, 1e-12);
		assert_true((row->value[UNI_SELF].c.se > 0.001) == (samples[i] > 0));
		uni_diff_result_deinit(&r);
		uni_diff_destroy(d);
		d = make_repeated(same, samples[i]);
		assert_int_equal(uni_diff_compare(d, &usual, &r), 0);
		assert_int_equal(r.verdict, UNI_VERDICT_SAME);
		assert_true((r.bound > 0.001) == (samples[i] > 0));
		uni_diff_result_deinit(&r);
		uni_diff_destroy(d);
	}
}

/* Three sure changes make room for two more with P of 5.5 %, whose intervals hold 0. */
static void test_many(void **state)
{
	static const struct side_text before[] = { { "main;serve;first", 500 },
		{ "main;serve;parse", 3000 }, { "main;serve;gone", 1500 },
		{ "main;serve;same", 3000 }, { "main;idle_x", 2000 }, { NULL, 0 } };
	static const struct side_text after[] = { { "main;serve;first", 1500 },
		{ "main;serve;parse", 6000 }, { "main;serve;new", 1800 },
		{ "main;serve;same", 6000 }, { "main;idle_x", 4000 }, { NULL, 0 } };
	struct uni_diff_sides *d = make_sides(before, UNI_FK_GUEST, after);
	struct uni_diff_result r;

	(void)state;
	assert_int_equal(uni_diff_compare(d, &usual, &r), 0);
	assert_true(find_row(d, &r, "first")->value[UNI_SELF].changed);
	assert_true(find_row(d, &r, "parse")->value[UNI_SELF].c.low < 0);
	assert_true(find_row(d, &r, "parse")->value[UNI_SELF].q < UNI_DIFF_FDR);
	assert_false(find_row(d, &r, "parse")->value[UNI_SELF].changed);
	uni_diff_result_deinit(&r);
	uni_diff_destroy(d);
}

/* Recursion counts once; clones and parts are their function; new and gone ones are found. */
static void test_functions(void **state)
{
	static const struct side_text before[] = { { "main;f;f;g", 5000 },
		{ "main;f.part.0", 1000 }, { "main;old", 4000 }, { NULL, 0 } };
	static const struct side_text after[] = { { "main;f;g.isra.0", 6000 }, { "main;new", 4000 },
		{ NULL, 0 } };
	struct uni_diff_sides *d = make_sides(before, UNI_FK_INLINED, after);
	const struct uni_diff_row *row;
	struct uni_diff_result r;

	(void)state;
	assert_int_equal(uni_diff_compare(d, &usual, &r), 0);
	row = find_row(d, &r, "f");
	assert_non_null(row);
	CLOSE(row->value[UNI_TOTAL].c.before.share, 0.6, 1e-12);
	CLOSE(row->value[UNI_TOTAL].c.after.share, 0.6, 1e-12);
	CLOSE(row->value[UNI_SELF].c.before.share, 0.1, 1e-12);
	assert_true(uni_diff_was_inlined(d, row->function, UNI_BEFORE));
	assert_false(uni_diff_was_inlined(d, row->function, UNI_AFTER));
	row = find_row(d, &r, "g");
	CLOSE(row->value[UNI_SELF].c.diff, 0.1, 1e-12);
	assert_true(row->value[UNI_SELF].changed);
	row = find_row(d, &r, "new");
	assert_true(row->value[UNI_SELF].changed && row->value[UNI_SELF].c.before.share == 0);
	row = find_row(d, &r, "old");
	assert_true(row->value[UNI_SELF].changed && row->value[UNI_SELF].c.after.share == 0);
	assert_false(find_row(d, &r, "main")->value[UNI_TOTAL].changed);
	assert_int_equal(r.verdict, UNI_VERDICT_LARGER);
	assert_int_equal(r.nr_larger, 2);
	uni_diff_result_deinit(&r);
	uni_diff_destroy(d);
}

static enum uni_verdict verdict_of(double a_before, double a_after, double all)
{
	const struct side_text before[] = { { "a", a_before }, { "b", all - a_before },
		{ NULL, 0 } };
	const struct side_text after[] = { { "a", a_after }, { "b", all - a_after }, { NULL, 0 } };
	struct uni_diff_sides *d = make_sides(before, UNI_FK_GUEST, after);
	struct uni_diff_result r;
	enum uni_verdict v;

	assert_int_equal(uni_diff_compare(d, &usual, &r), 0);
	v = r.verdict;
	uni_diff_result_deinit(&r);
	uni_diff_destroy(d);
	return v;
}

static void test_verdicts(void **state)
{
	(void)state;
	assert_int_equal(verdict_of(5000, 5000, 10000), UNI_VERDICT_SAME);
	assert_int_equal(verdict_of(5000, 5500, 10000), UNI_VERDICT_LARGER);
	assert_int_equal(verdict_of(50, 50, 100), UNI_VERDICT_UNSURE);
	assert_int_equal(verdict_of(50, 60, 100), UNI_VERDICT_UNSURE);
	/* Sure, and below the threshold. */
	assert_int_equal(verdict_of(50000000, 50500000, 100000000), UNI_VERDICT_SAME);
}

struct timed_run {
	size_t nr;	   /* samples */
	double work_every; /* samples for a unit of work */
};

/* Samples of two functions in turn, and work at regular times: the whole per unit is known. */
static struct uni_diff_sides *make_work(
	const struct timed_run *before, const struct timed_run *after, size_t runs)
{
	static const struct side_text stacks[] = { { "a", 1 }, { "b", 1 }, { NULL, 0 } };
	const size_t nr_runs[UNI_SIDES] = { runs, runs };
	struct uni_diff_sides *d = uni_diff_create(nr_runs);

	for (size_t i = 0; i < UNI_SIDES * runs; i++) {
		const struct timed_run *t = i < runs ? &before[i] : &after[i - runs];
		struct uni_profile *p = make_profile(stacks, UNI_FK_GUEST);
		size_t nr_work = (size_t)((double)t->nr / t->work_every);
		struct uni_diff_entry *entry = calloc(t->nr, sizeof(*entry));
		struct uni_diff_work *work = calloc(nr_work, sizeof(*work));
		struct uni_diff_run run = { .p = p,
			.entry = entry,
			.nr = t->nr,
			.samples = (double)t->nr,
			.work = work,
			.nr_work = nr_work,
			.scale = 0.01 };

		for (size_t k = 0; k < t->nr; k++)
			entry[k] = (struct uni_diff_entry){
				.node = (uint32_t)(1 + k % 2), .value = 1, .t_ns = 1000 * k
			};
		for (size_t k = 0; k < nr_work; k++)
			work[k] = (struct uni_diff_work){
				.t_ns = (uint64_t)(1000 * t->work_every * (double)k), .units = 1
			};
		assert_int_equal(uni_diff_add(d, i < runs ? UNI_BEFORE : UNI_AFTER, &run), 0);
		uni_profile_destroy(p);
		free(entry);
		free(work);
	}
	return d;
}

/* Known work: the whole can grow, and so does each function in what the whole was. */
static void test_work(void **state)
{
	static const struct timed_run four = { 3200, 4 }, five = { 3200, 5 };
	const struct uni_diff_row *row;
	struct uni_diff_sides *d = make_work(&four, &five, 1);
	struct uni_condition grows, less;
	struct uni_diff_result r;

	(void)state;
	assert_true(uni_diff_has_work(d));
	CLOSE(uni_diff_work_value(d), 0.04, 1e-9);
	CLOSE(uni_diff_work_units(d, UNI_AFTER), 640, 1e-9);
	assert_int_equal(uni_diff_compare(d, &usual, &r), 0);
	assert_int_equal(r.verdict, UNI_VERDICT_SLOWER);
	CLOSE(r.whole.c.diff, 0.25, 1e-9);
	assert_true(r.whole.c.low > 0.2 && r.whole.c.high < 0.3);
	row = find_row(d, &r, "a");
	CLOSE(row->value[UNI_SELF].c.before.share, 0.5, 1e-9);
	CLOSE(row->value[UNI_SELF].c.after.share, 0.625, 1e-9);
	assert_true(row->value[UNI_SELF].changed);
	assert_int_equal(uni_condition_parse("total +20%", &usual, &grows, NULL), 0);
	assert_int_equal(uni_condition_parse("total +40%", &usual, &less, NULL), 0);
	uni_condition_judge(&grows, d, &r);
	uni_condition_judge(&less, d, &r);
	assert_int_equal(grows.result, UNI_CONDITION_FAILED);
	assert_int_equal(less.result, UNI_CONDITION_PASSED);
	uni_diff_result_deinit(&r);
	uni_diff_destroy(d);
	d = make_work(&five, &four, 1);
	assert_int_equal(uni_diff_compare(d, &usual, &r), 0);
	assert_int_equal(r.verdict, UNI_VERDICT_FASTER);
	CLOSE(r.whole.c.diff, -0.2, 1e-9);
	uni_diff_result_deinit(&r);
	uni_diff_destroy(d);
	d = make_work(&four, &four, 1);
	assert_int_equal(uni_diff_compare(d, &usual, &r), 0);
	assert_int_equal(r.verdict, UNI_VERDICT_SAME);
	uni_diff_result_deinit(&r);
	uni_diff_destroy(d);
}

/* Runs as they are: the total of each varies, and only that says what chance does. */
static void test_work_of_runs(void **state)
{
	static const struct timed_run before[] = { { 1000, 1000 }, { 1020, 1020 }, { 980, 980 } };
	static const struct timed_run near[] = { { 1010, 1010 }, { 1040, 1040 }, { 970, 970 } };
	static const struct timed_run far[] = { { 1200, 1200 }, { 1230, 1230 }, { 1170, 1170 } };
	struct uni_diff_sides *d = make_work(before, near, 3);
	struct uni_diff_result r;

	(void)state;
	assert_int_equal(uni_diff_compare(d, &usual, &r), 0);
	assert_int_equal(r.verdict, UNI_VERDICT_UNSURE);
	CLOSE(r.whole.c.diff, 0.02 / 3, 1e-3);
	assert_true(r.whole.c.low < 0 && r.whole.c.high > 0.05);
	uni_diff_result_deinit(&r);
	uni_diff_destroy(d);
	d = make_work(before, far, 3);
	assert_int_equal(uni_diff_compare(d, &usual, &r), 0);
	assert_int_equal(r.verdict, UNI_VERDICT_SLOWER);
	CLOSE(r.whole.c.diff, 0.2, 1e-9);
	uni_diff_result_deinit(&r);
	uni_diff_destroy(d);
}

/* Fieller's example, worked by hand: 11 / 10, variances 0.25 and 1, t = 2. */
static void test_relative(void **state)
{
	struct uni_change c = { .before = { 10, 1, 10 },
		.after = { 11, 0.25, 10 },
		.diff = 1,
		.se = sqrt(1.25),
		.high = 1 + 2 * sqrt(1.25) };

	(void)state;
	uni_stat_relative(&c);
	/* 96 r^2 - 220 r + 120 = 0 */
	CLOSE(c.diff, 0.1, 1e-12);
	CLOSE(c.low, (220 - sqrt(220.0 * 220 - 4 * 96 * 120)) / 192 - 1, 1e-12);
	CLOSE(c.high, (220 + sqrt(220.0 * 220 - 4 * 96 * 120)) / 192 - 1, 1e-12);
	/* Nothing known of the size before: no upper end. */
	c = (struct uni_change){
		.before = { 1, 1, 10 }, .after = { 1, 1, 10 }, .se = sqrt(2), .high = 2 * sqrt(2)
	};
	uni_stat_relative(&c);
	assert_true(isinf(c.high) && c.low == -1);
}

/* Simulated pairs: what is measured over many of them in bench/diff.c, for a few. */
static void test_simulated(void **state)
{
	struct diff_sim_counts c;

	(void)state;
	diff_sim_run(
		&(struct diff_sim){ .samples = 2000, .slower = 1, .hold = 0.2, .pairs = 300 }, &c);
	assert_in_range(c.coverage * 1000 / c.intervals, 930, 975);
	assert_in_range(c.different, 0, 300 * 6 / 100);
	diff_sim_run(
		&(struct diff_sim){ .samples = 2000, .slower = 1, .hold = 5, .pairs = 300 }, &c);
	assert_in_range(c.coverage * 1000 / c.intervals, 930, 975);
	assert_in_range(c.different, 0, 300 * 7 / 100);
	diff_sim_run(
		&(struct diff_sim){ .samples = 5000, .slower = 1.2, .hold = 0.2, .pairs = 100 },
		&c);
	assert_in_range(c.found, 93, 100);
	diff_sim_run(
		&(struct diff_sim){
			.samples = 5000, .slower = 1, .hold = 0.2, .runs = 5, .pairs = 100 },
		&c);
	assert_in_range(c.coverage * 1000 / c.intervals, 930, 980);
}

/* Ten phases in a recording: that is too little to tell a change from a phase. */
static void test_simulated_phases(void **state)
{
	struct diff_sim_counts c;

	(void)state;
	diff_sim_run(
		&(struct diff_sim){ .samples = 5000, .slower = 1, .hold = 500, .pairs = 300 }, &c);
	assert_in_range(c.coverage * 1000 / c.intervals, 960, 1000);
	assert_in_range(c.different, 0, 300 * 6 / 100);
	assert_in_range(c.unsure, 300 * 93 / 100, 300);
}

/* A guest that repeats itself within a few blocks: its intervals are not wider for that. */
static void test_simulated_rounds(void **state)
{
	struct diff_sim_counts c;

	(void)state;
	diff_sim_run(
		&(struct diff_sim){
			.samples = 5000, .slower = 1, .hold = 1, .round = 60, .pairs = 200 },
		&c);
	assert_in_range(c.coverage * 1000 / c.intervals, 935, 975);
	assert_in_range(c.different, 0, 200 * 6 / 100);
	assert_int_equal(c.unsure, 0);
	diff_sim_run(
		&(struct diff_sim){
			.samples = 5000, .slower = 1, .hold = 1, .round = 100, .pairs = 200 },
		&c);
	assert_in_range(c.unsure, 0, 200 * 20 / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_t),
		cmocka_unit_test(test_fdr),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_independent),
		cmocka_unit_test(test_corr),
		cmocka_unit_test(test_few),
		cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_work),
		cmocka_unit_test(test_work_of_runs),
		cmocka_unit_test(test_relative),
		cmocka_unit_test(test_simulated),
		cmocka_unit_test(test_simulated_phases),
		cmocka_unit_test(test_simulated_rounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
