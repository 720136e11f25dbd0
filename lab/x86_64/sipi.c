/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting a further vCPU by INIT and SIPI. Local APIC numbers count up from 0 on all machines we
 * boot on. How many there are QEMU says; elsewhere we learn it by asking.
 */
#include "lab.h"
#include "cpu.h"

#define FW_CFG_SELECT	 0x510
#define FW_CFG_DATA	 0x511
#define FW_CFG_SIGNATURE 0
#define FW_CFG_NR_CPUS	 5
#define ATTEMPTS_MAX	 20 /* where we do not know whether it is there */

extern const char lab_trampoline[], lab_trampoline_end[], lab_trampoline_cr3[],
	lab_trampoline_entry[];
extern char lab_ap_entry[];

static void wait_cycles(uint64_t cycles)
{
	uint64_t start = lab_tsc();

	while (lab_tsc() - start < cycles)
		lab_relax();
}

static uint32_t fw_cfg_read(uint16_t item, unsigned size)
{
	uint32_t ret = 0;

	lab_outw(FW_CFG_SELECT, item);
	for (unsigned i = 0; i < size; i++)
		ret |= (uint32_t)lab_inb(FW_CFG_DATA) << (8 * i);
	return ret;
}

static bool may_exist(unsigned cpu, unsigned attempt)
{
	if (fw_cfg_read(FW_CFG_SIGNATURE, 4) != 0x554d4551) /* "QEMU" */
		return attempt < ATTEMPTS_MAX;
	return cpu < fw_cfg_read(FW_CFG_NR_CPUS, 2);
}

static void place_trampoline(void)
{
	char *low = lab_phys(LAB_TRAMPOLINE);

	memcpy(low, lab_trampoline, (size_t)(lab_trampoline_end - lab_trampoline));
	*(uint64_t *)(low + (lab_trampoline_cr3 - lab_trampoline)) = lab_boot_cr3;
	*(uint64_t *)(low + (lab_trampoline_entry - lab_trampoline)) = (uint64_t)lab_ap_entry;
}

bool lab_vcpu_start(unsigned cpu, uint64_t stack_top, unsigned attempt)
{
	const uint64_t ms = (lab_truth.tsc_hz ? lab_truth.tsc_hz : 3000000000) / 1000;

	if (!may_exist(cpu, attempt))
		return false;
	if (lab_apic_id() != 0)
		lab_fail("the boot vCPU is not local APIC 0");
	if (!attempt) {
		place_trampoline();
		lab_apic_send_init(cpu);
		wait_cycles(10 * ms);
	}
	lab_apic_send_startup(cpu, LAB_TRAMPOLINE);
	return true;
}

void lab_vcpu_park(void)
{
	for (;;)
		__asm__ volatile("cli\n\thlt");
}
