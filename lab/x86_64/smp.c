/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Further vCPUs, one after the other by INIT and SIPI. Which there are we learn by asking: local
 * APIC numbers count up from 0 on all machines we boot on.
 */
#include "lab.h"
#include "cpu.h"

#define AP_STACK_PAGES 16

extern const char lab_trampoline[], lab_trampoline_end[], lab_trampoline_cr3[],
	lab_trampoline_entry[];
extern char lab_ap_entry[];

uint64_t lab_ap_setup(void);
void lab_ap_main(void);

static void (*ap_fn)(unsigned cpu);
static uint64_t ap_stack_top;
static unsigned ap_number; /* the one that is being started */
static volatile uint32_t nr_arrived, nr_finished;

static void wait_cycles(uint64_t cycles)
{
	uint64_t start = lab_tsc();

	while (lab_tsc() - start < cycles)
		lab_relax();
}

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
		__asm__ volatile("cli\n\thlt");
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
	ap_stack_top = lab_stack_alloc(AP_STACK_PAGES);
	lab_apic_send_init(cpu);
	wait_cycles(10 * ms);
	lab_apic_send_startup(cpu, LAB_TRAMPOLINE);
	if (wait_for_arrival(cpu, 10 * ms))
		return true;
	/* Real ones may miss the first. */
	lab_apic_send_startup(cpu, LAB_TRAMPOLINE);
	return wait_for_arrival(cpu, 200 * ms);
}

unsigned lab_smp_start(void (*fn)(unsigned cpu))
{
	char *low = lab_phys(LAB_TRAMPOLINE);
	unsigned cpu = 1;

	if (lab_apic_id() != 0)
		lab_fail("the boot vCPU is not local APIC 0");
	ap_fn = fn;
	memcpy(low, lab_trampoline, (size_t)(lab_trampoline_end - lab_trampoline));
	*(uint64_t *)(low + (lab_trampoline_cr3 - lab_trampoline)) = lab_boot_cr3;
	*(uint64_t *)(low + (lab_trampoline_entry - lab_trampoline)) = (uint64_t)lab_ap_entry;
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
