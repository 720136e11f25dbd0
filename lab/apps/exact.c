/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For exact counts: functions with known numbers of calls and of instructions, and code that is
 * hard to count. Each comes once: fib(fib=20) is 2 fib(21) - 1 calls, Ackermann's function of (2,
 * 9), a call graph by chance (rounds=200, its calls are printed). Tail calls, a longjmp through
 * eight frames, and one to a frame of the same function. A first instruction that takes a page
 * fault, a loop that reads a device's memory.
 */
#include "lab.h"
#include "exact_arch.h"
#include "exact_work.h"

const char lab_app_name[] = "exact";

LAB_FUNC static void fault_often(uint64_t times)
{
	volatile void *page = exact_page_prepare();

	for (uint64_t i = 0; i < times; i++) {
		exact_page_hide();
		exact_touch(page);
	}
}

LAB_FUNC static void dive(uint64_t depth)
{
	if (depth == 0)
		exact_throw();
	else
		dive(depth - 1);
	__asm__ volatile("" : : : "memory");
}

LAB_FUNC static void after_throw(void)
{
	__asm__ volatile("");
}

LAB_FUNC static void throw_often(uint64_t times)
{
	for (uint64_t i = 0; i < times; i++) {
		exact_catch(dive, 7);
		after_throw();
	}
}

LAB_FUNC void app_main(void)
{
	uint64_t fib = lab_arg("fib", 20), value = exact_fib(fib);

	lab_printf("exact: fib %lu is %lu\n", fib, value);
	lab_printf("exact: ack is %lu\n", exact_ack(2, 9));
	exact_graph(lab_arg("seed", 1), lab_rounds(200));
	for (unsigned i = 0; i < 10; i++)
		exact_choose(i);
	for (unsigned i = 0; i < EXACT_NODES; i++)
		lab_printf("exact: node_%u %lu\n", i, exact_calls[i]);
	exact_tail_a(1000);
	exact_more();
	throw_often(100);
	exact_bounce(7);
	fault_often(lab_arg("faults", 1000));
	exact_device(exact_register(), lab_arg("turns", 10000));
	for (unsigned i = 0; i < 100; i++)
		exact_devices(exact_register(), 3);
	lab_printf("exact: done\n");
}
