/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by bare machines and Xen: the time, the number of the vCPU, the main stack. */
#include "lab.h"
#include "cpu.h"

#define MAIN_STACK_PAGES 64

static uint64_t main_stack_top;

uint64_t lab_tsc(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

unsigned lab_cpu_id(void)
{
	uint64_t id;

	__asm__("movq %%gs:0, %0" : "=r"(id));
	return (unsigned)id;
}

void lab_relax(void)
{
	__asm__ volatile("pause");
}

/* The top of the app's stack: stack=4k (default, reversed pages), 2m or 1g (in that linear map). */
static uint64_t main_stack(void)
{
	uint64_t pa;

	if (!lab_arg_is("stack", "2m") && !lab_arg_is("stack", "1g"))
		return lab_stack_alloc(MAIN_STACK_PAGES);
	pa = lab_page_alloc(MAIN_STACK_PAGES) + MAIN_STACK_PAGES * LAB_PAGE_SIZE;
	return pa + (lab_arg_is("stack", "2m") ? LAB_LINEAR : LAB_HUGE);
}

uint64_t lab_main_stack_init(void)
{
	main_stack_top = main_stack();
	return main_stack_top;
}

void lab_main_stack(uint64_t *low_ret, uint64_t *high_ret)
{
	*low_ret = main_stack_top - MAIN_STACK_PAGES * LAB_PAGE_SIZE;
	*high_ret = main_stack_top;
}
