/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics of `uniscope diff`: pure functions of arrays. docs/diff.md explains the method and
 * names its sources.
 */
#ifndef UNI_DIFF_STATS_H
#define UNI_DIFF_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Probability that |T| >= |t|; df may be INFINITY (normal distribution). */
double uni_stat_t_tails(double t, double df);
/* The t with uni_stat_t_tails(t, df) == tails, for tails in (0, 1). */
double uni_stat_t_limit(double tails, double df);

/*
 * Weighted Benjamini-Hochberg: q[i] is the smallest rate of false discoveries at which test i is
 * one. weight[i] >= 0, not from p; NULL: all alike. Weights are scaled to a mean of 1. Returns 0 or
 * -UNI_ENOMEM.
 */
int uni_stat_fdr(const double *p, const double *weight, size_t nr, double *q);

/* Blocks of one side: consecutive in time within a run. Borrowed. */
struct uni_blocks {
	const double *x; /* value of the function in each block; NULL: nothing */
	const double *n; /* value of everything in each block, or the work done in it */
	const uint32_t *run;
	size_t nr;	/* 0: no blocks; samples count as independent */
	double samples; /* entries that the values come from */
	double sum_x, sum_n;
	double sum_all; /* value of everything; 0: sum_n is that */
};

/* How much neighbouring blocks of a run have in common: sums, so that functions can be pooled. */
struct uni_corr {
	double products, squares, pairs;
};

struct uni_corr uni_stat_corr(const struct uni_blocks *before, const struct uni_blocks *after);
void uni_stat_corr_add(struct uni_corr *sum, const struct uni_corr *one);

/* A share x/n of one side. */
struct uni_share {
	double share;
	double var; /* of the share */
	double df;
};

struct uni_change {
	struct uni_share before, after;
	double diff; /* after - before */
	double se;
	double low, high; /* 95 % interval of diff */
	double p;	  /* that chance makes such a difference; 1 if nothing is known */
	double corr;	  /* correlation of neighbouring blocks */
};

/* all: the correlation of all functions together. */
struct uni_change uni_stat_change(const struct uni_blocks *before, const struct uni_blocks *after,
	const struct uni_corr *all);
/* The interval as one of after / before - 1: Fieller's, which knows that `before` is measured, too.
 * An end that the data do not limit is INFINITY. */
void uni_stat_relative(struct uni_change *c);

#endif
