/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * VM exits, each with the guest's call chain that caused it and the time until the guest went on.
 *
 * With VMX and SVM an exit begins at the trace point kvm_exit and ends at kvm_entry. The classic
 * form of that trace point is used, not the raw one: to fill its record KVM reads the guest's rip
 * and, on VMX, so has it in arch.regs[]; the record also has the exit's qualification.
 *
 * A software KVM that emulates the guest's instructions has no such exits. There one begins where
 * KVM_RUN returns to the VMM (kvm_userspace_exit) and ends where it is called again (kvm_fpu: the
 * guest's FPU state is loaded first of all); a halt inside KVM is told by kvm_vcpu_wakeup. By then
 * rip may be behind the instruction: where kvm_pio or kvm_mmio saw it before, theirs is taken.
 *
 * All of it happens in the vCPU's thread, so nothing here is shared. The times that the thread was
 * off the CPU are the sampler's.
 */
#include "target/kvm/bpf/record.bpf.h"

#include "target/kvm/bpf/exit_abi.h"
#include "target/kvm/bpf/exit_what.bpf.h"

struct trace_event_raw_kvm_exit {
	unsigned int exit_reason;
	unsigned long guest_rip;
	u32 isa;
	u64 info1;
	u64 info2;
} UNI_RELOC;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Of trace points: values of their arguments. */
#define UNI_PIO_OUT    1
#define UNI_MMIO_WRITE 2

/* By the number of a vCPU's thread as the kernel counts: its index in "vcpus". */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, UNI_BPF_VCPUS);
	__type(key, u32);
	__type(value, u32);
} by_thread SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNI_BPF_VCPUS);
	__type(key, u32);
	__type(value, struct uni_bpf_exit);
} exits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNI_BPF_GUESTS);
	__type(key, u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_HASH);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(struct uni_bpf_exit_key));
			__uint(value_size, sizeof(struct uni_bpf_exit_sum));
		});
} exit_sums SEC(".maps");

/* Only of guests of which not every exit is looked at. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNI_BPF_GUESTS);
	__type(key, u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_HASH);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(struct uni_bpf_exit_kind));
			__uint(value_size, sizeof(struct uni_bpf_exit_last));
		});
} exit_lasts SEC(".maps");

/* The vCPU whose thread this is. */
struct uni_exit_place {
	struct uni_bpf_exit *x;
	struct uni_bpf_vcpu *v;
	struct uni_bpf_guest *g;
};

static __always_inline bool uni_exit_find(struct uni_exit_place *ret)
{
	u32 tid = (u32)bpf_get_current_pid_tgid(), guest,
	    *i = bpf_map_lookup_elem(&by_thread, &tid);

	if (i == NULL)
		return false;
	ret->x = bpf_map_lookup_elem(&exits, i);
	ret->v = bpf_map_lookup_elem(&vcpus, i);
	if (ret->x == NULL || ret->v == NULL || ret->x->every == 0 || ret->v->vcpu == 0)
		return false;
	guest = ret->v->guest;
	ret->g = bpf_map_lookup_elem(&guests, &guest);
	return ret->g != NULL;
}

static __always_inline const struct kvm_vcpu *uni_exit_vcpu(const struct uni_exit_place *p)
{
	return (const struct kvm_vcpu *)p->v->vcpu;
}

/* How long the thread has slept, and how long it has waited for a CPU, up to now. */
static __always_inline void uni_exit_off(
	const struct uni_exit_place *p, u64 now, u64 *asleep, u64 *stolen)
{
	struct uni_off_time t;

	uni_off_since(p->g, p->v, bpf_get_current_task_btf(), now, &t);
	*asleep = p->v->idle_ns + t.idle_ns;
	*stolen = p->v->stolen_ns + t.stolen_ns;
}

/* The number of the chain; pc is where the guest left, 0: where its registers say. */
static __always_inline u32 uni_exit_chain(const struct uni_exit_place *p, u64 pc, u64 now)
{
	u32 which = UNI_SCRATCH_EXIT;
	struct uni_bpf_scratch *s = bpf_map_lookup_elem(&scratches, &which);
	bool full;

	if (s == NULL || uni_take_at(p->g, p->v, s, pc) == 0)
		return UNI_BPF_NONE;
	s->rec.t_ns = now;
	s->rec.state = UNI_BPF_KVM;
	return uni_number(p->g, s, p->v, &full);
}

/* n exits like that one more. */
static __always_inline void uni_exit_sum(
	struct uni_bpf_exit_sum *to, u64 n, const struct uni_bpf_exit_sum *each)
{
	to->exits += n;
	to->host_ns += n * each->host_ns;
	to->asleep_ns += n * each->asleep_ns;
	to->stolen_ns += n * each->stolen_ns;
}

/* One in so many is looked at. Here: is it one of those between? */
static __always_inline bool uni_exit_between(
	const struct uni_exit_place *p, const struct uni_exit_what *w, u64 pc)
{
	u32 guest = p->v->guest;
	void *lasts = bpf_map_lookup_elem(&exit_lasts, &guest), *sums;
	struct uni_bpf_exit *x = p->x;
	struct uni_bpf_exit_last *last;
	struct uni_bpf_exit_sum *sum;
	unsigned long rip = 0;

	if (lasts == NULL)
		return false;
	if (pc == 0)
		UNI_CORE(rip, uni_exit_vcpu(p), arch.regs[VCPU_REGS_RIP]);
	x->kind.pc = pc != 0 ? pc : rip;
	x->kind.info = w->info;
	x->kind.reason = w->reason;
	x->kind.number = p->v->number;
	x->kind.isa = w->isa;
	x->kind.what = w->info_kind | (u8)(w->access << 4);
	last = bpf_map_lookup_elem(lasts, &x->kind);
	if (last == NULL)
		return false;
	if (last->left != 0) {
		last->left--;
		last->sum.exits++;
		return true;
	}
	/* Those since the last one go to it, before it is forgotten. */
	sums = bpf_map_lookup_elem(&exit_sums, &guest);
	sum = sums != NULL ? bpf_map_lookup_elem(sums, &last->key) : NULL;
	if (sum != NULL)
		uni_exit_sum(sum, last->sum.exits, &last->sum);
	else
		x->lost += last->sum.exits;
	last->sum.exits = 0;
	return false;
}

static __always_inline void uni_exit_begin(const struct uni_exit_place *p,
	const struct uni_exit_what *w, u64 pc, bool by_entry, u64 now)
{
	struct uni_bpf_exit *x = p->x;

	x->begin_ns = now;
	x->by_entry = by_entry;
	x->seq++;
	x->looked = x->every == 1 || !uni_exit_between(p, w, pc);
	if (x->looked == 0)
		return;
	uni_exit_off(p, now, &x->asleep_ns, &x->stolen_ns);
	x->key.info = w->info;
	x->key.reason = w->reason;
	x->key.number = p->v->number;
	x->key.isa = w->isa;
	x->key.what = w->info_kind | (u8)(w->access << 4);
	x->key.how = w->size & UNI_BPF_EXIT_SIZE_MASK;
	x->key.bucket = 0;
	x->key.chain = uni_exit_chain(p, pc, now);
	/* The host would not have spent the time since then without us. */
	x->begin_ns = bpf_ktime_get_ns();
}

/* What only came out later of an exit that is under way. */
static __always_inline void uni_exit_more(struct uni_bpf_exit *x, const struct uni_exit_what *w)
{
	if ((x->key.what & 0xf) != UNI_EXIT_INFO_NONE || w->info_kind == UNI_EXIT_INFO_NONE)
		return;
	x->key.info = w->info;
	x->key.what = w->info_kind | (u8)(w->access << 4);
	x->key.how = (x->key.how & UNI_BPF_EXIT_USERSPACE) | (w->size & UNI_BPF_EXIT_SIZE_MASK);
}

/* The next ones of its kind are taken to be like it. */
static __always_inline void uni_exit_remember(
	const struct uni_exit_place *p, const struct uni_bpf_exit_sum *sum)
{
	struct uni_bpf_exit_last last = { .key = p->x->key, .sum = *sum };
	u32 guest = p->v->guest;
	void *lasts = bpf_map_lookup_elem(&exit_lasts, &guest);

	last.sum.exits = 0;
	last.left = p->x->every - 1;
	/* Where there is no room, each exit of that kind is looked at. */
	if (lasts != NULL)
		bpf_map_update_elem(lasts, &p->x->kind, &last, BPF_ANY);
}

static __always_inline void uni_exit_add(
	const struct uni_exit_place *p, u64 host, u64 asleep, u64 stolen)
{
	struct uni_bpf_exit *x = p->x;
	const struct uni_bpf_exit_sum one = {
		.exits = 1, .host_ns = host, .asleep_ns = asleep, .stolen_ns = stolen
	};
	struct uni_bpf_exit_sum *sum;
	u32 guest = p->v->guest;
	void *inner = bpf_map_lookup_elem(&exit_sums, &guest);

	if (inner == NULL)
		return;
	x->key.bucket = uni_exit_bucket(host);
	sum = bpf_map_lookup_elem(inner, &x->key);
	if (sum != NULL)
		uni_exit_sum(sum, 1, &one);
	else if (bpf_map_update_elem(inner, &x->key, &one, BPF_ANY) != 0)
		x->lost++;
	if (x->every > 1)
		uni_exit_remember(p, &one);
}

static __always_inline void uni_exit_end(const struct uni_exit_place *p, u64 now)
{
	struct uni_bpf_exit *x = p->x;
	u64 begin = x->begin_ns, asleep, stolen;

	x->begin_ns = 0;
	if (begin == 0 || x->looked == 0)
		return;
	uni_exit_off(p, now, &asleep, &stolen);
	uni_exit_add(p, now - begin, asleep - x->asleep_ns, stolen - x->stolen_ns);
}

SEC("tp/kvm/kvm_exit")
int uni_kvm_exit(struct trace_event_raw_kvm_exit *ctx)
{
	u64 now = bpf_ktime_get_ns(), rax = 0, rcx = 0;
	unsigned long w = 0;
	struct uni_exit_what what;
	struct uni_exit_place p;

	if (!uni_exit_find(&p))
		return 0;
	/* One that did not end: KVM went on with the next without entering the guest. */
	uni_exit_end(&p, now);
	UNI_CORE(w, uni_exit_vcpu(&p), arch.regs[VCPU_REGS_RAX]);
	rax = w;
	UNI_CORE(w, uni_exit_vcpu(&p), arch.regs[VCPU_REGS_RCX]);
	rcx = w;
	uni_exit_by_cpu(&what, ctx->isa, ctx->exit_reason, ctx->info1, ctx->info2, rax, rcx);
	uni_exit_begin(&p, &what, ctx->guest_rip, what.isa != UNI_EXIT_ISA_KVM, now);
	return 0;
}

SEC("raw_tp/kvm_entry")
int uni_kvm_entry(void *ctx)
{
	struct uni_exit_place p;

	if (uni_exit_find(&p))
		uni_exit_end(&p, bpf_ktime_get_ns());
	return 0;
}

/* KVM_RUN begins (the guest's FPU state is loaded) or ends. */
SEC("raw_tp/kvm_fpu")
int uni_kvm_fpu(u64 *ctx)
{
	struct uni_exit_place p;

	if (ctx[0] != 0 && uni_exit_find(&p) && p.x->by_entry == 0)
		uni_exit_end(&p, bpf_ktime_get_ns());
	return 0;
}

/* Was it that access that KVM saw before? Then the guest's rip of that time is the right one. */
static __always_inline u64 uni_exit_seen_pc(
	const struct uni_bpf_exit *x, const struct uni_exit_what *w)
{
	if (w->info_kind == UNI_EXIT_INFO_NONE || w->info_kind != x->seen_kind ||
		w->info != x->seen_info)
		return 0;
	return x->seen_pc;
}

/* KVM_RUN is about to return: (reason, error). */
SEC("raw_tp/kvm_userspace_exit")
int uni_kvm_userspace_exit(u64 *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct uni_exit_what w;
	struct uni_kvm_run run = { 0 };
	struct uni_exit_place p;
	void *addr = NULL;

	if (!uni_exit_find(&p))
		return 0;
	UNI_CORE(addr, uni_exit_vcpu(&p), run);
	if (addr != NULL)
		bpf_probe_read_kernel(&run, sizeof(run), addr);
	uni_exit_by_run(&w, &run, (u32)ctx[0], (int)ctx[1]);
	if (p.x->begin_ns == 0)
		uni_exit_begin(&p, &w, uni_exit_seen_pc(p.x, &w), false, now);
	else if (p.x->by_entry == 0 && p.x->key.reason == 0)
		p.x->key.reason = w.reason;
	p.x->seen_kind = UNI_EXIT_INFO_NONE;
	uni_exit_more(p.x, &w);
	p.x->key.how |= UNI_BPF_EXIT_USERSPACE;
	return 0;
}

/* An access by the guest: of an exit under way, or one that may become an exit to the VMM. */
static __always_inline void uni_exit_access(u8 kind, u64 info, u8 access, u64 size)
{
	struct uni_exit_place p;
	struct uni_exit_what w;
	unsigned long pc = 0;

	if (!uni_exit_find(&p))
		return;
	uni_exit_set(&w, kind, info, access, size);
	if (p.x->begin_ns != 0) {
		uni_exit_more(p.x, &w);
		return;
	}
	UNI_CORE(pc, uni_exit_vcpu(&p), arch.regs[VCPU_REGS_RIP]);
	p.x->seen_kind = kind;
	p.x->seen_info = info;
	p.x->seen_pc = pc;
}

/* (direction, port, size, count, data) */
SEC("raw_tp/kvm_pio")
int uni_kvm_pio(u64 *ctx)
{
	if ((u32)ctx[0] == UNI_PIO_OUT)
		uni_exit_access(UNI_EXIT_INFO_PORT, (u32)ctx[1], UNI_EXIT_ACCESS_WRITE, ctx[2]);
	return 0;
}

/* (kind, length, GPA, value) */
SEC("raw_tp/kvm_mmio")
int uni_kvm_mmio(u64 *ctx)
{
	uni_exit_access(UNI_EXIT_INFO_MMIO, ctx[2],
		(u32)ctx[0] == UNI_MMIO_WRITE ? UNI_EXIT_ACCESS_WRITE : UNI_EXIT_ACCESS_READ,
		ctx[1]);
	return 0;
}

/* (GPA): a write that an eventfd takes. */
SEC("raw_tp/kvm_fast_mmio")
int uni_kvm_fast_mmio(u64 *ctx)
{
	uni_exit_access(UNI_EXIT_INFO_MMIO, ctx[0], UNI_EXIT_ACCESS_WRITE, 0);
	return 0;
}

/* (ns, slept, valid): a halt inside KVM is over. Where it was an exit, that is under way. */
SEC("raw_tp/kvm_vcpu_wakeup")
int uni_kvm_vcpu_wakeup(u64 *ctx)
{
	struct uni_exit_what w = { .isa = UNI_EXIT_ISA_KVM, .reason = UNI_KVM_EXIT_HLT };
	u64 now = bpf_ktime_get_ns();
	struct uni_exit_place p;

	if (!uni_exit_find(&p) || p.x->begin_ns != 0)
		return 0;
	uni_exit_begin(&p, &w, 0, false, now);
	p.x->begin_ns = 0;
	if (p.x->looked != 0)
		uni_exit_add(&p, ctx[0], ctx[1] != 0 ? ctx[0] : 0, 0);
	return 0;
}
