/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples that Mini-OS takes of itself in its timer's event. It gives them away on a page that is
 * laid out as a console's and granted to dom0. The grant is in xenstore. The ring is the tracer's,
 * too.
 */
#include <mini-os/os.h>
#include <mini-os/gnttab.h>
#include <mini-os/hypervisor.h>
#include <mini-os/lib.h>
#include <mini-os/mm.h>
#include <mini-os/sched.h>
#include <mini-os/traps.h>
#include <mini-os/xenbus.h>
#include <xen/io/console.h>

#include "uniscope/sample.h"
#include "uniscope/stream.h"
#include "uniscope/trace.h"

#define RING	  (1u << 19)
#define TICK_HZ	  1000
#define PER_TICK  4096 /* bytes that a tick moves at most */
#define HYPERCALL 32   /* bytes of each in the page of hypercalls */
#define NSEC	  1000000000ull

void uniscope_start(void);
void uniscope_switch(struct thread *prev, struct thread *next);
void uniscope_tick(const void *regs);

extern char hypercall_page[];

static uint8_t ring[RING] __attribute__((aligned(UNI_TRACE_SUB_SIZE)));
static struct uni_trace_sampler sampler;
static struct uni_stream stream;
static volatile struct xencons_interface *page;
static uint32_t in_cons, out_prod; /* ours of the page's four: the others are dom0's to spoil */

static unsigned port_read(void *ctx, void *buf, unsigned size)
{
	uint32_t have = page->in_prod - in_cons;
	uint8_t *to = buf;
	unsigned n = 0;

	(void)ctx;
	if (have > sizeof(page->in))
		return 0;
	rmb();
	for (; n < size && n < have; n++)
		to[n] = (uint8_t)page->in[in_cons++ % sizeof(page->in)];
	mb();
	page->in_cons = in_cons;
	return n;
}

static unsigned port_write(void *ctx, const void *data, unsigned size)
{
	uint32_t used = out_prod - page->out_cons;
	const uint8_t *from = data;
	unsigned n = 0;

	(void)ctx;
	if (used > sizeof(page->out))
		return 0;
	for (; n < size && n < sizeof(page->out) - used; n++)
		page->out[out_prod++ % sizeof(page->out)] = (char)from[n];
	wmb();
	page->out_prod = out_prod;
	return n;
}

/* As Xen tells every guest. */
static uint64_t frequency(void)
{
	const volatile struct vcpu_time_info *t = &HYPERVISOR_shared_info->vcpu_info[0].time;
	uint64_t hz = t->tsc_to_system_mul ? (NSEC << 32) / t->tsc_to_system_mul : 0;

	return t->tsc_shift < 0 ? hz << -t->tsc_shift : hz >> t->tsc_shift;
}

/* Each stack is aligned to its size, and its thread stands at its bottom. */
void uniscope_tick(const void *interrupted)
{
	const struct pt_regs *regs = interrupted;
	const uint64_t *frame = __builtin_frame_address(0);
	struct uni_sample_at at = { .pc = frame[1], .sp = (uint64_t)(frame + 2), .fp = frame[0] };

	if (!page)
		return;
	/* None: the event had come while events were off, and a function looked for it. */
	if (regs) {
		at.pc = regs->rip;
		at.sp = regs->rsp;
		at.fp = regs->rbp;
	}
	at.stack_low = at.sp & ~(uint64_t)(STACK_SIZE - 1);
	at.stack_high = at.stack_low + STACK_SIZE;
	at.thread = *(const uint64_t *)at.stack_low;
	at.idle = (at.pc - (uint64_t)hypercall_page) / HYPERCALL == __HYPERVISOR_sched_op;
	uni_sample_tick(&at);
	(void)uni_stream_poll(&stream, PER_TICK);
}

void uniscope_switch(struct thread *prev, struct thread *next)
{
	uni_trace_switch((uint64_t)prev, (uint64_t)next, 0);
}

/* Waits for xenstore, so it needs a thread. */
static void tell_grant(void *granted)
{
	char *failed = xenbus_printf(XBT_NIL, "data/uniscope", "ring-ref", "%u",
		gnttab_grant_access(0, virt_to_mfn(granted), 0));

	if (failed)
		printk("uniscope: xenstore: %s\n", failed);
}

void uniscope_start(void)
{
	const struct uni_stream_config config = {
		.read = port_read, .write = port_write, .name = "mini-os"
	};
	void *granted = (void *)alloc_page();

	if (!granted ||
		uni_trace_init(ring, RING, 1, NULL, UNI_TRACE_OVERWRITE, frequency()) != 0) {
		printk("uniscope: no memory\n");
		return;
	}
	memset(granted, 0, PAGE_SIZE);
	uni_sample_init(&sampler, TICK_HZ);
	uni_stream_init(&stream, &config);
	page = granted;
	(void)create_thread((char *)"uniscope", tell_grant, granted);
}
