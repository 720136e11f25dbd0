/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For exact counts: functions with known numbers of calls and of instructions, and code that is
 * hard to count. Each comes once: fib(fib=20) is 2 fib(21) - 1 calls, Ackermann's function of (2,
 * 9), a call graph by chance (rounds=200, its calls are printed). Tail calls, a longjmp through
 * eight frames, a first instruction that takes a page fault, a loop that reads a device's memory.
 */
#include "lab.h"
#include "cpu.h"
#include "exact_work.h"

#define PAGE_VA 0xffffffffc0003000

const char lab_app_name[] = "exact";

void exact_touch(volatile void *p);			/* 2 instructions, the first one faults */
void exact_device(volatile void *p, uint64_t turns);	/* 3 instructions a turn, and 1 */
void exact_split(uint64_t turns);			/* 5 instructions a turn, and 2 */
void exact_tail_a(uint64_t n);				/* 3 instructions, the last time 3 */
void exact_tail_b(uint64_t n);				/* the same, by turns */
uint64_t exact_catch(void (*fn)(uint64_t), uint64_t n); /* returns once somebody throws */
void exact_throw(void);
void exact_page_fault(void);
void exact_map(void);

static uint64_t *page_entry;
static uint64_t page_value;

/* By the page fault's handler. */
void exact_map(void)
{
	lab_pte_set(page_entry, page_value);
}

LAB_FUNC static void fault_often(uint64_t times)
{
	lab_map(PAGE_VA, (uint64_t)lab_page_alloc(1), PTE_WRITE | PTE_NX, 12);
	page_entry = lab_map_entry(PAGE_VA, 12);
	page_value = *page_entry;
	lab_set_gate(14, exact_page_fault, 1);
	for (uint64_t i = 0; i < times; i++) {
		lab_pte_set(page_entry, 0);
		lab_tlb_flush(PAGE_VA);
		exact_touch((volatile void *)PAGE_VA);
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
	exact_split(1000);
	throw_often(100);
	fault_often(lab_arg("faults", 1000));
	exact_device((volatile void *)(LAB_APIC + 0x20), lab_arg("turns", 10000));
	lab_printf("exact: done\n");
}
