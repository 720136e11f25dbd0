/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The domain's console, a ring that a program in dom0 empties. Each line is one hypercall. While the
 * app runs, lines that find no room are dropped, so that the time of a line does not depend on dom0;
 * console=wait waits.
 */
#include "lab.h"
#include "../cpu.h"
#include "xen.h"

#define BARRIER() __asm__ volatile("" ::: "memory")

static struct xen_console *ring;
static uint32_t ring_event;
static char line[256];
static unsigned line_length;
static uint64_t nr_dropped;

void lab_xen_console_init(struct xen_console *the_ring, uint32_t event)
{
	ring = the_ring;
	ring_event = event;
}

LAB_FUNC static void console_notify(void)
{
	uint32_t port = ring_event;

	lab_hypercall(XEN_EVENT_CHANNEL_OP, XEN_EVENT_SEND, (uint64_t)&port, 0, 0);
}

LAB_FUNC static void console_wait(void)
{
	console_notify();
	lab_hypercall(XEN_SCHED_OP, XEN_SCHED_YIELD, 0, 0, 0);
}

static uint32_t console_room(void)
{
	return sizeof(ring->out) - (ring->out_prod - *(volatile uint32_t *)&ring->out_cons);
}

LAB_FUNC static void console_write(const char *text, unsigned length)
{
	bool may_drop = lab_truth.state == LAB_STATE_RUNNING && !lab_arg_is("console", "wait");
	uint32_t prod;

	if (!ring)
		return;
	while (!may_drop && console_room() < length)
		console_wait();
	if (console_room() < length) {
		nr_dropped++;
	} else {
		prod = ring->out_prod;
		for (unsigned i = 0; i < length; i++)
			ring->out[prod++ % sizeof(ring->out)] = text[i];
		BARRIER();
		ring->out_prod = prod;
	}
	console_notify();
}

LAB_FUNC void lab_putc(char c)
{
	line[line_length++] = c;
	if (c != '\n' && line_length < sizeof(line))
		return;
	console_write(line, line_length);
	line_length = 0;
}

uint64_t lab_xen_console_dropped(void)
{
	return nr_dropped;
}

bool lab_serial_pending(void)
{
	return ring && *(volatile uint32_t *)&ring->in_prod != ring->in_cons;
}
