/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the TSC all the time and counts by how much it jumped: it measures when this guest is
 * stopped, and for how long. A jump counts from 1.5 usual turns on, or min_us=2 where turns are
 * shorter than that; the classes are multiples of that threshold.
 *
 * Known answer: all the time in watch_tsc. Each every_ms=100 a line gaps: MS TURNS THRESHOLD_NS
 * LOST_US N1 N2 N3 ... N128 says how often the TSC jumped by at least 1, 2, 3, 4 ... thresholds
 * since the start, and how much time was lost in these jumps beyond usual turns. The books have the
 * same counts as calls of gap_1, gap_2 ... The time of printing is no jump.
 */
#include "lab.h"

#define NR_CLASSES   12
#define NR_LEARNT    512 /* turns from which the usual one is taken */
#define THRESHOLD_NS 2000

const char lab_app_name[] = "gaps";

LAB_FN(watch_tsc);
LAB_FN(turns);
LAB_FN(gap_1);
LAB_FN(gap_2);
LAB_FN(gap_3);
LAB_FN(gap_4);
LAB_FN(gap_6);
LAB_FN(gap_8);
LAB_FN(gap_12);
LAB_FN(gap_16);
LAB_FN(gap_24);
LAB_FN(gap_32);
LAB_FN(gap_64);
LAB_FN(gap_128);

static const unsigned factor[NR_CLASSES] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128 };

static struct {
	uint64_t usual, threshold; /* cycles */
	uint64_t nr[NR_CLASSES];   /* jumps of at least factor[i] thresholds */
	uint64_t turns, lost;	   /* cycles beyond a usual turn */
} g;

static uint64_t ns_of(uint64_t cycles)
{
	return cycles * 1000 / (lab_truth.tsc_hz / 1000000);
}

/* Short, and the same for all turns: a jump is somebody else's doing. */
LAB_FUNC static void watch_tsc(uint64_t cycles)
{
	uint64_t last = lab_tsc(), end = last + cycles, turns = 0;

	while (last < end) {
		uint64_t now = lab_tsc(), jump = now - last;

		last = now;
		turns++;
		if (__builtin_expect(jump < g.threshold, 1))
			continue;
		g.lost += jump - g.usual;
		for (unsigned i = 0; i < NR_CLASSES && jump >= factor[i] * g.threshold; i++)
			g.nr[i]++;
		last = lab_tsc(); /* the counting is no jump either */
	}
	g.turns += turns;
}

/* The median of some turns: insertion sort, they are few. */
LAB_FUNC static void learn_turn(void)
{
	static uint64_t seen[NR_LEARNT];
	uint64_t last = lab_tsc();

	for (unsigned i = 0; i < NR_LEARNT; i++) {
		uint64_t now = lab_tsc(), jump = now - last;
		unsigned k = i;

		for (; k > 0 && seen[k - 1] > jump; k--)
			seen[k] = seen[k - 1];
		seen[k] = jump;
		last = lab_tsc();
	}
	g.usual = seen[NR_LEARNT / 2];
	g.threshold = g.usual + g.usual / 2;
	if (ns_of(g.threshold) < lab_arg("min_us", THRESHOLD_NS / 1000) * 1000)
		g.threshold = lab_truth.tsc_hz / 1000000 * lab_arg("min_us", THRESHOLD_NS / 1000);
}

static void keep_books(const uint64_t *before, uint64_t turns)
{
	LAB_COUNT(turns, g.turns - turns);
	LAB_COUNT(gap_1, g.nr[0] - before[0]);
	LAB_COUNT(gap_2, g.nr[1] - before[1]);
	LAB_COUNT(gap_3, g.nr[2] - before[2]);
	LAB_COUNT(gap_4, g.nr[3] - before[3]);
	LAB_COUNT(gap_6, g.nr[4] - before[4]);
	LAB_COUNT(gap_8, g.nr[5] - before[5]);
	LAB_COUNT(gap_12, g.nr[6] - before[6]);
	LAB_COUNT(gap_16, g.nr[7] - before[7]);
	LAB_COUNT(gap_24, g.nr[8] - before[8]);
	LAB_COUNT(gap_32, g.nr[9] - before[9]);
	LAB_COUNT(gap_64, g.nr[10] - before[10]);
	LAB_COUNT(gap_128, g.nr[11] - before[11]);
}

LAB_FUNC static void watch_for(uint64_t cycles)
{
	uint64_t before[NR_CLASSES], turns = g.turns;

	for (unsigned i = 0; i < NR_CLASSES; i++)
		before[i] = g.nr[i];
	LAB_ENTER(watch_tsc);
	watch_tsc(cycles);
	LAB_LEAVE(watch_tsc);
	keep_books(before, turns);
}

static void print_counts(uint64_t start)
{
	lab_printf("gaps: %lu %lu %lu %lu", ns_of(lab_tsc() - start) / 1000000, g.turns,
		ns_of(g.threshold), ns_of(g.lost) / 1000);
	for (unsigned i = 0; i < NR_CLASSES; i++)
		lab_printf(" %lu", g.nr[i]);
	lab_printf("\n");
}

LAB_FUNC void app_main(void)
{
	uint64_t rounds = lab_rounds(20), every = lab_arg("every_ms", 100), start;

	if (!lab_truth.tsc_hz)
		lab_fail("no PIT");
	if (!g.threshold)
		learn_turn();
	start = lab_tsc();
	for (uint64_t i = 0; i < rounds && !lab_stop(); i++) {
		watch_for(lab_truth.tsc_hz / 1000 * every);
		print_counts(start);
	}
}
