/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeps in HLT, is woken by a 100 Hz timer interrupt, works for 1 ms. Known answer: 10 % of the
 * time in do_work, the rest halted in lab_halt (called by idle_wait).
 *
 * busy=1: spins in busy_spin with interrupts on instead. The interrupt handler works for 2 ms of
 * each 10, so that 20 % of all chains lead through an interrupt frame:
 * busy_loop;busy_spin;lab_irq_timer;lab_timer_tick;irq_work.
 */
#include "lab.h"

#define TICK_HZ 100

const char lab_app_name[] = "idle";

LAB_FN(idle_wait);
LAB_FN(do_work);
LAB_FN(busy_loop);
LAB_FN(irq_work);

/* Time, not instructions: the share shall not depend on how fast the machine is. */
static void burn_for(uint64_t cycles)
{
	uint64_t end = lab_tsc() + cycles;

	while (lab_tsc() < end)
		lab_burn(20);
}

LAB_FUNC static void do_work(void)
{
	LAB_ENTER(do_work);
	burn_for(lab_truth.tsc_hz / 1000);
	LAB_LEAVE(do_work);
}

LAB_FUNC static void idle_wait(void)
{
	LAB_ENTER(idle_wait);
	lab_halt();
	LAB_LEAVE(idle_wait);
}

LAB_FUNC static void irq_work(void)
{
	LAB_ENTER(irq_work);
	burn_for(lab_truth.tsc_hz / 500);
	LAB_LEAVE(irq_work);
}

LAB_FUNC static void busy_spin(uint64_t until)
{
	while (lab_ticks() < until)
		lab_burn(20);
}

/* The interrupt handler keeps books, too: ours are shut while interrupts are on. */
LAB_FUNC static void busy_loop(void)
{
	LAB_ENTER(busy_loop);
	lab_irq_enable();
	busy_spin(lab_ticks() + 10);
	lab_irq_disable();
	LAB_LEAVE(busy_loop);
}

LAB_FUNC void app_main(void)
{
	uint64_t ticks = lab_rounds(1000), end;
	bool busy = lab_arg("busy", 0);

	if (!lab_truth.tsc_hz)
		lab_fail("no PIT");
	lab_timer_start(TICK_HZ, busy ? irq_work : NULL);
	end = lab_ticks() + ticks;
	while (lab_ticks() < end && !lab_stop()) {
		if (busy) {
			busy_loop();
			continue;
		}
		idle_wait();
		do_work();
	}
	lab_printf("idle: %lu ticks\n", lab_ticks());
}
