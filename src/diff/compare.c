/* SPDX-License-Identifier: BSD-2-Clause */
#include "diff/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Part of the error budget for self values; totals mostly repeat what their callees say. */
#define SELF_BUDGET 0.8
/* The time of known work is one test among those of all functions, with this part of the budget. */
#define WHOLE_BUDGET 0.3
/* "The same" is found with a probability of 90 %: normal quantiles of 97.5 % and 95 %. */
#define SAME_SE (1.960 + 1.645)

/* Correlations of a run with a phase of its own at its begin, and of the rest. */
#define PHASE_CORR 0.4
#define REST_CORR  0.2
#define PHASE_STEP 4 /* blocks */

/* A change is found with a probability of 90 %, at this part of the error budget. Few runs know
 * their own spread badly, so a third more of them. */
#define CHANGE_SE (2.43 + 1.28)
#define MORE_MIN  1.34

struct test {
	size_t row;
	enum uni_column column;
};

struct comparing {
	const struct uni_diff_sides *d;
	const struct uni_diff_limits *limits;
	struct uni_diff_result *r;
	struct uni_corr corr;
};

static bool is_change_possible(const struct comparing *c, const struct uni_change *v)
{
	/* Any part of a call can be more or less. */
	if (uni_diff_is_each(c->d))
		return true;
	/* A change of t from a to b makes (a + b) / 2 at least t / 2. */
	return (v->before.share + v->after.share) / 2 >= c->limits->threshold / 2;
}

static void pool_corr(struct comparing *c)
{
	/* The correlation of one function's calls says nothing of another one's. */
	if (uni_diff_is_each(c->d))
		return;
	for (size_t f = 0; f < uni_diff_nr_functions(c->d); f++) {
		const struct uni_blocks before = uni_diff_blocks(c->d, f, UNI_BEFORE, UNI_SELF);
		const struct uni_blocks after = uni_diff_blocks(c->d, f, UNI_AFTER, UNI_SELF);
		const struct uni_corr one = uni_stat_corr(&before, &after);

		uni_stat_corr_add(&c->corr, &one);
	}
}

/* A share without an error is known if several runs agree on it. */
static bool is_known(
	const struct uni_change *v, const struct uni_blocks *before, const struct uni_blocks *after)
{
	return v->se > 0 || (before->nr > 1 && after->nr > 1);
}

static bool is_repeated(const struct uni_diff_row *row)
{
	const struct uni_change *s = &row->value[UNI_SELF].c, *t = &row->value[UNI_TOTAL].c;

	return s->before.share == t->before.share && s->after.share == t->after.share;
}

/* A share is at most 1, and so is what it can have moved by. */
static void limit_to_shares(struct uni_change *c)
{
	c->low = fmax(c->low, -1);
	c->high = fmin(c->high, 1);
}

/*
 * A trace cannot tell which calls had the time that the host took, and shorter ones than those that
 * were measured fit, too. So the intervals hold all of that.
 */
static void widen_by_stolen(const struct comparing *c, struct uni_change *v, bool relative)
{
	const double *stolen = c->limits->stolen;
	double before = 1 - fmin(stolen[UNI_BEFORE], 1), after = 1 - fmin(stolen[UNI_AFTER], 1);
	double more;

	if (before == 1 && after == 1)
		return;
	if (relative) {
		v->low = (1 + v->low) * after - 1;
		v->high = before > 0 ? (1 + v->high) / before - 1 : INFINITY;
		return;
	}
	more = v->after.share * (1 / after - 1) + v->before.share * (1 / before - 1);
	v->low -= more;
	v->high += more;
}

/* The change as a part of what a call took before. */
static void make_relative(
	struct uni_diff_value *v, const struct uni_blocks *before, const struct uni_blocks *after)
{
	v->tested = v->tested && v->c.se > 0 && before->nr != 0 && after->nr != 0 &&
		    v->c.before.share > 0;
	if (v->tested) {
		uni_stat_relative(&v->c);
		return;
	}
	v->c.diff = v->c.before.share > 0 ? v->c.after.share / v->c.before.share - 1 : 0;
	v->c.low = -1;
	v->c.high = INFINITY;
	v->c.p = 1;
}

static void row_add(struct comparing *c, size_t function)
{
	struct uni_diff_row row = { .function = function };
	bool synthetic = uni_diff_is_synthetic(c->d, function);
	double sum = 0;

	for (int col = 0; col < UNI_COLUMNS; col++) {
		struct uni_diff_value *v = &row.value[col];
		const struct uni_blocks before =
			uni_diff_blocks(c->d, function, UNI_BEFORE, (enum uni_column)col);
		const struct uni_blocks after =
			uni_diff_blocks(c->d, function, UNI_AFTER, (enum uni_column)col);

		v->c = uni_stat_change(&before, &after, &c->corr);
		v->q = 1;
		v->tested = is_change_possible(c, &v->c) && is_known(&v->c, &before, &after);
		if (uni_diff_is_each(c->d))
			make_relative(v, &before, &after);
		widen_by_stolen(c, &v->c, uni_diff_is_each(c->d));
		if (!uni_diff_is_each(c->d) && !uni_diff_has_work(c->d))
			limit_to_shares(&v->c);
		sum += v->c.before.share + v->c.after.share;
		if (synthetic && col == UNI_SELF && before.sum_x == 0 && after.sum_x == 0)
			return;
	}
	row.value[UNI_TOTAL].tested =
		row.value[UNI_TOTAL].tested && !synthetic && !is_repeated(&row);
	if (sum > 0)
		c->r->row[c->r->nr++] = row;
}

/*
 * How much of the error budget a test gets. A function that becomes slower by a certain part moves
 * its z by the root of its share. So large ones are given more than small ones.
 */
static double test_weight(const struct comparing *c, const struct uni_change *v)
{
	double share = uni_diff_is_each(c->d) ? 0.5 : (v->before.share + v->after.share) / 2;
	/* A part of known work has no complement. */
	double least = fmax(c->r->has_work ? share : fmin(share, 1 - share), 0);

	return least * least * sqrt(least);
}

static void whole_add(struct comparing *c)
{
	const struct uni_blocks before = uni_diff_whole(c->d, UNI_BEFORE),
				after = uni_diff_whole(c->d, UNI_AFTER);
	const struct uni_corr own = uni_stat_corr(&before, &after);
	struct uni_diff_value *v = &c->r->whole;

	v->q = 1;
	c->r->has_work = uni_diff_has_work(c->d);
	c->r->each = uni_diff_is_each(c->d);
	if (!c->r->has_work)
		return;
	v->c = uni_stat_change(&before, &after, &own);
	v->tested = is_known(&v->c, &before, &after);
	uni_stat_relative(&v->c);
	widen_by_stolen(c, &v->c, true);
}

/* Weights of functions add up to what the whole leaves; the whole's is the last. */
static void spread_weights(const struct comparing *c, const struct test *test, double *w, size_t nr,
	const double sum[UNI_COLUMNS])
{
	double rest = c->r->whole.tested ? 1 - WHOLE_BUDGET : 1;

	for (size_t i = 0; i < nr; i++) {
		double of_column = test[i].column == UNI_SELF ? SELF_BUDGET : 1 - SELF_BUDGET;

		w[i] *= sum[test[i].column] > 0 ? rest * of_column / sum[test[i].column] : 0;
	}
	w[nr] = WHOLE_BUDGET;
}

/* Among many discoveries, one may have an interval that holds 0, and a part of what was before may
 * have no limit: these are not sure. */
static void take_q(struct comparing *c, struct uni_diff_value *v, double q)
{
	v->q = q;
	v->changed = q <= UNI_DIFF_FDR && fabs(v->c.diff) >= c->limits->threshold &&
		     (v->c.low > 0 || v->c.high < 0);
}

static int test_all(struct comparing *c)
{
	size_t most = c->r->nr * UNI_COLUMNS, nr = 0;
	_cleanup_free_ struct test *test = calloc(most + 1, sizeof(*test));
	_cleanup_free_ double *p = calloc(most + 1, sizeof(*p)), *w = calloc(most + 1, sizeof(*w)),
			      *q = calloc(most + 1, sizeof(*q));
	double sum[UNI_COLUMNS] = { 0 };

	if (test == NULL || p == NULL || w == NULL || q == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < most; i++) {
		const struct test t = { i / UNI_COLUMNS, (enum uni_column)(i % UNI_COLUMNS) };
		const struct uni_diff_value *v = &c->r->row[t.row].value[t.column];

		if (!v->tested)
			continue;
		test[nr] = t;
		p[nr] = v->c.p;
		w[nr] = test_weight(c, &v->c);
		sum[t.column] += w[nr++];
	}
	spread_weights(c, test, w, nr, sum);
	p[nr] = c->r->whole.c.p;
	if (uni_stat_fdr(p, w, nr + c->r->whole.tested, q) != 0)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < nr; i++)
		take_q(c, &c->r->row[test[i].row].value[test[i].column], q[i]);
	if (c->r->whole.tested)
		take_q(c, &c->r->whole, q[nr]);
	return 0;
}

enum uni_column uni_diff_main_column(const struct uni_diff_row *row)
{
	return row->value[UNI_TOTAL].changed && !row->value[UNI_SELF].changed ? UNI_TOTAL
									      : UNI_SELF;
}

static bool is_changed(const struct uni_diff_row *row)
{
	return row->value[UNI_SELF].changed || row->value[UNI_TOTAL].changed;
}

static int row_cmp(const void *a, const void *b)
{
	const struct uni_diff_row *x = a, *y = b;
	const struct uni_diff_value *v = &x->value[uni_diff_main_column(x)],
				    *w = &y->value[uni_diff_main_column(y)];

	if (is_changed(x) != is_changed(y))
		return is_changed(x) ? -1 : 1;
	if (fabs(v->c.diff) != fabs(w->c.diff))
		return fabs(v->c.diff) > fabs(w->c.diff) ? -1 : 1;
	if (uni_diff_main_column(x) != uni_diff_main_column(y))
		return uni_diff_main_column(x) == UNI_SELF ? -1 : 1;
	return (x->function > y->function) - (x->function < y->function);
}

static double bound_of(const struct uni_change *v)
{
	return fmax(fabs(v->low), fabs(v->high));
}

/* Standard error of a relative change. */
static double relative_se(const struct uni_change *v)
{
	return v->before.share > 0 ? v->se / v->before.share : 0;
}

static void find_bound(struct comparing *c)
{
	struct uni_diff_result *r = c->r;
	bool each = uni_diff_is_each(c->d);
	double se = r->has_work ? r->whole.c.se : 0;

	r->bound_row = r->nr;
	if (r->has_work) {
		/* The whole alone decides whether it is the same: functions are parts of it. */
		r->bound = bound_of(&r->whole.c);
		r->more = fmax(1.1, pow(se * SAME_SE / c->limits->tolerance, 2));
		/* It is most likely a change: so many would show that. */
		if (r->whole.c.low > 0 || r->whole.c.high < 0)
			r->more = fmin(
				r->more, fmax(MORE_MIN, pow(se * CHANGE_SE / r->whole.c.diff, 2)));
		return;
	}
	for (size_t i = 0; i < r->nr; i++) {
		const struct uni_change *v = &r->row[i].value[UNI_SELF].c;
		double bound = bound_of(v);

		if (!r->row[i].value[UNI_SELF].tested)
			continue;
		se = fmax(se, each ? relative_se(v) : v->se);
		if (r->bound_row == r->nr || bound > r->bound) {
			r->bound = bound;
			r->bound_row = i;
		}
	}
	if (se > 0)
		r->more = fmax(1.1, pow(se * SAME_SE / c->limits->tolerance, 2));
}

/* The row with the largest change in that direction; self values come before totals. */
static size_t find_largest(const struct uni_diff_result *r, bool larger)
{
	size_t total = r->nr;

	for (size_t i = r->nr_changed; i-- != 0;) {
		enum uni_column col = uni_diff_main_column(&r->row[i]);

		if ((r->row[i].value[col].c.diff > 0) == larger && col == UNI_TOTAL)
			total = i;
	}
	for (size_t i = 0; i < r->nr_changed; i++) {
		if (r->row[i].value[UNI_SELF].changed &&
			(r->row[i].value[UNI_SELF].c.diff > 0) == larger)
			return i;
	}
	return total;
}

static void find_verdict(struct comparing *c)
{
	struct uni_diff_result *r = c->r;
	bool each = uni_diff_is_each(c->d);

	for (size_t i = 0; i < r->nr && is_changed(&r->row[i]); i++) {
		const struct uni_diff_row *row = &r->row[i];
		bool larger = row->value[uni_diff_main_column(row)].c.diff > 0;

		r->nr_changed++;
		r->nr_larger += larger;
		r->nr_smaller += !larger;
	}
	find_bound(c);
	r->main_row = find_largest(r, r->nr_larger != 0);
	if (r->whole.changed)
		r->verdict = r->whole.c.diff > 0 ? UNI_VERDICT_SLOWER : UNI_VERDICT_FASTER;
	else if (r->nr_larger != 0)
		r->verdict = each ? UNI_VERDICT_SLOWER : UNI_VERDICT_LARGER;
	else if (r->nr_changed != 0)
		r->verdict = each ? UNI_VERDICT_FASTER : UNI_VERDICT_SMALLER;
	else
		r->verdict =
			r->bound <= c->limits->tolerance && (r->has_work || r->bound_row < r->nr)
				? UNI_VERDICT_SAME
				: UNI_VERDICT_UNSURE;
}

/* The blocks from there on. */
static struct uni_blocks blocks_from(const struct uni_blocks *all, size_t first)
{
	struct uni_blocks b = *all;

	b.n += first;
	b.run += first;
	b.nr -= first;
	b.sum_x = b.sum_n = 0;
	if (b.x != NULL)
		b.x += first;
	for (size_t i = 0; i < b.nr; i++) {
		b.sum_x += b.x != NULL ? b.x[i] : 0;
		b.sum_n += b.n[i];
	}
	return b;
}

static struct uni_corr corr_from(const struct uni_diff_sides *d, enum uni_side side, size_t first)
{
	const struct uni_blocks none = { 0 };
	struct uni_corr sum = { 0 };

	for (size_t f = 0; f < uni_diff_nr_functions(d); f++) {
		const struct uni_blocks all = uni_diff_blocks(d, f, side, UNI_SELF);
		const struct uni_blocks b = blocks_from(&all, first);
		const struct uni_corr one = uni_stat_corr(&b, &none);

		uni_stat_corr_add(&sum, &one);
	}
	return sum;
}

static double corr_of(const struct uni_corr *c)
{
	return c->squares > 0 ? c->products / c->squares : 0;
}

/*
 * A boot correlates neighbouring blocks, and the rest does not. It ends where the rest has the
 * least standard error (MSER, White 1997), at most in the middle.
 */
static double find_phase(const struct uni_diff_sides *d, enum uni_side side)
{
	size_t nr = uni_diff_whole(d, side).nr, end = 0;
	struct uni_corr least = corr_from(d, side, 0);

	if (nr < UNI_DIFF_BLOCKS || corr_of(&least) < PHASE_CORR)
		return 0;
	for (size_t first = PHASE_STEP; first <= nr / 2; first += PHASE_STEP) {
		const struct uni_corr rest = corr_from(d, side, first);

		if (rest.squares >= least.squares)
			continue;
		least = rest;
		end = first;
	}
	return corr_of(&least) < REST_CORR ? (double)end / (double)nr : 0;
}

int uni_diff_compare(const struct uni_diff_sides *d, const struct uni_diff_limits *limits,
	struct uni_diff_result *ret)
{
	struct uni_diff_result r = { 0 };
	struct comparing c = { .d = d, .limits = limits, .r = &r };

	r.row = calloc(uni_diff_nr_functions(d) + 1, sizeof(*r.row));
	if (r.row == NULL)
		return -UNI_ENOMEM;
	pool_corr(&c);
	for (size_t f = 0; f < uni_diff_nr_functions(d); f++)
		row_add(&c, f);
	whole_add(&c);
	if (test_all(&c) != 0) {
		uni_diff_result_deinit(&r);
		return -UNI_ENOMEM;
	}
	qsort(r.row, r.nr, sizeof(*r.row), row_cmp);
	r.corr = c.corr.squares > 0 ? c.corr.products / c.corr.squares : 0;
	find_verdict(&c);
	for (int s = 0; r.verdict == UNI_VERDICT_UNSURE && !r.each && s < UNI_SIDES; s++)
		r.phase[s] = find_phase(d, (enum uni_side)s);
	*ret = r;
	return 0;
}

int8_t *uni_diff_sure_frames(const struct uni_diff_sides *d, const struct uni_diff_result *r,
	const struct uni_profile *p)
{
	size_t nr = uni_profile_nr_frames(p), nr_functions = uni_diff_nr_functions(d);
	_cleanup_free_ int8_t *sure = calloc(nr_functions + 1, 1);
	int8_t *ret = calloc(nr + 1, 1);

	for (size_t i = 0; sure != NULL && i < r->nr_changed; i++) {
		const struct uni_diff_row *row = &r->row[i];

		sure[row->function] = row->value[uni_diff_main_column(row)].c.diff > 0 ? 1 : -1;
	}
	if (sure == NULL || ret == NULL) {
		free(ret);
		return NULL;
	}
	for (size_t i = 0; i < nr; i++)
		ret[i] = sure[uni_diff_function_of(d, p, (uint32_t)i)];
	return ret;
}

void uni_diff_result_deinit(struct uni_diff_result *r)
{
	free(r->row);
	*r = (struct uni_diff_result){ 0 };
}
