/* SPDX-License-Identifier: BSD-2-Clause */
/* The second serial port as the way to the profiler: inside.c. */
#include "lab.h"
#include "cpu.h"

#define COM2	   0x2f8
#define IER	   (COM2 + 1)
#define IIR	   (COM2 + 2)
#define IIR_WHAT   0x0f
#define IIR_LEVEL  0x04 /* as many bytes as the FIFO was told */
#define FIFO_LEVEL 14
#define LSR	   (COM2 + 5)
#define LSR_DATA   0x01
#define LSR_EMPTY  0x20
#define IER_DATA   0x01
#define IER_EMPTY  0x02
#define FIFO_SIZE  16
#define COM2_IRQ   3

/* So many bytes are there, as the port said when it interrupted: no need to ask for each. */
static uint64_t surely;

unsigned lab_port_read(void *ctx, void *buf, unsigned size)
{
	uint64_t at_once = surely < size ? surely : size, left = at_once;
	uint8_t *p = buf, *to = p;
	unsigned n = (unsigned)at_once;

	surely -= at_once;
	__asm__ volatile("rep insb" : "+D"(to), "+c"(left) : "d"(COM2) : "memory");
	while (n < size && (lab_inb(LSR) & LSR_DATA))
		p[n++] = lab_inb(COM2);
	return n;
}

/* As much as the FIFO holds at a time: each access leaves the VM. */
unsigned lab_port_write(void *ctx, const void *data, unsigned size)
{
	const uint8_t *p = data;
	unsigned n = 0;

	while (n < size && (lab_inb(LSR) & LSR_EMPTY)) {
		uint64_t left = size - n < FIFO_SIZE ? size - n : FIFO_SIZE;
		const uint8_t *from = p + n;

		n += (unsigned)left;
		__asm__ volatile("rep outsb" : "+S"(from), "+c"(left) : "d"(COM2) : "memory");
	}
	return n;
}

void lab_port_irq(void)
{
	bool more;

	surely = (lab_inb(IIR) & IIR_WHAT) == IIR_LEVEL ? FIFO_LEVEL : 0;
	more = lab_port_poll();
	/* The PIC sees edges: the line has to fall where something is left to do. While an answer
	 * waits for room nothing is read, and bytes that wait would hold the line up for ever. */
	lab_outb(IER, 0);
	lab_outb(IER, more ? IER_EMPTY : IER_DATA);
	lab_pic_done();
}

void lab_port_open(void)
{
	lab_outb(COM2 + 3, 0x80); /* 115200, 8n1, FIFO */
	lab_outb(COM2 + 0, 1);
	lab_outb(COM2 + 1, 0);
	lab_outb(COM2 + 3, 3);
	lab_outb(COM2 + 2, 0xc7);
	lab_outb(COM2 + 4, 0x0b); /* OUT2 lets interrupts through */
	lab_set_gate(LAB_VECTOR_PIC + COM2_IRQ, lab_irq_port, 0);
	lab_pic_accept(COM2_IRQ);
	lab_outb(IER, IER_DATA);
}
