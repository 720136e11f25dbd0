/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * When an exit begins and ends, and how it is counted; see exit.bpf.c for the trace points.
 * Compiled for the kernel and for unit tests. A file that includes this one must define the
 * functions below.
 */
#ifndef UNI_BACKEND_KVM_BPF_EXIT_LOGIC_BPF_H
#define UNI_BACKEND_KVM_BPF_EXIT_LOGIC_BPF_H

#include "backend/kvm/bpf/exit_abi.h"
#include "backend/kvm/bpf/exit_what.bpf.h"
#include "backend/kvm/bpf/guest.bpf.h"

/* The vCPU that this thread runs. */
struct uni_exit_place {
	struct uni_bpf_exit *x;
	struct uni_bpf_vcpu *v;
	struct uni_bpf_guest *g;
};

/* CLOCK_MONOTONIC. */
static __always_inline u64 uni_exit_now(void);
/* How long the thread has slept, and how long it has waited for a CPU, up to now. */
static __always_inline void uni_exit_off(
	const struct uni_exit_place *p, u64 now, u64 *asleep, u64 *stolen);
/* The number of the chain; pc is where the guest left; 0: take its registers' pc. */
static __always_inline u32 uni_exit_chain(const struct uni_exit_place *p, u64 pc, u64 now);
/* NULL: there is none yet. False: there is no room. */
static __always_inline struct uni_bpf_exit_sum *uni_exit_sum_of(
	const struct uni_exit_place *p, const struct uni_bpf_exit_key *key);
static __always_inline bool uni_exit_sum_new(const struct uni_exit_place *p,
	const struct uni_bpf_exit_key *key, const struct uni_bpf_exit_sum *sum);
static __always_inline struct uni_bpf_exit_last *uni_exit_last_of(
	const struct uni_exit_place *p, const struct uni_bpf_exit_kind *kind);
static __always_inline void uni_exit_last_set(const struct uni_exit_place *p,
	const struct uni_bpf_exit_kind *kind, const struct uni_bpf_exit_last *last);

static __always_inline const struct kvm_vcpu *uni_exit_vcpu(const struct uni_exit_place *p)
{
	return (const struct kvm_vcpu *)p->v->vcpu;
}

/* Adds n exits that are like `each`. */
static __always_inline void uni_exit_sum(
	struct uni_bpf_exit_sum *to, u64 n, const struct uni_bpf_exit_sum *each)
{
	to->exits += n;
	to->host_ns += n * each->host_ns;
	to->asleep_ns += n * each->asleep_ns;
	to->stolen_ns += n * each->stolen_ns;
}

/* One exit in N is examined. Is this one of those in between? */
static __always_inline bool uni_exit_between(
	const struct uni_exit_place *p, const struct uni_exit_what *w, u64 pc)
{
	struct uni_bpf_exit *x = p->x;
	struct uni_bpf_exit_last *last;
	struct uni_bpf_exit_sum *sum;
	unsigned long rip = 0;

	if (pc == 0)
		UNI_CORE(rip, uni_exit_vcpu(p), arch.regs[VCPU_REGS_RIP]);
	x->kind.pc = pc != 0 ? pc : rip;
	x->kind.info = w->info;
	x->kind.reason = w->reason;
	x->kind.number = p->v->number;
	x->kind.isa = w->isa;
	x->kind.what = w->info_kind | (u8)(w->access << 4);
	last = uni_exit_last_of(p, &x->kind);
	if (last == NULL)
		return false;
	if (last->left != 0) {
		last->left--;
		last->sum.exits++;
		return true;
	}
	/* Adds the exits since the last one to it, before it is forgotten. */
	sum = uni_exit_sum_of(p, &last->key);
	if (sum != NULL)
		uni_exit_sum(sum, last->sum.exits, &last->sum);
	else
		x->lost += last->sum.exits;
	last->sum.exits = 0;
	return false;
}

/* Begins an exit, except for its chain. If it returns true, the caller adds the chain. */
UNI_APART bool uni_exit_prepare(const struct uni_exit_place *p, const struct uni_exit_what *w,
	u64 pc, bool by_entry, u64 now)
{
	struct uni_bpf_exit *x = p->x;

	x->begin_ns = now;
	x->by_entry = by_entry;
	x->seq++;
	x->looked = x->every == 1 || !uni_exit_between(p, w, pc);
	if (x->looked == 0)
		return false;
	uni_exit_off(p, now, &x->asleep_ns, &x->stolen_ns);
	x->key.info = w->info;
	x->key.reason = w->reason;
	x->key.number = p->v->number;
	x->key.isa = w->isa;
	x->key.what = w->info_kind | (u8)(w->access << 4);
	x->key.how = w->size & UNI_BPF_EXIT_SIZE_MASK;
	x->key.bucket = 0;
	return true;
}

static __always_inline void uni_exit_begin(const struct uni_exit_place *p,
	const struct uni_exit_what *w, u64 pc, bool by_entry, u64 now)
{
	if (!uni_exit_prepare(p, w, pc, by_entry, now))
		return;
	p->x->key.chain = uni_exit_chain(p, pc, now);
	/* The time up to here was spent by us, not by the host. */
	p->x->begin_ns = uni_exit_now();
}

/* Adds facts about the exit in progress that were learnt only later. */
static __always_inline void uni_exit_more(struct uni_bpf_exit *x, const struct uni_exit_what *w)
{
	u8 what = w->info_kind | (u8)(w->access << 4);

	if (w->info_kind == UNI_EXIT_INFO_NONE)
		return;
	/* SVM's page fault gives all but the size. */
	if ((x->key.what & 0xf) != UNI_EXIT_INFO_NONE &&
		(x->key.what != what || x->key.info != w->info ||
			(x->key.how & UNI_BPF_EXIT_SIZE_MASK) != 0))
		return;
	x->key.info = w->info;
	x->key.what = what;
	x->key.how = (x->key.how & UNI_BPF_EXIT_USERSPACE) | (w->size & UNI_BPF_EXIT_SIZE_MASK);
}

/* The next exits of this kind are taken to be like it. */
static __always_inline void uni_exit_remember(
	const struct uni_exit_place *p, const struct uni_bpf_exit_sum *sum)
{
	struct uni_bpf_exit_last last = { .key = p->x->key, .sum = *sum };

	last.sum.exits = 0;
	last.left = p->x->every - 1;
	/* If there is no room, each exit of that kind is examined. */
	uni_exit_last_set(p, &p->x->kind, &last);
}

UNI_APART void uni_exit_add(const struct uni_exit_place *p, u64 host, u64 asleep, u64 stolen)
{
	struct uni_bpf_exit *x = p->x;
	const struct uni_bpf_exit_sum one = {
		.exits = 1, .host_ns = host, .asleep_ns = asleep, .stolen_ns = stolen
	};
	struct uni_bpf_exit_sum *sum;

	x->key.bucket = uni_exit_bucket(host);
	sum = uni_exit_sum_of(p, &x->key);
	if (sum != NULL)
		uni_exit_sum(sum, 1, &one);
	else if (!uni_exit_sum_new(p, &x->key, &one))
		x->lost++;
	if (x->every > 1)
		uni_exit_remember(p, &one);
}

UNI_APART void uni_exit_end(const struct uni_exit_place *p, u64 now)
{
	struct uni_bpf_exit *x = p->x;
	u64 begin = x->begin_ns, asleep, stolen;

	x->begin_ns = 0;
	if (begin == 0 || x->looked == 0)
		return;
	uni_exit_off(p, now, &asleep, &stolen);
	uni_exit_add(p, now - begin, asleep - x->asleep_ns, stolen - x->stolen_ns);
}

/* The trace point kvm_exit at rip, for the reason w (uni_exit_by_cpu). */
static __always_inline void uni_exit_on_exit(
	const struct uni_exit_place *p, const struct uni_exit_what *w, u64 rip, u64 now)
{
	/* The last exit did not end: KVM went on to this one without entering the guest. */
	uni_exit_end(p, now);
	uni_exit_begin(p, w, rip, w->isa != UNI_EXIT_ISA_KVM, now);
}

/* KVM_RUN begins. An exit that began at kvm_exit ends at kvm_entry, which is still to come. */
static __always_inline void uni_exit_on_run(const struct uni_exit_place *p, u64 now)
{
	if (p->x->by_entry == 0)
		uni_exit_end(p, now);
}

/* Was it the access that KVM saw before? Then the guest's rip at that time is the right one. */
static __always_inline u64 uni_exit_seen_pc(
	const struct uni_bpf_exit *x, const struct uni_exit_what *w)
{
	if (w->info_kind == UNI_EXIT_INFO_NONE || w->info_kind != x->seen_kind ||
		w->info != x->seen_info)
		return 0;
	return x->seen_pc;
}

/* KVM_RUN is about to return, for the reason w (uni_exit_by_run). */
static __always_inline void uni_exit_on_return(
	const struct uni_exit_place *p, const struct uni_exit_what *w, u64 now)
{
	if (p->x->begin_ns == 0)
		uni_exit_begin(p, w, uni_exit_seen_pc(p->x, w), false, now);
	else if (p->x->by_entry == 0 && p->x->key.reason == 0)
		p->x->key.reason = w->reason;
	p->x->seen_kind = UNI_EXIT_INFO_NONE;
	uni_exit_more(p->x, w);
	p->x->key.how |= UNI_BPF_EXIT_USERSPACE;
}

/* An access by the guest: in an exit in progress, or one that may become an exit to the VMM. */
static __always_inline void uni_exit_on_access(
	const struct uni_exit_place *p, u8 kind, u64 info, u8 access, u64 size)
{
	struct uni_exit_what w;
	unsigned long pc = 0;

	uni_exit_set(&w, kind, info, access, size);
	if (p->x->begin_ns != 0) {
		uni_exit_more(p->x, &w);
		return;
	}
	UNI_CORE(pc, uni_exit_vcpu(p), arch.regs[VCPU_REGS_RIP]);
	p->x->seen_kind = kind;
	p->x->seen_info = info;
	p->x->seen_pc = pc;
}

/* A halt inside KVM is over. If it was an exit, that exit is in progress. */
static __always_inline void uni_exit_on_wakeup(
	const struct uni_exit_place *p, u64 ns, bool slept, u64 now)
{
	struct uni_exit_what w = { .isa = UNI_EXIT_ISA_KVM, .reason = UNI_KVM_EXIT_HLT };

	if (p->x->begin_ns != 0)
		return;
	uni_exit_begin(p, &w, 0, false, now);
	p->x->begin_ns = 0;
	if (p->x->looked != 0)
		uni_exit_add(p, ns, slept ? ns : 0, 0);
}

#endif
