/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples that Unikraft takes of itself, and the port on which it gives them away. Its own timer
 * ticks only when it has to wake up, so the ticks are those of the PC's real-time clock. The port
 * is the second serial one. Both are polled: nothing of Unikraft's drivers is needed.
 */
#include <uk/config.h>
#include <uk/event.h>
#include <uk/init.h>
#include <uk/intctlr.h>
#include <uk/plat/memory.h>
#include <uk/print.h>
#ifdef CONFIG_LIBUKSCHED
#include <uk/thread.h>
#endif
#include "uniscope/sample.h"
#include "uniscope/trace.h"

#include "../pc.h"
#include "machine.h"
#ifdef CONFIG_LIBUNISCOPE_TRACE_PORT
#include "uniscope/stream.h"
#endif

#define PIC1_MASK  0x21
#define CASCADE	   0x04 /* the second interrupt controller's line on the first one */
#define RTC_IRQ	   8
#define RTC_INDEX  0x70
#define RTC_DATA   0x71
#define RTC_A	   0x0a /* its low half: the rate */
#define RTC_B	   0x0b
#define RTC_C	   0x0c /* has to be read after each tick */
#define RTC_SECOND 0x10 /* in it: a second has begun */
#define NEAR	   32	/* seconds differ by no more than this part */
#define RTC_1024   6
#define RTC_TICKS  0x40
#define TICK_HZ	   1024
#define HLT	   0xf4
#define STACKS	   4 /* that are no thread's */

struct stack {
	uint64_t low, high;
};

static struct uni_trace_sampler sampler;
static struct stack stacks[STACKS];
static unsigned nr_stacks;

static uint8_t rtc(uint8_t reg)
{
	uni_pc_out(RTC_INDEX, reg);
	return uni_pc_in(RTC_DATA);
}

static void rtc_set(uint8_t reg, uint8_t value)
{
	uni_pc_out(RTC_INDEX, reg);
	uni_pc_out(RTC_DATA, value);
}

#ifdef CONFIG_LIBUNISCOPE_TRACE_PORT
#define PER_TICK 4096 /* bytes that a tick moves at most */

static struct uni_stream stream;

/* The host switches no functions on by the port: the interrupted code may be at such a place. */
static void port_open(void)
{
	const struct uni_stream_config config = { .read = uni_pc_com2_read,
		.write = uni_pc_com2_write,
		.name = "unikraft",
		.seed = sampler.random };

	uni_stream_init(&stream, &config);
	uni_pc_com2_open();
}

static void port_poll(void)
{
	(void)uni_stream_poll(&stream, PER_TICK);
}
#else
static void port_open(void)
{
}

static void port_poll(void)
{
}
#endif

/* The stack that `at->sp` is on: one of the boot's, or the thread's. */
static void find_stack(struct uni_sample_at *at)
{
#ifdef CONFIG_LIBUKSCHED
	const struct uk_thread *self = uk_thread_current();

	at->thread = (uint64_t)self;
	if (self && self->_mem.stack) {
		at->stack_low = (uint64_t)self->_mem.stack;
		at->stack_high = at->stack_low + __STACK_SIZE;
	}
	if (at->sp >= at->stack_low && at->sp < at->stack_high)
		return;
	at->stack_low = at->stack_high = 0;
#endif
	for (unsigned i = 0; i < nr_stacks; i++) {
		if (at->sp >= stacks[i].low && at->sp < stacks[i].high) {
			at->stack_low = stacks[i].low;
			at->stack_high = stacks[i].high;
		}
	}
}

/*
 * The time stamp counter's frequency: with it the sampler counts the ticks that did not come. The
 * real-time clock sets a flag each second. Two seconds have to be equally long: the guest may
 * stand.
 */
static void learn_frequency(uint8_t flags)
{
	static uint64_t at, last;
	uint64_t now = uni_machine_time(), long_is = now - at;

	if (!(flags & RTC_SECOND))
		return;
	if (last && long_is - last + last / NEAR < 2 * last / NEAR)
		uni_trace_head.tsc_hz = (long_is + last) / 2;
	last = at ? long_is : 0;
	at = now;
}

static int tick(void *data)
{
	const struct uk_intctlr_event_irq_data *irq = data;
	struct uni_sample_at at = { 0 };
	uint8_t flags;

	if (irq->irq != RTC_IRQ)
		return UK_EVENT_NOT_HANDLED;
	flags = rtc(RTC_C);
	at.pc = irq->regs->rip;
	at.sp = irq->regs->rsp;
	at.fp = irq->regs->rbp;
	at.idle = ((const uint8_t *)at.pc)[-1] == HLT;
	find_stack(&at);
	if (!uni_trace_head.tsc_hz)
		learn_frequency(flags);
	uni_sample_tick(&at);
	port_poll();
	return UK_EVENT_HANDLED; /* a tick wakes up no thread */
}

UK_EVENT_HANDLER(UK_INTCTLR_EVENT_IRQ, tick);

static int tick_rest(void *arg __unused)
{
	return 1;
}

static void find_stacks(void)
{
	struct ukplat_memregion_desc *md;

	ukplat_memregion_foreach(&md, UKPLAT_MEMRT_STACK, 0, 0)
	{
		if (nr_stacks == STACKS)
			break;
		stacks[nr_stacks].low = md->vbase;
		stacks[nr_stacks++].high = md->len + md->vbase;
	}
}

static int start(struct uk_init_ctx *ctx __unused)
{
	if (!uni_trace_head.nr_cpus) /* it has no ring */
		return 0;
	find_stacks();
	uni_sample_init(&sampler, TICK_HZ);
	uni_sample_set_hz(CONFIG_LIBUNISCOPE_TRACE_SAMPLE_HZ);
	port_open();
	if (uk_intctlr_irq_register(RTC_IRQ, tick_rest, (void *)0) < 0) {
		uk_pr_err("uniscope-trace: no ticks of the real-time clock\n");
		return 0;
	}
	uni_pc_out(PIC1_MASK, uni_pc_in(PIC1_MASK) & (uint8_t)~CASCADE);
	rtc_set(RTC_A, (uint8_t)((rtc(RTC_A) & 0xf0) | RTC_1024));
	rtc_set(RTC_B, rtc(RTC_B) | RTC_TICKS);
	(void)rtc(RTC_C);
	return 0;
}

uk_lib_initcall(start, 0);
