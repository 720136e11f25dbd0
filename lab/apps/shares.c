/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Four functions with 50, 25, 15 and 10 % of the instructions; the last one under 31 frames of
 * recursion. Known answer: self time of burn_a : burn_b : burn_c : burn_d = 50 : 25 : 15 : 10.
 *
 * rest=N: is halted for N ticks of its timer (tick=) after each round.
 * a=N, b=N: instructions of burn_a and burn_b, in the unit of the numbers above.
 * unit=N: turns of 4 instructions for each of these units (200). Fewer make shorter rounds.
 */
#include "lab.h"

#define DEPTH 31

const char lab_app_name[] = "shares";

LAB_FN(burn_a);
LAB_FN(burn_b);
LAB_FN(burn_c);
LAB_FN(burn_d);

static unsigned part_a, part_b, turns;
static uint32_t draw; /* uneven=1: the random number that was drawn last; 0: always as much */

/* Turns for one unit. If uneven, a random number between half and one and a half times as many.
 * Otherwise a sampler could keep step with the rounds on a machine that counts instructions as
 * time.
 */
static inline unsigned unit(void)
{
	if (draw == 0)
		return turns;
	draw = (draw * 1664525u + 1013904223u) | 1;
	return turns / 2 + (draw >> 16) % turns;
}

LAB_FUNC static void burn_a(void)
{
	LAB_ENTER(burn_a);
	lab_burn(part_a * unit());
	LAB_LEAVE(burn_a);
}

LAB_FUNC static void burn_b(void)
{
	LAB_ENTER(burn_b);
	lab_burn(part_b * unit());
	LAB_LEAVE(burn_b);
}

LAB_FUNC static void burn_c(void)
{
	LAB_ENTER(burn_c);
	lab_burn(15 * unit());
	LAB_LEAVE(burn_c);
}

LAB_FUNC static void burn_d(void)
{
	LAB_ENTER(burn_d);
	lab_burn(10 * unit());
	LAB_LEAVE(burn_d);
}

LAB_FUNC static void recurse(unsigned depth)
{
	if (depth > 1)
		recurse(depth - 1);
	else
		burn_d();
	/* Something left to do after the call: this must stay a call. */
	__asm__ volatile("");
}

LAB_FUNC static void round_of_burns(void)
{
	burn_a();
	burn_b();
	burn_c();
	recurse(DEPTH);
}

LAB_FUNC void app_main(void)
{
	uint64_t rounds = lab_rounds(500000), rest = lab_arg("rest", 0);

	draw = lab_arg("uneven", 0) != 0;
	turns = (unsigned)lab_arg("unit", 200);
	part_a = (unsigned)lab_arg("a", 50);
	part_b = (unsigned)lab_arg("b", 25);
	for (uint64_t i = 0; i < rounds && !lab_stop(); i++) {
		round_of_burns();
		for (uint64_t n = 0; n < rest; n++)
			lab_halt();
	}
}
