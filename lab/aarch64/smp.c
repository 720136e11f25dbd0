/* SPDX-License-Identifier: BSD-2-Clause */
/* Further vCPUs, one after the other by PSCI CPU_ON; virt numbers them from 0 by Aff0. */
#include "lab.h"
#include "cpu.h"

#define AP_STACK_PAGES 16
#define PSCI_CPU_ON    0xc4000003

extern char lab_ap_start[];

uint64_t lab_ap_setup(void);
void lab_ap_main(void);

static void (*ap_fn)(unsigned cpu);
static uint64_t ap_stack_top;
static unsigned ap_number; /* the one that is being started */
static volatile uint32_t nr_arrived, nr_finished;

/* Runs on the new vCPU, still on the boot tables. */
uint64_t lab_ap_setup(void)
{
	lab_paging_load();
	lab_cpu_init(ap_number);
	return ap_stack_top;
}

LAB_FUNC void lab_ap_main(void)
{
	unsigned cpu = lab_cpu_id();

	lab_truth_start();
	__atomic_fetch_add(&nr_arrived, 1, __ATOMIC_RELEASE);
	ap_fn(cpu);
	lab_truth_close();
	__atomic_fetch_add(&nr_finished, 1, __ATOMIC_RELEASE);
	for (;;)
		__asm__ volatile("wfi");
}

static bool start_one(unsigned cpu)
{
	ap_number = cpu;
	ap_stack_top = lab_stack_alloc(AP_STACK_PAGES);
	if (lab_psci(PSCI_CPU_ON, cpu, (uint64_t)lab_ap_start - LAB_IMAGE_OFFSET, 0))
		return false;
	while (nr_arrived < cpu)
		lab_relax();
	return true;
}

unsigned lab_smp_start(void (*fn)(unsigned cpu))
{
	unsigned cpu = 1;

	ap_fn = fn;
	while (cpu < LAB_MAX_CPUS && start_one(cpu))
		lab_truth.nr_cpus = ++cpu;
	return cpu;
}

void lab_smp_wait(void)
{
	while (nr_finished < nr_arrived) {
		lab_heartbeat();
		lab_relax();
	}
}
