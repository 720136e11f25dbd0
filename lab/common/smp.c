/* SPDX-License-Identifier: BSD-2-Clause */
/* Further vCPUs, one after the other. Each machine layer knows how one is started. */
#include "lab.h"
#include "cpu.h"

#define AP_STACK_PAGES 16

static void (*ap_fn)(unsigned cpu);
static uint64_t ap_stack_top[LAB_MAX_CPUS];
static unsigned ap_number; /* the one that is being started */
static volatile uint32_t nr_arrived, nr_finished;

__attribute__((weak)) void lab_inside_start_cpu(void)
{
}

void lab_cpu_stack(unsigned cpu, uint64_t *low_ret, uint64_t *high_ret)
{
	*low_ret = ap_stack_top[cpu] - AP_STACK_PAGES * LAB_PAGE_SIZE;
	*high_ret = ap_stack_top[cpu];
}

/* Runs on the new vCPU, still on the boot tables. */
uint64_t lab_ap_setup(void)
{
	lab_paging_load();
	lab_cpu_init(ap_number);
	return ap_stack_top[ap_number];
}

LAB_FUNC void lab_ap_main(void)
{
	unsigned cpu = lab_cpu_id();

	lab_truth_start();
	lab_inside_start_cpu();
	__atomic_fetch_add(&nr_arrived, 1, __ATOMIC_RELEASE);
	ap_fn(cpu);
	lab_truth_close();
	__atomic_fetch_add(&nr_finished, 1, __ATOMIC_RELEASE);
	lab_vcpu_park();
}

static bool wait_for_arrival(unsigned want, uint64_t cycles)
{
	uint64_t start = lab_tsc();

	while (nr_arrived < want) {
		if (lab_tsc() - start > cycles)
			return false;
		lab_relax();
	}
	return true;
}

static bool start_one(unsigned cpu)
{
	const uint64_t ms = (lab_truth.tsc_hz ? lab_truth.tsc_hz : 3000000000) / 1000;

	ap_number = cpu;
	ap_stack_top[cpu] = lab_stack_alloc(AP_STACK_PAGES);
	/* It takes as long as a busy host needs. */
	for (unsigned attempt = 0; lab_vcpu_start(cpu, ap_stack_top[cpu], attempt); attempt++) {
		if (wait_for_arrival(cpu, 10 * ms))
			return true;
	}
	return false;
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
