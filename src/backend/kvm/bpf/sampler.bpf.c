/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The programs that sample KVM guests from the host's kernel: one for events of vCPU threads, and
 * the iterator that finds vCPUs and memory.
 */
#include "backend/kvm/bpf/record.bpf.h"
#include "backend/kvm/bpf/iter.bpf.h"

#define CTX_CS	  17 /* struct pt_regs of the interrupted host code, in words */
#define CS_USER	  3
#define SYS_IOCTL 16
#define IOCTL_RUN 0xae80u /* KVM_RUN */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Is the thread, which is in the kernel, in KVM_RUN? */
static __always_inline bool in_run(const struct task_struct *t)
{
	const struct pt_regs *r = (const struct pt_regs *)bpf_task_pt_regs((void *)t);

	return r->orig_ax == SYS_IOCTL && (u32)r->si == IOCTL_RUN;
}

static __always_inline u32 state_of(const u64 *ctx, const struct uni_bpf_guest *g,
	const struct kvm_vcpu *vcpu, const struct task_struct *t)
{
	u8 from_guest = 0;

	if ((ctx[CTX_CS] & CS_USER) != 0)
		return UNI_BPF_VMM;
	if (!in_run(t))
		return UNI_BPF_VMM;
	if ((g->flags & UNI_BPF_SPLIT) == 0 || !UNI_HAS(vcpu->arch.handling_intr_from_guest))
		return UNI_BPF_GUEST;
	UNI_PEEK(from_guest, vcpu, arch.handling_intr_from_guest);
	return from_guest != 0 ? UNI_BPF_GUEST : UNI_BPF_KVM;
}

/* Why a thread is off the CPU. */
static __always_inline u32 off_state_of(const struct task_struct *t)
{
	bool sleeps = t->on_rq == 0;

	if (UNI_HAS(t->se.sched_delayed))
		sleeps = sleeps || t->se.sched_delayed != 0;
	if (!sleeps)
		return UNI_BPF_STOLEN;
	return in_run(t) ? UNI_BPF_HALTED : UNI_BPF_VMM_IDLE;
}

/* The vCPU that the event belongs to, its guest, and working data. */
struct place {
	struct uni_bpf_vcpu *v;
	struct uni_bpf_guest *g;
	struct uni_bpf_scratch *s;
};

static __always_inline bool find_place(u32 i, struct place *ret)
{
	u32 which = UNI_SCRATCH_PERF, guest;

	ret->v = bpf_map_lookup_elem(&vcpus, &i);
	if (ret->v == NULL || ret->v->vcpu == 0)
		return false;
	guest = ret->v->guest;
	ret->g = bpf_map_lookup_elem(&guests, &guest);
	ret->s = bpf_map_lookup_elem(&scratches, &which);
	return ret->g != NULL && ret->s != NULL;
}

/* chain: its number, or UNI_BPF_NONE; full: there are too many chains. */
static __always_inline void deliver_sample(const struct place *p, u32 state, u32 chain, bool full)
{
	struct uni_bpf_scratch *s = p->s;
	bool ok = true;

	s->rec.number = p->v->number;
	s->rec.chain = chain;
	if (chain == UNI_BPF_NONE) {
		ok = full && uni_emit_chain(s, UNI_BPF_INLINE);
	} else if ((p->g->flags & UNI_BPF_ORDERED) != 0) {
		s->rec.type = UNI_BPF_SAMPLE;
		ok = uni_emit(s->guest, &s->rec, sizeof(s->rec));
	} else {
		ok = uni_count(s->guest, chain, state, 1);
	}
	if (!ok)
		__sync_fetch_and_add(&p->g->lost, 1);
}

/* Keeps the facts that are settled when the thread is back on the CPU. */
static __always_inline void settle_off_cpu(
	const struct place *p, u32 state, u32 chain, u64 now, const struct task_struct *t)
{
	p->v->out_state = state;
	p->v->out_chain = chain;
	p->v->out_ns = now;
	p->v->out_delay = t->sched_info.run_delay;
	p->v->out_clock = t->se.cfs_rq->rq->clock;
}

/*
 * A tick of a vCPU thread's CPU time. Or (UNI_BPF_LEAVES) the thread leaves the CPU: to sleep, or
 * because the host runs something else. It is one program for both, which halves the time of
 * loading.
 */
SEC("perf_event")
int uni_event(u64 *ctx)
{
	const struct task_struct *t = bpf_get_current_task_btf();
	u32 cookie = (u32)bpf_get_attach_cookie(ctx), state, chain = UNI_BPF_NONE;
	u64 now = bpf_ktime_get_ns();
	bool leaves = (cookie & UNI_BPF_LEAVES) != 0, full = false, took;
	struct place p;

	if (!find_place(cookie & ~UNI_BPF_LEAVES, &p))
		return 0;
	__sync_fetch_and_add(&p.g->runs, 1);
	uni_settle(p.g, p.v, t, now);
	state = leaves ? off_state_of(t)
		       : state_of(ctx, p.g, (const struct kvm_vcpu *)p.v->vcpu, t);
	p.s->rec.t_ns = now;
	p.s->rec.state = (u8)state;
	took = uni_take(p.g, p.v, p.s) != 0;
	if (took)
		chain = uni_number(p.g, p.s, p.v, &full);
	else if (!leaves)
		__sync_fetch_and_add(&p.g->failed, 1);
	if (leaves) {
		settle_off_cpu(&p, state, chain, now, t);
		return 0;
	}
	p.v->samples[state & (UNI_BPF_STATES - 1)]++;
	if (took)
		deliver_sample(&p, state, chain, full);
	return 0;
}
