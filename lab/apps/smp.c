/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hot function of its own on each vCPU (up to 4). Known answer: cpu0 70 % cpu0_hot, 30 %
 * cpu0_warm; cpu1 all cpu1_hot under cpu1_work, which cpu0 never runs; cpu2 and cpu3 all
 * other_hot. The further ones run until the first is done. A call is inner=N (1) units long: long
 * calls keep the vCPUs from meeting at the lock of the clock that their books are kept by.
 */
#include "lab.h"

#define UNIT 100 /* turns of 4 instructions: 1 % of a round of cpu0 */

const char lab_app_name[] = "smp";

LAB_FN(cpu0_hot);
LAB_FN(cpu0_warm);
LAB_FN(cpu1_hot);
LAB_FN(other_hot);

static volatile bool stop_others;
static uint64_t unit = UNIT;

LAB_FUNC static void cpu0_hot(void)
{
	LAB_ENTER(cpu0_hot);
	lab_burn(70 * unit);
	LAB_LEAVE(cpu0_hot);
}

LAB_FUNC static void cpu0_warm(void)
{
	LAB_ENTER(cpu0_warm);
	lab_burn(30 * unit);
	LAB_LEAVE(cpu0_warm);
}

LAB_FUNC static void cpu1_hot(void)
{
	LAB_ENTER(cpu1_hot);
	lab_burn(50 * unit);
	LAB_LEAVE(cpu1_hot);
}

LAB_FUNC static void other_hot(void)
{
	LAB_ENTER(other_hot);
	lab_burn(50 * unit);
	LAB_LEAVE(other_hot);
}

LAB_FUNC static void cpu1_work(void)
{
	while (!stop_others)
		cpu1_hot();
}

LAB_FUNC static void other_work(void)
{
	while (!stop_others)
		other_hot();
}

LAB_FUNC static void ap_work(unsigned cpu)
{
	if (cpu == 1)
		cpu1_work();
	else
		other_work();
}

LAB_FUNC static void cpu0_work(void)
{
	uint64_t rounds = lab_rounds(1000000);

	for (uint64_t i = 0; i < rounds && !lab_stop(); i++) {
		cpu0_hot();
		cpu0_warm();
	}
}

LAB_FUNC void app_main(void)
{
	static unsigned nr_cpus;

	if (!nr_cpus) {
		unit = UNIT * lab_arg("inner", 1);
		nr_cpus = lab_smp_start(ap_work);
		lab_printf("smp: %u vCPUs%s\n", nr_cpus,
			nr_cpus == 1 ? ", so the first one's part only" : "");
	}
	cpu0_work();
}

/* Not in app_main: loop=1 and secs= run that again. */
void app_finish(void)
{
	stop_others = true;
	lab_smp_wait();
}
