/* SPDX-License-Identifier: BSD-2-Clause */
#include "diff/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"

#define FEW_SAMPLES 30.0 /* of a function: fewer have a floor under their variance */
#define CORR_MAX    0.8
#define PHASES	    6 /* of a recording: fewer tell nothing of their spread */
#define PAIRS_MIN   4
#define FINE_MIN    64	  /* so many blocks are enough to look at slow changes alone */
#define FINE	    4	  /* of them make a block whose neighbours may correlate */
#define CLEARLY	    2	  /* standard errors */
#define TAILS	    0.05  /* outside of the interval */
#define NONE	    1e-26 /* a variance that is the rounding of doubles */

/* Continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), h;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	h = d;
	for (int m = 1; m <= 500; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		h *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		step = d * c;
		h *= step;
		if (fabs(step - 1) < 1e-14)
			break;
	}
	return h;
}

/* Regularized incomplete beta function. */
static double beta_share(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double uni_stat_t_tails(double t, double df)
{
	if (isnan(t) || !(df > 0))
		return 1;
	if (isinf(t))
		return 0;
	if (df > 1e7)
		return erfc(fabs(t) / M_SQRT2);
	return beta_share(df / 2, 0.5, df / (df + t * t));
}

double uni_stat_t_limit(double tails, double df)
{
	double low = 0, high = 1;

	while (uni_stat_t_tails(high, df) > tails && high < 1e12)
		high *= 2;
	for (int i = 0; i < 200 && high - low > 1e-12 * high; i++) {
		double middle = (low + high) / 2;

		if (uni_stat_t_tails(middle, df) > tails)
			low = middle;
		else
			high = middle;
	}
	return high;
}

struct ranked {
	double p;
	size_t at;
};

static int ranked_cmp(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->p != y->p)
		return x->p < y->p ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

int uni_stat_fdr(const double *p, const double *weight, size_t nr, double *q)
{
	_cleanup_free_ struct ranked *r = calloc(nr + 1, sizeof(*r));
	double sum = 0, least = 1;

	if (r == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < nr; i++)
		sum += weight != NULL ? weight[i] : 1;
	for (size_t i = 0; i < nr; i++) {
		double w = (weight != NULL ? weight[i] : 1) * (double)nr / sum;

		r[i] = (struct ranked){ .p = w > 0 ? p[i] / w : INFINITY, .at = i };
	}
	qsort(r, nr, sizeof(*r), ranked_cmp);
	for (size_t i = nr; i-- != 0;) {
		least = fmin(least, r[i].p * (double)nr / (double)(i + 1));
		q[r[i].at] = least;
	}
	return 0;
}

static double block_rest(const struct uni_blocks *b, double share, size_t i)
{
	return (b->x != NULL ? b->x[i] : 0) - share * b->n[i];
}

static double share_of(const struct uni_blocks *b)
{
	return b->sum_n > 0 ? b->sum_x / b->sum_n : 0;
}

static void corr_add_side(struct uni_corr *c, const struct uni_blocks *b)
{
	double share = share_of(b), scale = b->sum_n > 0 ? 1 / b->sum_n : 0, before = 0;
	size_t fine = b->nr >= FINE_MIN ? FINE : 1;

	for (size_t i = 0; i + fine <= b->nr; i += fine) {
		double rest = 0;

		for (size_t k = i; k < i + fine; k++)
			rest += block_rest(b, share, k) * scale;
		if (i != 0 && b->run[i + fine - 1] == b->run[i - fine]) {
			c->products += rest * before;
			c->pairs++;
		}
		c->squares += rest * rest;
		before = rest;
	}
}

struct uni_corr uni_stat_corr(const struct uni_blocks *before, const struct uni_blocks *after)
{
	struct uni_corr c = { 0 };

	corr_add_side(&c, before);
	corr_add_side(&c, after);
	c.pairs /= 2; /* each side has a mean of its own */
	return c;
}

void uni_stat_corr_add(struct uni_corr *sum, const struct uni_corr *one)
{
	sum->products += one->products;
	sum->squares += one->squares;
	sum->pairs = fmax(sum->pairs, one->pairs);
}

/* Without the bias of a mean that is estimated from the same blocks. */
static double corr_value(const struct uni_corr *c)
{
	if (!(c->squares > 0) || c->pairs < PAIRS_MIN)
		return 0;
	return (c->products / c->squares + 1 / c->pairs) / (1 - 4 / c->pairs);
}

/* The correlation of all functions, unless this function's is clearly larger. */
static double choose_corr(const struct uni_corr *one, const struct uni_corr *all)
{
	double own = corr_value(one), common = corr_value(all);

	if (one->pairs >= PAIRS_MIN && own > common + CLEARLY / sqrt(2 * one->pairs))
		common = own;
	return fmax(0, fmin(CORR_MAX, common));
}

/* The value of the whole side for one unit of b->n; 1 for shares. */
static double all_of(const struct uni_blocks *b)
{
	return b->sum_all > 0 && b->sum_n > 0 ? b->sum_all / b->sum_n : 1;
}

/* The share's own variance if samples were independent, away from 0 and 1. */
static double binomial_var(const struct uni_blocks *b)
{
	double samples = fmax(b->samples, 1), all = all_of(b);
	double share = (share_of(b) / all * samples + 1) / (samples + 2);

	return share * (1 - share) / samples * all * all;
}

static bool is_few(const struct uni_blocks *b)
{
	double k = share_of(b) / all_of(b) * b->samples;

	return b->samples > 0 && (k < FEW_SAMPLES || b->samples - k < FEW_SAMPLES);
}

/* The variance of the blocks' sum by batch means. */
static double batch_var(const struct uni_blocks *b, double share, double *df_ret)
{
	double squares = 0;

	for (size_t i = 0; i < b->nr; i++)
		squares += block_rest(b, share, i) * block_rest(b, share, i);
	*df_ret = (double)b->nr - 1;
	return squares * (double)b->nr / *df_ret;
}

/* The same by the lowest frequencies of the periodogram (Heidelberger and Welch 1981). Rounds of a
 * few blocks that the guest repeats have higher ones, and do not move the sum. */
static double slow_var(const struct uni_blocks *b, double share, double *df_ret)
{
	size_t nr = b->nr / (2 * FINE);
	double squares = 0;

	for (size_t k = 1; k <= nr; k++) {
		double angle = 2 * M_PI * (double)k / (double)b->nr, c = cos(angle), s = sin(angle);
		double x = 1, y = 0, sum_x = 0, sum_y = 0;

		for (size_t i = 0; i < b->nr; i++) {
			double rest = block_rest(b, share, i), turned = x * c - y * s;

			sum_x += rest * x;
			sum_y += rest * y;
			y = x * s + y * c;
			x = turned;
		}
		squares += sum_x * sum_x + sum_y * sum_y;
	}
	*df_ret = 2 * (double)nr;
	return squares / (double)nr;
}

static struct uni_share find_share(const struct uni_blocks *b, double corr)
{
	struct uni_share ret = { .share = share_of(b), .df = INFINITY };
	double groups;

	if (b->nr < 2) {
		ret.var = binomial_var(b);
		return ret;
	}
	ret.var = (b->nr >= FINE_MIN ? slow_var : batch_var)(b, ret.share, &ret.df) /
		  (b->sum_n * b->sum_n) * (1 + corr) / (1 - corr);
	/* So many independent groups tell as much as these do. The correlation of a few long phases
	 * comes out too small. */
	if (b->nr >= FINE_MIN) {
		groups = (double)b->nr / FINE * (1 - corr) / (1 + corr);
		ret.df = fmin(ret.df, fmax(1, groups - PHASES * 2 * corr / (1 + corr)));
	}
	if (is_few(b))
		ret.var = fmax(ret.var, binomial_var(b));
	/* All runs, or all rounds, are the same. Numbers that are no samples are exact then. */
	if (ret.var < NONE)
		ret = (struct uni_share){ ret.share, b->samples > 0 ? binomial_var(b) : 0,
			INFINITY };
	return ret;
}

/* Welch and Satterthwaite. */
static double find_df(const struct uni_share *a, const struct uni_share *b)
{
	double sum = a->var + b->var, parts = a->var * a->var / a->df + b->var * b->var / b->df;

	return parts > 0 ? sum * sum / parts : INFINITY;
}

struct uni_change uni_stat_change(
	const struct uni_blocks *before, const struct uni_blocks *after, const struct uni_corr *all)
{
	const struct uni_corr one = uni_stat_corr(before, after);
	struct uni_change c = { .p = 1, .corr = choose_corr(&one, all) };
	double df, limit;

	c.before = find_share(before, c.corr);
	c.after = find_share(after, c.corr);
	c.diff = c.after.share - c.before.share;
	c.se = sqrt(c.before.var + c.after.var);
	c.low = c.high = c.diff;
	if (!(c.se > 0)) {
		c.p = c.diff == 0 ? 1 : 0;
		return c;
	}
	df = find_df(&c.before, &c.after);
	limit = uni_stat_t_limit(TAILS, df) * c.se;
	c.p = uni_stat_t_tails(c.diff / c.se, df);
	c.low -= limit;
	c.high += limit;
	return c;
}

void uni_stat_relative(struct uni_change *c)
{
	double a = c->after.share, b = c->before.share, half = c->high - c->diff;
	double t2 = c->se > 0 ? half * half / (c->se * c->se) : 0;
	double square = b * b - t2 * c->before.var, rest = a * a - t2 * c->after.var;
	double root = a * a * b * b - square * rest;

	if (!(b > 0))
		return;
	c->diff = a / b - 1;
	if (!(square > 0)) {
		c->low = -1;
		c->high = INFINITY;
		return;
	}
	root = sqrt(fmax(root, 0));
	c->low = fmax(-1, (a * b - root) / square - 1);
	c->high = (a * b + root) / square - 1;
}
