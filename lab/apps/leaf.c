/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hot leaf functions that need no stack. GCC gives them no frame even when told to keep frame
 * pointers, so a plain frame-pointer walk loses their direct caller.
 *
 * Known answer, by caller: caller_a 40, caller_b 20 (both call leaf_x), caller_c 30 (leaf_y),
 * caller_d 10 (leaf_z, which saves registers first: its return address is not at rsp).
 */
#include "lab.h"

const char lab_app_name[] = "leaf";

static uint64_t unit; /* turns of 4 instructions: 1 % of a round */

LAB_FN(caller_a);
LAB_FN(caller_b);
LAB_FN(caller_c);
LAB_FN(caller_d);

LAB_FUNC static void leaf_x(uint64_t turns)
{
	lab_burn(turns);
}

LAB_FUNC static void leaf_y(uint64_t turns)
{
	lab_burn(turns);
}

LAB_FUNC static void leaf_z(uint64_t turns)
{
	__asm__ volatile("" : : : LAB_SAVED_REGS);
	lab_burn(turns);
	__asm__ volatile("" : : : LAB_SAVED_REGS);
}

LAB_FUNC static void caller_a(void)
{
	LAB_ENTER(caller_a);
	leaf_x(40 * unit);
	LAB_LEAVE(caller_a);
}

LAB_FUNC static void caller_b(void)
{
	LAB_ENTER(caller_b);
	leaf_x(20 * unit);
	LAB_LEAVE(caller_b);
}

LAB_FUNC static void caller_c(void)
{
	LAB_ENTER(caller_c);
	leaf_y(30 * unit);
	LAB_LEAVE(caller_c);
}

LAB_FUNC static void caller_d(void)
{
	LAB_ENTER(caller_d);
	leaf_z(10 * unit);
	LAB_LEAVE(caller_d);
}

LAB_FUNC static void round_of_leaves(void)
{
	caller_a();
	caller_b();
	caller_c();
	caller_d();
}

LAB_FUNC void app_main(void)
{
	uint64_t rounds = lab_rounds(500000);

	unit = lab_arg("unit", 200);
	for (uint64_t i = 0; i < rounds && !lab_stop(); i++)
		round_of_leaves();
}
