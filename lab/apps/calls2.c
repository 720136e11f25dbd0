/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nested calls: function_1 is called twice as often as function_2. function_1 prints by function_3
 * (inner=N lines a call); function_2 by function_4 (2N) and function_5 (N).
 *
 * Known answer: lines 40 % under function_1 (function_3), 60 % under function_2 (function_4 40,
 * function_5 20), although calls are 67 : 33. rounds=100000 inner=100000 is the original
 * program, 5e10 lines; we default to rounds=2000 inner=100. mix=1: by turns, not one phase after
 * the other.
 */
#include "lab.h"

const char lab_app_name[] = "calls2";

LAB_FN(function_1);
LAB_FN(function_2);
LAB_FN(function_3);
LAB_FN(function_4);
LAB_FN(function_5);

LAB_FUNC static void function_3(void)
{
	LAB_COUNT(function_3, 1);
	lab_printf("function_3\n");
}

LAB_FUNC static void function_4(void)
{
	LAB_COUNT(function_4, 1);
	lab_printf("function_4\n");
}

LAB_FUNC static void function_5(void)
{
	LAB_COUNT(function_5, 1);
	lab_printf("function_5\n");
}

LAB_FUNC static void function_1(uint64_t inner)
{
	LAB_ENTER(function_1);
	for (uint64_t i = 0; i < inner; i++)
		function_3();
	LAB_LEAVE(function_1);
}

LAB_FUNC static void function_2(uint64_t inner)
{
	LAB_ENTER(function_2);
	for (uint64_t i = 0; i < 2 * inner; i++)
		function_4();
	for (uint64_t i = 0; i < inner; i++)
		function_5();
	LAB_LEAVE(function_2);
}

LAB_FUNC void app_main(void)
{
	uint64_t turns = lab_rounds(2000), calls = 1;
	uint64_t inner = lab_arg("inner", 100);

	if (!lab_arg("mix", 0)) {
		calls = turns;
		turns = 1;
	}
	for (uint64_t turn = 0; turn < turns && !lab_stop(); turn++) {
		for (uint64_t i = 0; i < 2 * calls && !lab_stop(); i++)
			function_1(inner);
		for (uint64_t i = 0; i < calls && !lab_stop(); i++)
			function_2(inner);
	}
}
