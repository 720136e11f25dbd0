/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads whose stacks do not fit into the copies of perf events, as in a deep recursion. The rest
 * of such a stack has changed when it is read. So, while a part of its samples is that deep, a
 * thread has no samples of the kernel. It is stopped now and then, at a moment that it cannot
 * choose (base/catch.h), until its chain is known. The sample stands for the CPU time since the one
 * before.
 */
#include "base/checked.h"
#include "base/clock.h"
#include "backend/proc/proc.h"
#include "backend/vmm/proc.h"

#define DEEP	   50u	/* a deep sample counts as so many others */
#define DEEP_BEGIN 200u /* then it is stopped: more than one in 50 is deep, or it begins so */
#define DEEP_MAX   1000u
#define THREADS	   16 /* uni_proc_stop() finds a place by chance for no more */

void uni_proc_deep_note(struct uni_proc_thread *t, bool deep)
{
	if (deep)
		t->depth = uni_min(t->depth + DEEP, DEEP_MAX);
	else
		t->depth -= t->depth != 0;
}

bool uni_proc_deep_begins(struct uni_proc *p, struct uni_proc_thread *t)
{
	uint64_t wait_ns;

	t->by_stops = t->depth >= DEEP_BEGIN && p->may_stop && p->nr_sampled <= THREADS &&
		      uni_vmm_thread_times(p->pid, t->stop.tid, &t->told_run_ns, &wait_ns);
	t->seen_ns = uni_now_ns();
	return t->by_stops;
}

struct held {
	struct uni_proc_thread *t;
	uint64_t begin_ns, ns; /* so long it was stopped; 0: it still is */
};

static void let_go(void *ctx)
{
	struct held *h = ctx;

	if (h->ns != 0)
		return;
	uni_proc_let_go(h->t);
	h->ns = uni_now_ns() - h->begin_ns + 1;
}

/* One sample, which stands for so many periods. */
static void put_held(struct uni_proc *p, uint32_t vcpu, const struct uni_regs *regs,
	uint64_t periods, const struct uni_stream_sink *sink)
{
	struct uni_proc_thread *t = &p->thread[vcpu];
	struct held h = { .t = t, .begin_ns = p->base.stop_ns };
	uint64_t depth = 0;
	const struct uni_stream_raw raw = {
		.t_ns = uni_now_ns(),
		.weight = periods,
		.vcpu = vcpu,
		.regs = *regs,
		.depth_ret = &depth,
		.unwound = let_go,
		.unwound_ctx = &h,
	};

	if (h.begin_ns == 0)
		h.begin_ns = raw.t_ns;
	sink->raw(sink->ctx, &raw);
	let_go(&h);
	if (sink->pause != NULL)
		sink->pause(sink->ctx, h.ns);
	p->samples += periods;
	t->taken += periods;
	t->told_run_ns += (uint64_t)((double)periods * 1e9 / p->frequency);
	t->next_stop_ns = uni_now_ns() + (uint64_t)((double)h.ns / p->max_duty);
	uni_proc_deep_note(t, depth > UNI_PROC_STACK_BYTES);
	t->by_stops = t->depth != 0;
}

/* The whole periods of CPU time that no sample stands for. */
static uint64_t untold_periods(const struct uni_proc *p, const struct uni_proc_thread *t)
{
	uint64_t run_ns, wait_ns;

	if (!uni_vmm_thread_times(p->pid, t->stop.tid, &run_ns, &wait_ns))
		return 0;
	return (uint64_t)((double)(run_ns - uni_min(run_ns, t->told_run_ns)) * p->frequency / 1e9);
}

/* The next look must not wait for a CPU: a late one stands for more time than others. */
void uni_proc_deep_hurry(struct uni_proc *p)
{
	bool any = false;

	for (int i = 0; i < p->nr_sampled; i++)
		any |= p->thread[i].by_stops;
	if (any && p->hurry && !p->ending)
		uni_hurry_begin(&p->hurried);
}

bool uni_proc_deep_look(struct uni_proc *p, uint32_t vcpu, const struct uni_stream_sink *sink)
{
	struct uni_proc_thread *t = &p->thread[vcpu];
	uint64_t periods = untold_periods(p, t);
	struct uni_regs regs;
	int rc;

	if (p->ending) {
		p->lost += periods;
		return true;
	}
	if (periods == 0 || sink->raw == NULL || uni_now_ns() < t->next_stop_ns ||
		uni_proc_program_changed(p))
		return true;
	rc = uni_proc_stop(p, t, true, &regs);
	if (rc == 0 && regs.state == UNI_VCPU_RUNNING)
		put_held(p, vcpu, &regs, untold_periods(p, t), sink);
	uni_proc_let_go(t);
	if (rc == -UNI_EPERM) { /* another process traces it: as well as it can be, then */
		p->may_stop = t->by_stops = false;
		p->lost += periods;
		t->taken += periods;
	}
	return t->by_stops;
}
