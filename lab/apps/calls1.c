/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three functions that print a line each, called 100000, 300000 and 600000 times, one after the
 * other; with mix=1 by turns of 10, 30 and 60 calls. Known answer: 10 : 30 : 60 % of the time under
 * function_1 : function_2 : function_3. The books are kept a phase (or turn); lines are counted.
 */
#include "lab.h"

const char lab_app_name[] = "calls1";

LAB_FN(phase_1);
LAB_FN(phase_2);
LAB_FN(phase_3);
LAB_FN(function_1);
LAB_FN(function_2);
LAB_FN(function_3);

LAB_FUNC static void function_1(void)
{
	LAB_COUNT(function_1, 1);
	lab_printf("function_1\n");
}

LAB_FUNC static void function_2(void)
{
	LAB_COUNT(function_2, 1);
	lab_printf("function_2\n");
}

LAB_FUNC static void function_3(void)
{
	LAB_COUNT(function_3, 1);
	lab_printf("function_3\n");
}

LAB_FUNC static void phase_1(uint64_t calls)
{
	LAB_ENTER(phase_1);
	for (uint64_t i = 0; i < calls; i++)
		function_1();
	LAB_LEAVE(phase_1);
}

LAB_FUNC static void phase_2(uint64_t calls)
{
	LAB_ENTER(phase_2);
	for (uint64_t i = 0; i < calls; i++)
		function_2();
	LAB_LEAVE(phase_2);
}

LAB_FUNC static void phase_3(uint64_t calls)
{
	LAB_ENTER(phase_3);
	for (uint64_t i = 0; i < calls; i++)
		function_3();
	LAB_LEAVE(phase_3);
}

LAB_FUNC void app_main(void)
{
	uint64_t turns = lab_rounds(10000), calls = 10;

	if (!lab_arg("mix", 0)) {
		calls *= turns;
		turns = 1;
	}
	for (uint64_t i = 0; i < turns && !lab_stop(); i++) {
		phase_1(calls);
		phase_2(3 * calls);
		phase_3(6 * calls);
	}
}
