/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest that samples itself, and serves its tracer on a port (guest/sample.c, guest/stream.c).
 * The port is the second serial port, or on Xen a page that it grants to another domain. tick=HZ:
 * its timer runs, on each vCPU, and may take samples (bare=1: the timer alone, to compare with);
 * sample=HZ: from the beginning. port=1: it listens; key=1: the host has to know lab_key. Without
 * these words none of it runs.
 */
#include "lab.h"
#include "cpu.h"
#include "lab_thread.h"
#include "uniscope/sample.h"
#include "uniscope/stream.h"

#define POLL_BYTES 4096

/* The stack as an interrupt's entry leaves it: irq.inc. */
struct frame {
	uint64_t rbp, rip, cs, rflags, rsp;
};

static const uint8_t lab_key[UNI_STREAM_KEY_BYTES] = "a key of the lab";
static struct uni_trace_sampler samplers[LAB_MAX_CPUS] __attribute__((aligned(64)));
static struct uni_stream stream;
static bool ported, bare;

extern char lab_text_start[], lab_text_end[], lab_notes_start[], lab_notes_end[];
extern const uint64_t lab_entries_start[], lab_entries_end[]; /* of gcc's table and of clang's */

static void sample(const struct frame *f)
{
	struct uni_sample_at at = { .pc = f->rip, .sp = f->rsp, .fp = f->rbp };

	if (lab_cpu_id() != 0) {
		lab_cpu_stack(lab_cpu_id(), &at.stack_low, &at.stack_high);
	} else if (lab_current) {
		at.thread = (uint64_t)lab_current;
		at.stack_low = lab_current->stack_low;
		at.stack_high = lab_current->stack_high;
	} else {
		lab_main_stack(&at.stack_low, &at.stack_high);
	}
	uni_sample_tick(&at);
}

__attribute__((weak)) void lab_tick_accept(void)
{
}

__attribute__((weak)) void lab_tick_others(void)
{
}

__attribute__((weak)) void lab_tick_done(void)
{
}

void lab_tick_other(const uint64_t *frame)
{
	lab_tick_done();
	sample((const struct frame *)frame);
}

/* The port is the first vCPU's. From a host that is gone no interrupt comes. */
void lab_tick_of(const uint64_t *frame)
{
	if (bare)
		return;
	if (uni_sample_hz() != 0)
		lab_tick_others();
	sample((const struct frame *)frame);
	if (ported)
		(void)uni_stream_poll(&stream, 0);
}

/* Writes by the linear map, through which code can be written. For one vCPU: it is here, so not in
 * the patched code. */
static void patch(void *ctx, const struct uni_stream_patch *place, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		uint64_t pa = place[i].va - LAB_IMAGE_OFFSET;

		lab_copy(lab_phys(pa), place[i].new_bytes, 5);
	}
	__asm__ volatile("cpuid" : : "a"(0), "c"(0) : "rbx", "rdx", "memory"); /* serializes */
}

bool lab_port_poll(void)
{
	return uni_stream_poll(&stream, POLL_BYTES) != 0;
}

static void port_start(void)
{
	const struct uni_stream_config config = { .read = lab_port_read,
		.write = lab_port_write,
		.key = lab_arg("key", 0) ? lab_key : NULL,
		.name = lab_app_name,
		.notes = lab_notes_start,
		.notes_size = (uint64_t)(lab_notes_end - lab_notes_start),
		.text_start = (uint64_t)lab_text_start,
		.text_end = (uint64_t)lab_text_end,
		/* One that had others would have to stop them. */
		.patch = lab_arg("patch", 1) ? patch : NULL,
		.entries = lab_entries_start,
		.nr_entries = (uint64_t)(lab_entries_end - lab_entries_start),
		.seed = lab_tsc() };

	uni_stream_init(&stream, &config);
	lab_port_open();
	ported = true;
}

void lab_inside_start(void)
{
	unsigned tick = (unsigned)lab_arg("tick", 0), port = (unsigned)lab_arg("port", 0);

	uni_sample_init(samplers, tick);
	uni_sample_set_hz((uint32_t)lab_arg("sample", 0));
	bare = lab_arg("bare", 0);
	if (tick)
		lab_timer_start(tick, NULL);
	if (port)
		port_start();
	if (tick || port)
		lab_irq_enable();
}

void lab_inside_start_cpu(void)
{
	if (lab_arg("tick", 0) && !bare)
		lab_tick_accept();
}
