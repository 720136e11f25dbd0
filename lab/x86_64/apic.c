/* SPDX-License-Identifier: BSD-2-Clause */
/* Local APIC by its memory-mapped registers (SDM 3A, 11.4). */
#include "lab.h"
#include "cpu.h"

#define APIC_ID	    0x020
#define APIC_EOI    0x0b0
#define APIC_SVR    0x0f0
#define APIC_ICR_LO 0x300
#define APIC_ICR_HI 0x310
#define APIC_LINT0  0x350

#define ICR_INIT    0x4500U /* INIT, assert */
#define ICR_STARTUP 0x4600U
#define ICR_PENDING 0x1000U
#define ICR_OTHERS  0xc0000U /* all but this one; ICR_HI is not asked */

static volatile uint32_t *apic_reg(unsigned offset)
{
	return (volatile uint32_t *)(LAB_APIC + offset);
}

void *lab_device(void)
{
	return (void *)LAB_APIC;
}

/* Virtual wire: interrupts of the 8259 come in by LINT0. Firmware may not have done it. */
void lab_apic_accept_pic(void)
{
	*apic_reg(APIC_SVR) = 0x1ff;   /* enabled, spurious vector 255 */
	*apic_reg(APIC_LINT0) = 0x700; /* ExtINT */
}

uint32_t lab_apic_id(void)
{
	return *apic_reg(APIC_ID) >> 24;
}

static void apic_send(uint32_t apic_id, uint32_t command)
{
	*apic_reg(APIC_ICR_HI) = apic_id << 24;
	*apic_reg(APIC_ICR_LO) = command;
	for (unsigned turn = 0; turn < 1000 && (*apic_reg(APIC_ICR_LO) & ICR_PENDING); turn++)
		lab_relax();
}

void lab_apic_send_init(uint32_t apic_id)
{
	*apic_reg(APIC_SVR) = 0x1ff;
	apic_send(apic_id, ICR_INIT);
}

void lab_apic_send_startup(uint32_t apic_id, uint64_t pa)
{
	apic_send(apic_id, ICR_STARTUP | (uint32_t)(pa >> 12));
}

void lab_tick_accept(void)
{
	*apic_reg(APIC_SVR) = 0x1ff;
	lab_set_gate(LAB_VECTOR_TICK, lab_irq_tick, 0);
	lab_irq_enable();
}

/* Uses ICR_LO alone: this may interrupt the start of another vCPU between the two halves of ICR. */
void lab_tick_others(void)
{
	if (lab_truth.nr_cpus > 1)
		*apic_reg(APIC_ICR_LO) = ICR_OTHERS | LAB_VECTOR_TICK;
}

void lab_tick_done(void)
{
	*apic_reg(APIC_EOI) = 0;
}
