/* SPDX-License-Identifier: BSD-2-Clause */
/* Periodic interrupt: the virtual timer (PPI 27) through the GICv2 that virt has by default. */
#include "lab.h"
#include "cpu.h"

#define TIMER_IRQ     27
#define GICD_CTLR     (LAB_GICD_PA + 0x000)
#define GICD_ISENABLE (LAB_GICD_PA + 0x100)
#define GICC_CTLR     (LAB_GICC_PA + 0x000)
#define GICC_PMR      (LAB_GICC_PA + 0x004)
#define GICC_IAR      (LAB_GICC_PA + 0x00c)
#define GICC_EOIR     (LAB_GICC_PA + 0x010)
#define SPURIOUS      1020

static volatile uint64_t nr_ticks;
static void (*tick_hook)(void);
static uint64_t period;

void lab_timer_tick(void)
{
	uint32_t irq = lab_mmio_read(GICC_IAR);

	if ((irq & 1023) >= SPURIOUS)
		return;
	lab_write_sysreg(cntv_cval_el0, lab_read_sysreg(cntv_cval_el0) + period);
	lab_mmio_write(GICC_EOIR, irq);
	nr_ticks++;
	if (tick_hook)
		tick_hook();
}

void lab_timer_start(unsigned hz, void (*hook)(void))
{
	tick_hook = hook;
	period = lab_truth.tsc_hz / hz;
	lab_mmio_write(GICD_CTLR, 1);
	lab_mmio_write(GICD_ISENABLE, 1U << TIMER_IRQ);
	lab_mmio_write(GICC_PMR, 0xff);
	lab_mmio_write(GICC_CTLR, 1);
	lab_write_sysreg(cntv_cval_el0, lab_tsc() + period);
	lab_write_sysreg(cntv_ctl_el0, 1);
}

uint64_t lab_ticks(void)
{
	return nr_ticks;
}

LAB_FUNC void lab_halt(void)
{
	/* wfi ends with the interrupt pending, masked or not: no tick is lost. */
	__asm__ volatile("wfi\n\tmsr daifclr, #2\n\tisb\n\tmsr daifset, #2" : : : "memory");
}

void lab_irq_enable(void)
{
	__asm__ volatile("msr daifclr, #2" : : : "memory");
}

void lab_irq_disable(void)
{
	__asm__ volatile("msr daifset, #2" : : : "memory");
}
