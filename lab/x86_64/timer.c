/* SPDX-License-Identifier: BSD-2-Clause */
/* Periodic interrupt: PIT counter 0 through the 8259, which all three machine types have. */
#include "lab.h"
#include "cpu.h"

#define PIC1	0x20
#define PIC2	0xa0
#define PIC_EOI 0x20
#define PIT_HZ	1193182U

static volatile uint64_t nr_ticks;
static void (*tick_hook)(void);

__attribute__((weak)) void lab_tick_of(const uint64_t *frame)
{
}

void lab_timer_tick(const uint64_t *frame)
{
	nr_ticks++;
	lab_outb(PIC1, PIC_EOI);
	lab_tick_of(frame);
	if (tick_hook)
		tick_hook();
}

void lab_spurious(void)
{
}

void lab_pic_done(void)
{
	lab_outb(PIC1, PIC_EOI);
}

static void pic_init(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	lab_outb(PIC1, 0x11); /* edge triggered, cascade, ICW4 follows */
	lab_outb(PIC2, 0x11);
	lab_outb(PIC1 + 1, LAB_VECTOR_PIC);
	lab_outb(PIC2 + 1, LAB_VECTOR_PIC + 8);
	lab_outb(PIC1 + 1, 4);
	lab_outb(PIC2 + 1, 2);
	lab_outb(PIC1 + 1, 1);
	lab_outb(PIC2 + 1, 1);
	lab_outb(PIC1 + 1, 0xff);
	lab_outb(PIC2 + 1, 0xff);
	lab_apic_accept_pic();
}

/* One of the first eight. */
void lab_pic_accept(unsigned irq)
{
	pic_init();
	lab_outb(PIC1 + 1, lab_inb(PIC1 + 1) & (uint8_t) ~(1U << irq));
}

void lab_timer_start(unsigned hz, void (*hook)(void))
{
	uint32_t count = PIT_HZ / hz;

	tick_hook = hook;
	lab_pic_accept(0);
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
