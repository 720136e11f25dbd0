/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * diff [PAIRS [SEED]]: how often `uniscope diff` is right about simulated recordings, whose true
 * shares are known (tests/unit/diff_sim.h).
 */
#include <stdio.h>
#include <stdlib.h>

#include "../tests/unit/diff_sim.h"
#include "base/text.h"

/* The correlation of neighbouring samples is exp(-1/hold). */
static const double holds[] = { 0.2, 1, 5, 20 };
static const size_t sizes[] = { 1000, 5000, 10000 };

static int print_line(struct diff_sim *sim, uint64_t seed)
{
	struct diff_sim_counts c;
	double pairs = (double)sim->pairs;

	sim->seed = seed;
	if (diff_sim_run(sim, &c) != 0) {
		(void)fputs("diff: out of memory\n", stderr);
		return 1;
	}
	(void)printf("%7zu %5zu %7.2f %7.0f%% %9.2f%% %9.2f%% %8.2f%% %9.2f%% %9.1f\n",
		sim->samples, sim->runs, exp(-1 / sim->hold), 100 * (sim->slower - 1),
		100 * (double)c.different / pairs, 100 * (double)c.unsure / pairs,
		100 * (double)c.found / pairs, 100 * (double)c.coverage / (double)c.intervals,
		100 * c.width);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t pairs = 2000, seed = 0;
	int rc = 0;

	if ((argc > 1 && !uni_parse_u64(argv[1], &pairs)) ||
		(argc > 2 && !uni_parse_u64(argv[2], &seed))) {
		(void)fputs("usage: diff [PAIRS [SEED]]\n", stderr);
		return 2;
	}

	(void)puts("samples  runs    corr  slower  different    cannot    found   coverage  +- "
		   "points");
	for (size_t h = 0; h < sizeof(holds) / sizeof(holds[0]); h++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			rc |= print_line(&(struct diff_sim){ .samples = sizes[i],
						 .runs = 1,
						 .hold = holds[h],
						 .slower = 1,
						 .pairs = pairs },
				seed);
	}
	(void)puts("every third function is held five times as long:");
	rc |= print_line(&(struct diff_sim){ .samples = 10000,
				 .runs = 1,
				 .hold = 1,
				 .uneven = 5,
				 .slower = 1,
				 .pairs = pairs },
		seed);
	for (int round = 3; round <= 300; round *= 10) {
		(void)printf("functions take turns, rounds of %d samples:\n", round);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			rc |= print_line(&(struct diff_sim){ .samples = sizes[i],
						 .runs = 1,
						 .hold = 1,
						 .round = round,
						 .slower = 1,
						 .pairs = pairs },
				seed);
	}
	for (size_t runs = 3; runs <= 10; runs += 7)
		rc |= print_line(&(struct diff_sim){ .samples = 10000,
					 .runs = runs,
					 .hold = 1,
					 .slower = 1,
					 .pairs = pairs },
			seed);
	for (int percent = 5; percent <= 30; percent += 5)
		rc |= print_line(&(struct diff_sim){ .samples = 5000,
					 .runs = 1,
					 .hold = 0.2,
					 .slower = 1 + percent / 100.0,
					 .pairs = pairs },
			seed);
	return rc;
}
