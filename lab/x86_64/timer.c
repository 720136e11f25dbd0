/* SPDX-License-Identifier: BSD-2-Clause */
/* Periodic interrupt: PIT counter 0 through the 8259, which all three machine types have. */
#include "lab.h"
#include "cpu.h"

#define PIC1	     0x20
#define PIC2	     0xa0
#define PIC_EOI	     0x20
#define PIT_HZ	     1193182U
#define VECTOR_TIMER 32

static volatile uint64_t nr_ticks;
static void (*tick_hook)(void);

void lab_timer_tick(void)
{
	nr_ticks++;
	lab_outb(PIC1, PIC_EOI);
	if (tick_hook)
		tick_hook();
}

void lab_spurious(void)
{
}

static void pic_init(void)
{
	lab_outb(PIC1, 0x11); /* edge triggered, cascade, ICW4 follows */
	lab_outb(PIC2, 0x11);
	lab_outb(PIC1 + 1, VECTOR_TIMER);
	lab_outb(PIC2 + 1, VECTOR_TIMER + 8);
	lab_outb(PIC1 + 1, 4);
	lab_outb(PIC2 + 1, 2);
	lab_outb(PIC1 + 1, 1);
	lab_outb(PIC2 + 1, 1);
	lab_outb(PIC1 + 1, 0xfe); /* IRQ 0 only */
	lab_outb(PIC2 + 1, 0xff);
}

void lab_timer_start(unsigned hz, void (*hook)(void))
{
	uint32_t count = PIT_HZ / hz;

	tick_hook = hook;
	pic_init();
	lab_apic_accept_pic();
	lab_outb(0x43, 0x34); /* counter 0, rate generator */
	lab_outb(0x40, (uint8_t)count);
	lab_outb(0x40, (uint8_t)(count >> 8));
}

uint64_t lab_ticks(void)
{
	return nr_ticks;
}

LAB_FUNC void lab_halt(void)
{
	/* sti takes effect after the next instruction: no tick is lost between the two. */
	__asm__ volatile("sti\n\thlt\n\tcli" : : : "memory");
}

void lab_irq_enable(void)
{
	__asm__ volatile("sti" : : : "memory");
}

void lab_irq_disable(void)
{
	__asm__ volatile("cli" : : : "memory");
}
