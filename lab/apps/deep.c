/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * depth=N (200) frames of down_a -> down_b -> down_c -> down_a ..., hot work at the bottom. Known
 * answer: all but 1 % of the time in hot_work, with exactly N frames of down_* between it and
 * app_main. down_c keeps books, so its total is that of a recursive function.
 */
#include "lab.h"

#define HOT_TURNS 250000

const char lab_app_name[] = "deep";

LAB_FN(down_c);
LAB_FN(hot_work);

static void down_a(unsigned depth);

LAB_FUNC static void hot_work(void)
{
	LAB_ENTER(hot_work);
	/* In slices, so that the heartbeat goes on. */
	for (unsigned i = 0; i < 50; i++) {
		lab_burn(HOT_TURNS / 50);
		lab_heartbeat();
	}
	LAB_LEAVE(hot_work);
}

LAB_FUNC static void down_c(unsigned depth)
{
	LAB_ENTER(down_c);
	if (depth > 1)
		down_a(depth - 1);
	else
		hot_work();
	LAB_LEAVE(down_c);
}

LAB_FUNC static void down_b(unsigned depth)
{
	if (depth > 1)
		down_c(depth - 1);
	else
		hot_work();
	__asm__ volatile("");
}

LAB_FUNC static void down_a(unsigned depth)
{
	if (depth > 1)
		down_b(depth - 1);
	else
		hot_work();
	__asm__ volatile("");
}

LAB_FUNC void app_main(void)
{
	uint64_t rounds = lab_rounds(40000);
	unsigned depth = (unsigned)lab_arg("depth", 200);

	for (uint64_t i = 0; i < rounds && !lab_stop(); i++)
		down_a(depth);
}
