/* SPDX-License-Identifier: BSD-2-Clause */
/* A PC's second serial port, polled, as the way to the profiler. For the ports that run on a PC. */
#ifndef UNI_PORTS_PC_H
#define UNI_PORTS_PC_H

#include <stdint.h>

#define UNI_PC_COM2	0x2f8
#define UNI_PC_LSR	(UNI_PC_COM2 + 5)
#define UNI_PC_LSR_DATA 0x01
#define UNI_PC_LSR_ROOM 0x20
#define UNI_PC_FIFO	16

static inline void uni_pc_out(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint8_t uni_pc_in(uint16_t port)
{
	uint8_t value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static inline unsigned uni_pc_com2_read(void *ctx, void *buf, unsigned size)
{
	uint8_t *to = buf;
	unsigned nr = 0;

	(void)ctx;
	while (nr < size && uni_pc_in(UNI_PC_LSR) & UNI_PC_LSR_DATA)
		to[nr++] = uni_pc_in(UNI_PC_COM2);
	return nr;
}

/* As much as the FIFO holds at a time: each access leaves the VM. */
static inline unsigned uni_pc_com2_write(void *ctx, const void *data, unsigned size)
{
	const uint8_t *from = data;
	unsigned nr = 0;

	(void)ctx;
	while (nr < size && uni_pc_in(UNI_PC_LSR) & UNI_PC_LSR_ROOM) {
		uint64_t left = size - nr < UNI_PC_FIFO ? size - nr : UNI_PC_FIFO;

		nr += (unsigned)left;
		__asm__ volatile("rep outsb"
				 : "+S"(from), "+c"(left)
				 : "d"(UNI_PC_COM2)
				 : "memory");
	}
	return nr;
}

static inline void uni_pc_com2_open(void)
{
	uni_pc_out(UNI_PC_COM2 + 1, 0);	   /* no interrupts */
	uni_pc_out(UNI_PC_COM2 + 3, 0x80); /* divisor latch */
	uni_pc_out(UNI_PC_COM2 + 0, 1);	   /* 115200 */
	uni_pc_out(UNI_PC_COM2 + 1, 0);
	uni_pc_out(UNI_PC_COM2 + 3, 3); /* 8n1 */
	uni_pc_out(UNI_PC_COM2 + 2, 7); /* FIFO on and cleared */
	uni_pc_out(UNI_PC_COM2 + 4, 3);
}

#endif
