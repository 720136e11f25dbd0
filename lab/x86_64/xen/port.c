/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way to a profiler in another domain, which needs no privileges. It is a page laid out as a
 * console's, granted to domain to=DOMID (0), with its grant in xenstore. Each tick looks at it.
 */
#include "lab.h"
#include "lab_grant.h"
#include "../cpu.h"
#include "xen.h"

static union {
	struct xen_console ring;
	uint8_t page[LAB_PAGE_SIZE];
} port __attribute__((aligned(4096)));

/* Ours of the four; what the page says of them is the other side's to spoil. */
static uint32_t in_cons, out_prod;
static bool is_open;

unsigned lab_port_read(void *ctx, void *buf, unsigned size)
{
	uint32_t have = *(volatile uint32_t *)&port.ring.in_prod - in_cons;
	char *to = buf;
	unsigned n;

	if (have > sizeof(port.ring.in)) /* nonsense: nothing */
		return 0;
	LAB_BARRIER();
	for (n = 0; n < size && n < have; n++)
		to[n] = port.ring.in[in_cons++ % sizeof(port.ring.in)];
	LAB_BARRIER();
	port.ring.in_cons = in_cons;
	return n;
}

unsigned lab_port_write(void *ctx, const void *data, unsigned size)
{
	uint32_t used = out_prod - *(volatile uint32_t *)&port.ring.out_cons;
	const char *from = data;
	unsigned n;

	if (used > sizeof(port.ring.out)) /* nonsense: no room */
		return 0;
	for (n = 0; n < size && n < sizeof(port.ring.out) - used; n++)
		port.ring.out[out_prod++ % sizeof(port.ring.out)] = from[n];
	LAB_BARRIER();
	port.ring.out_prod = out_prod;
	return n;
}

void lab_port_tick(void)
{
	if (is_open)
		(void)lab_port_poll();
}

void lab_port_open(void)
{
	lab_grant_to((unsigned)lab_arg("to", 0), "data/uniscope/ring-ref", &port);
	is_open = true;
}
