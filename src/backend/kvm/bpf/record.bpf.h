/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* From chains and times to counters and records. */
#ifndef UNI_BACKEND_KVM_BPF_RECORD_BPF_H
#define UNI_BACKEND_KVM_BPF_RECORD_BPF_H

#include "backend/kvm/bpf/maps.bpf.h"
#include "backend/kvm/bpf/chain.bpf.h"

/* Wakes nobody up: the reader polls. False: there was no room. */
static __always_inline bool uni_emit(u32 guest, void *data, u64 size)
{
	void *ring = bpf_map_lookup_elem(&rings, &guest);

	return ring != NULL && bpf_ringbuf_output(ring, data, size, BPF_RB_NO_WAKEUP) == 0;
}

/* Emits s->rec, followed by the chain in s->pc[]. */
static __always_inline bool uni_emit_chain(struct uni_bpf_scratch *s, u8 type)
{
	u32 nr = s->nr;

	s->rec.type = type;
	s->rec.nr = (u16)(nr | s->gap);
	s->rec.stop = (u8)s->stop;
	UNI_OPAQUE(nr);
	if (nr > UNI_BPF_FRAMES)
		return false;
	return uni_emit(s->guest, &s->rec, sizeof(s->rec) + nr * 8);
}

/*
 * The number of the chain in s. A new chain gets a number, and a record defines it. UNI_BPF_NONE:
 * there are too many chains (*full), or the record was lost.
 */
static __always_inline u32 uni_number(struct uni_bpf_guest *g, struct uni_bpf_scratch *s,
	const struct uni_bpf_vcpu *v, bool *full)
{
	u32 guest = s->guest, n, *known;
	void *inner = bpf_map_lookup_elem(&chains, &guest);

	*full = false;
	if (inner == NULL)
		return UNI_BPF_NONE;
	s->key.hash = s->hash;
	s->key.vcpu = v->number;
	s->key.nr = (u16)(s->nr | s->gap);
	s->key.stop = (u8)s->stop;
	s->key.pad = 0;
	known = bpf_map_lookup_elem(inner, &s->key);
	if (known != NULL)
		return *known;
	*full = g->nr_chains >= g->max_chains;
	if (*full)
		return UNI_BPF_NONE;
	n = __sync_fetch_and_add(&g->nr_chains, 1);
	s->rec.number = v->number;
	s->rec.chain = n;
	if (n >= g->max_chains || !uni_emit_chain(s, UNI_BPF_CHAIN))
		return UNI_BPF_NONE;
	bpf_map_update_elem(inner, &s->key, &n, BPF_ANY);
	return n;
}

/* False: that chain has no counters. */
static __always_inline bool uni_count(u32 guest, u32 chain, u32 state, u64 by)
{
	struct uni_bpf_counts *c = UNI_OF_GUEST(counts, guest, &chain);

	if (c == NULL)
		return false;
	__sync_fetch_and_add(&c->n[state & (UNI_BPF_STATES - 1)], by);
	return true;
}

/*
 * CLOCK_MONOTONIC minus the scheduler's clock. A run queue's clock is never ahead, so the minimum
 * is right.
 */
static __always_inline u64 uni_clock_off(struct uni_bpf_guest *g, u64 now, u64 clock)
{
	u64 off = now - clock;

	if (g->clock_off == 0 || (long long)(off - g->clock_off) < 0)
		g->clock_off = off;
	return g->clock_off;
}

struct uni_off_rec {
	struct uni_bpf_rec rec;
	struct uni_bpf_off off;
};

/* Time off the CPU that is not settled yet. */
struct uni_off_time {
	u64 idle_ns, stolen_ns;
};

/*
 * How long the thread, which is on the CPU, has been off it since it last left: asleep, and waiting
 * for a CPU. The scheduler keeps both times exactly, in its own clock.
 */
static __always_inline void uni_off_since(struct uni_bpf_guest *g, struct uni_bpf_vcpu *v,
	const struct task_struct *t, u64 now, struct uni_off_time *ret)
{
	u64 begin = v->out_clock, arrival = t->sched_info.last_arrival;
	u64 off = uni_clock_off(g, now, t->se.cfs_rq->rq->clock), away, stolen;

	ret->idle_ns = ret->stolen_ns = 0;
	if (begin == 0)
		return;
	/* Fixed now: if the offset is known better later, the time would shrink. */
	if (begin == 1)
		begin = v->out_clock = v->out_ns - off;
	if ((long long)(arrival - begin) <= 0)
		return;
	away = arrival - begin;
	stolen = t->sched_info.run_delay - v->out_delay;
	if (stolen > away || v->out_state == UNI_BPF_STOLEN)
		stolen = away;
	ret->idle_ns = away - stolen;
	ret->stolen_ns = stolen;
}

static __always_inline void uni_lose(struct uni_bpf_guest *g, struct uni_bpf_vcpu *v, u64 ns)
{
	u64 n = uni_lost_samples(g, v, ns);

	if (n != 0)
		__sync_fetch_and_add(&g->lost, n);
}

/* A thread is back on the CPU: adds up how long it was away. */
UNI_APART void uni_settle(
	struct uni_bpf_guest *g, struct uni_bpf_vcpu *v, const struct task_struct *t, u64 now)
{
	u32 state = v->out_state, chain = (u32)v->out_chain;
	struct uni_off_rec r = { 0 };
	struct uni_off_time off;
	u64 idle, stolen;

	uni_off_since(g, v, t, now, &off);
	v->out_clock = 0;
	idle = off.idle_ns;
	stolen = off.stolen_ns;
	if (idle + stolen == 0)
		return;
	v->stolen_ns += stolen;
	if (state == UNI_BPF_VMM_IDLE)
		v->vmm_idle_ns += idle;
	v->idle_ns += idle;
	if ((g->flags & UNI_BPF_ORDERED) == 0) {
		if (idle != 0 && !uni_count(v->guest, chain, state, idle))
			uni_lose(g, v, idle);
		if (stolen != 0 && !uni_count(v->guest, chain, UNI_BPF_STOLEN, stolen))
			uni_lose(g, v, stolen);
		return;
	}
	r.rec.t_ns = v->out_ns;
	r.rec.number = v->number;
	r.rec.chain = chain;
	r.rec.type = UNI_BPF_OFF;
	r.rec.state = (u8)state;
	r.off.idle_ns = idle;
	r.off.stolen_ns = stolen;
	if (!uni_emit(v->guest, &r, sizeof(r)))
		uni_lose(g, v, idle + stolen);
}

/* Has the guest changed since the loader's last look: memory or vCPUs plugged in or out? */
static __always_inline void uni_watch(struct uni_bpf_guest *g, const struct kvm *kvm)
{
	struct kvm_memslots *ms = NULL;
	u64 generation = 0;
	int online = 0;

	UNI_PEEK(ms, kvm, memslots[0]);
	UNI_PEEK(generation, ms, generation);
	UNI_PEEK(online, kvm, online_vcpus.counter);
	if (generation != g->generation || (u32)online != g->online)
		g->changed = 1;
}

/* Is this still the vCPU that the loader found, and not reused memory? */
static __always_inline bool uni_is_vcpu(
	const struct kvm_vcpu *vcpu, const struct uni_bpf_vcpu *v, const struct uni_bpf_guest *g)
{
	struct kvm *kvm = NULL;
	int pid = 0, id = -1;

	UNI_PEEK(kvm, vcpu, kvm);
	UNI_PEEK(id, vcpu, vcpu_id);
	if ((u64)kvm != g->kvm || (u32)id != v->id)
		return false;
	UNI_PEEK(pid, kvm, userspace_pid);
	return (u32)pid == g->tgid;
}

/*
 * Reads the registers of a vCPU that left the guest at pc (0: at its registers' pc). False: it is
 * another vCPU.
 */
UNI_APART bool uni_take_regs(
	struct uni_bpf_guest *g, struct uni_bpf_vcpu *v, struct uni_bpf_scratch *s, u64 pc)
{
	const struct kvm_vcpu *vcpu = (const struct kvm_vcpu *)v->vcpu;

	s->guest = v->guest;
	if (!uni_is_vcpu(vcpu, v, g))
		return false;
	uni_watch(g, (const struct kvm *)g->kvm);
	uni_regs_read(vcpu, &s->regs);
	uni_regs_complete(&s->regs, g);
	if (pc != 0) {
		s->regs.pc = pc;
		s->regs.have |= UNI_BPF_HAVE_PC;
	}
	return true;
}

/* Makes the chain of a vCPU that left the guest at pc (0: at its registers' pc); 0: none. */
static __always_inline int uni_take_at(
	struct uni_bpf_guest *g, struct uni_bpf_vcpu *v, struct uni_bpf_scratch *s, u64 pc)
{
	return uni_take_regs(g, v, s, pc) ? uni_chain(g, s) : 0;
}

static __always_inline int uni_take(
	struct uni_bpf_guest *g, struct uni_bpf_vcpu *v, struct uni_bpf_scratch *s)
{
	return uni_take_at(g, v, s, 0);
}

#endif
