/* SPDX-License-Identifier: BSD-2-Clause */
/* COM1, polled. */
#include "lab.h"
#include "cpu.h"

#define COM1	  0x3f8
#define LSR	  (COM1 + 5)
#define LSR_DATA  0x01
#define LSR_EMPTY 0x20
#define FIFO_SIZE 16

void lab_uart_init(void)
{
	lab_outb(COM1 + 1, 0);	  /* no interrupts */
	lab_outb(COM1 + 3, 0x80); /* divisor latch */
	lab_outb(COM1 + 0, 1);	  /* 115200 */
	lab_outb(COM1 + 1, 0);
	lab_outb(COM1 + 3, 3); /* 8n1 */
	lab_outb(COM1 + 2, 7); /* FIFO on and cleared */
	lab_outb(COM1 + 4, 3);
}

LAB_FUNC static void uart_outb(char c)
{
	lab_outb(COM1, (uint8_t)c);
}

LAB_FUNC static void uart_wait(void)
{
	while (!(lab_inb(LSR) & LSR_EMPTY))
		lab_relax();
}

/* Each port access leaves the VM, so ask only once a FIFO's worth whether there is room. */
LAB_FUNC void lab_putc(char c)
{
	static unsigned room;

	if (!room) {
		uart_wait();
		room = FIFO_SIZE;
	}
	room--;
	uart_outb(c);
}

bool lab_serial_pending(void)
{
	return lab_inb(LSR) & LSR_DATA;
}
