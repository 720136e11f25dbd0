/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Simulated recordings with known shares, compared as `uniscope diff` compares them: for a unit
 * test and for bench/diff.c. The guest holds each of twelve functions for an exponential time. Its
 * mean is `hold` in periods of the sampler, so that neighbouring samples correlate as exp(-1/hold).
 * Or it calls them in turns, each for a random time about its share of a round. The same seed gives
 * the same numbers.
 */
#ifndef UNI_TESTS_DIFF_SIM_H
#define UNI_TESTS_DIFF_SIM_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "diff/compare.h"

#define DIFF_SIM_FUNCTIONS 12

struct diff_sim {
	size_t samples; /* a side */
	double slower;	/* function 0, of 30 %, takes so many times as long after */
	double hold;	/* in sampling periods */
	size_t runs;	/* a side; 0 means 1 */
	double round;  /* 0, or in sampling periods: the functions take turns, `hold` is not used */
	double uneven; /* 0, or so many times as long holds every third function */
	size_t pairs;
	double tolerance; /* 0: 5 points */
	uint64_t seed;
};

struct diff_sim_counts {
	size_t different, unsure, found; /* pairs: any change said, cannot tell, function 0 */
	size_t coverage, intervals;
	size_t covers[DIFF_SIM_FUNCTIONS]; /* pairs: its interval has the truth */
	double width;			   /* half of function 0's interval, mean */
};

static const double diff_sim_share[DIFF_SIM_FUNCTIONS] = { .30, .15, .12, .10, .08, .07, .05, .05,
	.03, .02, .02, .01 };

static uint64_t diff_sim_state;

/* splitmix64: in (0, 1). */
static inline double diff_sim_random(void)
{
	uint64_t z = diff_sim_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return ((double)((z ^ z >> 31) >> 11) + 0.5) * 0x1p-53;
}

static inline double diff_sim_hold(const struct diff_sim *sim, size_t k)
{
	return sim->hold * (sim->uneven > 0 && k % 3 == 1 ? sim->uneven : 1);
}

/* A function that is held longer comes less often. */
static inline size_t diff_sim_function(const struct diff_sim *sim)
{
	double u = diff_sim_random(), all = 0;
	size_t k = 0;

	for (size_t i = 0; i < DIFF_SIM_FUNCTIONS; i++)
		all += diff_sim_share[i] * sim->hold / diff_sim_hold(sim, i);
	u *= sim->uneven > 0 ? all : 1;
	while (k < DIFF_SIM_FUNCTIONS - 1 &&
		u >= diff_sim_share[k] * sim->hold / diff_sim_hold(sim, k)) {
		u -= diff_sim_share[k] * sim->hold / diff_sim_hold(sim, k);
		k++;
	}
	return k;
}

static inline double diff_sim_time(const struct diff_sim *sim, size_t k)
{
	return sim->round > 0 ? sim->round * diff_sim_share[k] * (0.5 + diff_sim_random())
			      : -diff_sim_hold(sim, k) * log(diff_sim_random());
}

static inline int diff_sim_add(
	struct uni_diff_sides *d, enum uni_side side, const struct diff_sim *sim, double slower)
{
	size_t nr = sim->samples / (sim->runs != 0 ? sim->runs : 1);
	struct uni_diff_entry *entry = calloc(nr, sizeof(*entry));
	struct uni_profile *p = uni_profile_create();
	uint32_t node[DIFF_SIM_FUNCTIONS];
	double until = 0;
	int rc = -1;

	for (size_t k = 0; p != NULL && k < DIFF_SIM_FUNCTIONS; k++) {
		const char name[] = { (char)('a' + k) };
		uint32_t frame = uni_profile_frame_named(p, name, sizeof(name), UNI_FK_GUEST);

		node[k] = uni_profile_child(p, UNI_NODE_ROOT, frame);
	}
	for (size_t i = 0, turn = 0; p != NULL && entry != NULL && i < nr; turn++) {
		size_t k = sim->round > 0 ? turn % DIFF_SIM_FUNCTIONS : diff_sim_function(sim);

		until += diff_sim_time(sim, k) * (k == 0 ? slower : 1);
		for (; i < nr && (double)i < until; i++)
			entry[i] = (struct uni_diff_entry){ .node = node[k], .value = 1 };
	}
	if (p != NULL && entry != NULL && uni_profile_finish(p) == 0) {
		const struct uni_diff_run run = {
			.p = p, .entry = entry, .nr = nr, .samples = (double)nr
		};

		rc = uni_diff_add(d, side, &run);
	}
	uni_profile_destroy(p);
	free(entry);
	return rc;
}

/* The true change of a function's share. */
static inline double diff_sim_truth(const struct diff_sim *sim, size_t k)
{
	double all = 1 + diff_sim_share[0] * (sim->slower - 1);

	return diff_sim_share[k] * (k == 0 ? sim->slower : 1) / all - diff_sim_share[k];
}

static inline void diff_sim_judge(const struct diff_sim *sim, const struct uni_diff_sides *d,
	const struct uni_diff_result *r, struct diff_sim_counts *c)
{
	c->different += r->nr_changed != 0;
	c->unsure += r->verdict == UNI_VERDICT_UNSURE;
	for (size_t i = 0; i < r->nr; i++) {
		const struct uni_diff_value *v = &r->row[i].value[UNI_SELF];
		size_t k = (size_t)(uni_diff_name(d, r->row[i].function)[0] - 'a');
		double truth = diff_sim_truth(sim, k);

		c->intervals++;
		c->coverage += v->c.low <= truth && truth <= v->c.high;
		c->covers[k] += v->c.low <= truth && truth <= v->c.high;
		c->found += k == 0 && v->changed;
		c->width += k == 0 ? (v->c.high - v->c.low) / 2 / (double)sim->pairs : 0;
	}
}

static inline int diff_sim_run(const struct diff_sim *sim, struct diff_sim_counts *ret)
{
	const size_t runs = sim->runs != 0 ? sim->runs : 1, nr_runs[UNI_SIDES] = { runs, runs };
	const struct uni_diff_limits limits = { .threshold = 0.01,
		.tolerance = sim->tolerance > 0 ? sim->tolerance : 0.05 };

	*ret = (struct diff_sim_counts){ 0 };
	diff_sim_state = sim->seed + 1;
	for (size_t i = 0; i < sim->pairs; i++) {
		struct uni_diff_sides *d = uni_diff_create(nr_runs);
		struct uni_diff_result r;
		int rc = d != NULL ? 0 : -1;

		for (size_t n = 0; rc == 0 && n < 2 * runs; n++)
			rc = diff_sim_add(d, n % 2 == 0 ? UNI_BEFORE : UNI_AFTER, sim,
				n % 2 == 0 ? 1 : sim->slower);
		if (rc == 0)
			rc = uni_diff_compare(d, &limits, &r);
		if (rc == 0) {
			diff_sim_judge(sim, d, &r, ret);
			uni_diff_result_deinit(&r);
		}
		uni_diff_destroy(d);
		if (rc != 0)
			return rc;
	}
	return 0;
}

#endif
