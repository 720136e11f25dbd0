/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest that shows its profiler broken or treacherous stacks without harm to itself.
 * hostile_spin() puts the bait into rbp and rsp and never uses them. mode=NAME shows one, mode=all
 * (default) all that one vCPU can do, a few steps each by turns. README.md lists them; the name of
 * the present one is at hostile_current.
 *
 * Known answer: most time is in hostile_spin; the profiler ends, the guest as well. By CFI the true
 * chain can be had in all modes.
 */
#include "hostile.h"

#define STEPS_A_TURN 10
#define HUGE_DEPTH   10000
#define HUGE_PAGES   512
#define HUGE_STEPS   40

const char lab_app_name[] = "hostile";
const char *hostile_current = "none";

LAB_FN(hostile_burn);

LAB_FUNC void hostile_burn(struct hostile_regs regs)
{
	LAB_ENTER(hostile_burn);
	hostile_spin(HOSTILE_SPIN_TURNS, regs.rbp, regs.rsp);
	LAB_LEAVE(hostile_burn);
}

uint64_t hostile_text(unsigned i)
{
	static void (*const fns[])(void) = { kmain, app_main, lab_truth_print };

	return ((uint64_t)fns[i % 3] + 8 + 2 * (i % 8)) & ~1ULL;
}

uint64_t link_frames(struct frame *f, unsigned nr, uint64_t last)
{
	for (unsigned i = 0; i < nr; i++) {
		f[i].next = i + 1 < nr ? (uint64_t)&f[i + 1] : last;
		f[i].ret = hostile_text(i);
	}
	return (uint64_t)f;
}

LAB_FUNC static void run_steps(const struct hostile_mode *mode, uint64_t first)
{
	hostile_current = mode->name;
	for (uint64_t i = 0; i < STEPS_A_TURN; i++)
		hostile_burn(mode->step(first + i));
}

/* A true chain, of 10000 frames. */
LAB_FUNC static void huge_recursion(unsigned depth)
{
	struct hostile_regs regs = { .rbp = (uint64_t)__builtin_frame_address(0) };

	if (depth > 1) {
		huge_recursion(depth - 1);
	} else {
		for (unsigned i = 0; i < HUGE_STEPS; i++) /* more: getting here takes a while */
			hostile_burn(regs);
	}
	__asm__ volatile("");
}

LAB_FUNC static void huge_main(void *arg)
{
	huge_recursion((unsigned)(uint64_t)arg);
}

LAB_FUNC static void run_huge(void)
{
	static uint64_t top;

	if (!top)
		top = lab_stack_alloc(HUGE_PAGES);
	hostile_current = "huge";
	lab_on_stack(huge_main, (void *)lab_arg("depth", HUGE_DEPTH), top);
}

/* The second vCPU writes to where our rbp points, as fast as it can. */
static volatile uint64_t *scribble_area;
static volatile bool scribble_stop;

LAB_FUNC static void scribble_main(unsigned cpu)
{
	uint64_t x = 88172645463325252ULL;

	while (!scribble_stop) {
		uint64_t value;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		value = x >> 8;
		if ((x & 3) == 1)
			value = hostile_text((unsigned)(x >> 8));
		else if (x & 2)
			value = (uint64_t)scribble_area + (x >> 8 & 0xff8);
		scribble_area[x >> 40 & 511] = value;
		if (x >> 52 == 0)
			lab_heartbeat();
	}
}

LAB_FUNC static void run_scribble(void)
{
	struct hostile_regs regs;

	if (!scribble_area) {
		scribble_area = (volatile uint64_t *)hostile_pages(1);
		if (lab_smp_start(scribble_main) < 2)
			lab_fail("mode=scribble needs two vCPUs");
	}
	hostile_current = "scribble";
	regs.rbp = (uint64_t)scribble_area + 0x80;
	regs.rsp = (uint64_t)scribble_area + 0x40;
	for (unsigned i = 0; i < STEPS_A_TURN; i++)
		hostile_burn(regs);
}

void app_finish(void)
{
	scribble_stop = true;
	lab_smp_wait();
}

LAB_FUNC static unsigned run_table(const struct hostile_mode *mode, uint64_t turn, bool all)
{
	unsigned nr = 0;

	for (; mode->name; mode++) {
		if (!all && !lab_arg_is("mode", mode->name))
			continue;
		if (!turn && mode->prepare)
			mode->prepare();
		run_steps(mode, turn * STEPS_A_TURN);
		nr++;
	}
	return nr;
}

LAB_FUNC void app_main(void)
{
	static uint64_t turn;
	uint64_t last = turn + lab_rounds(10000);
	bool all = lab_arg_is("mode", "all") || !lab_arg_is("mode", NULL);

	for (; turn < last && !lab_stop(); turn++) {
		unsigned nr = run_table(hostile_chains, turn, all);

		nr += run_table(hostile_tables, turn, all);
		if (all || lab_arg_is("mode", "huge")) {
			run_huge();
			nr++;
		}
		if (lab_arg_is("mode", "scribble")) {
			run_scribble();
			nr++;
		}
		if (!nr)
			lab_fail("no such mode");
	}
}
