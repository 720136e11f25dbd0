/* SPDX-License-Identifier: BSD-2-Clause */
/* The tracer in a guest: memory for its rings, and who runs. */
#include "lab.h"
#include "lab_thread.h"
#include "uniscope/promise.h"
#include "uniscope/trace.h"

#define LAB_TRACE_THREADS 16 /* MAX_THREADS of thread.c */

static uint64_t text_rules[64];

/* Words of the command line. ring=KiB for each vCPU (1024); stop=1: a full ring stays as it is.
 * texts=0: no
 * text behind arguments. promises=1: events of threads and promises from the beginning on; keep=1:
 * a table of the open ones. names=0: no names of threads. hz=0: it does not tell its counter's
 * rate. */
void lab_trace_init(void)
{
	struct uni_trace_cpu *cpus[LAB_MAX_CPUS];
	struct uni_trace_memory memory = { 0 };
	uint64_t size = lab_arg("ring", 1024) * 1024 * LAB_MAX_CPUS;
	unsigned pages = (unsigned)((size + UNI_TRACE_SUB_SIZE) / 4096);

	for (unsigned i = 0; i < LAB_MAX_CPUS; i++)
		cpus[i] = lab_trace_cpu(i);
	if (uni_trace_init(lab_linear_alloc(pages), pages * 4096ULL, LAB_MAX_CPUS, cpus,
		    lab_arg("stop", 0) ? UNI_TRACE_STOP : UNI_TRACE_OVERWRITE,
		    lab_arg("hz", 1) ? lab_truth.tsc_hz : 0) != 0)
		lab_fail("ring= is too small");
	memory.linear = (uint64_t)lab_linear_ram(&memory.size);
	if (lab_arg("texts", 1) != 0)
		(void)uni_trace_copy_text(text_rules, sizeof(text_rules), &memory);
	uni_trace_head.control.promises = (uint32_t)lab_arg("promises", 0);
	if (lab_arg("keep", 0) != 0)
		(void)uni_promise_keep(lab_linear_alloc(3), 3 * 4096ULL);
}

/* The depth that the limit counted for each thread, by its id. */
static uint64_t depth[LAB_TRACE_THREADS];

void lab_trace_switch(const struct lab_thread *from, const struct lab_thread *to)
{
	depth[from->id] = uni_trace_swap_depth(depth[to->id]);
	if (from->state == LAB_THREAD_EXITED)
		uni_trace_switch_over((uint64_t)from, (uint64_t)to, from->state);
	else
		uni_trace_switch((uint64_t)from, (uint64_t)to, from->state);
	uni_promise_switch((uint64_t)to);
}

/* A thread is the promise of its end. */
void lab_trace_born(const struct lab_thread *by, const struct lab_thread *t)
{
	uint64_t self = by ? (uint64_t)by : UNI_PROMISE_NOBODY;

	uni_promise_create(self, (uint64_t)t, UNI_PROMISE_THREAD);
	if (lab_arg("names", 1))
		uni_promise_label((uint64_t)t, t->name);
}

void lab_trace_exit(const struct lab_thread *t)
{
	uni_promise_resolve((uint64_t)t, (uint64_t)t);
}
