/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * VM exits, each with the guest's call chain that caused it, and the time until the guest went on.
 *
 * With VMX and SVM, an exit begins at the trace point kvm_exit and ends at kvm_entry. The classic
 * form of kvm_exit is used, not the raw form. To fill the classic form's record, KVM reads the
 * guest's rip; so on VMX arch.regs[] has rip, too. The record also has the exit's qualification.
 *
 * A software KVM that emulates the guest's instructions has no such exits. There, an exit begins
 * when KVM_RUN returns to the VMM (kvm_userspace_exit). It ends when KVM_RUN is called again
 * (kvm_fpu: first of all, the guest's FPU state is loaded). kvm_vcpu_wakeup reports a halt inside
 * KVM. By then rip may be behind the instruction; if kvm_pio or kvm_mmio saw it before, their rip
 * is used.
 *
 * All of it happens in the vCPU's thread, so nothing here is shared. The sampler measures the times
 * that the thread was off the CPU.
 */
#include "backend/kvm/bpf/record.bpf.h"

#include "backend/kvm/bpf/exit_logic.bpf.h"

struct trace_event_raw_kvm_exit {
	unsigned int exit_reason;
	unsigned long guest_rip;
	u32 isa;
	u64 info1;
	u64 info2;
} UNI_RELOC;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* For trace points: values of their arguments. */
#define UNI_PIO_OUT    1
#define UNI_MMIO_WRITE 2

/* From the kernel's number of a vCPU's thread to the vCPU's index in "vcpus". */
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

UNI_PER_GUEST(exit_sums, UNI_INNER_HASH(struct uni_bpf_exit_key, struct uni_bpf_exit_sum));

/* Only for guests in which not every exit is examined. */
UNI_PER_GUEST(exit_lasts, UNI_INNER_HASH(struct uni_bpf_exit_kind, struct uni_bpf_exit_last));

/* False: this thread runs no vCPU that is watched. */
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

static __always_inline u64 uni_exit_now(void)
{
	return bpf_ktime_get_ns();
}

static __always_inline void uni_exit_off(
	const struct uni_exit_place *p, u64 now, u64 *asleep, u64 *stolen)
{
	struct uni_off_time t;

	uni_off_since(p->g, p->v, bpf_get_current_task_btf(), now, &t);
	*asleep = p->v->idle_ns + t.idle_ns;
	*stolen = p->v->stolen_ns + t.stolen_ns;
}

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

static __always_inline struct uni_bpf_exit_sum *uni_exit_sum_of(
	const struct uni_exit_place *p, const struct uni_bpf_exit_key *key)
{
	return UNI_OF_GUEST(exit_sums, p->v->guest, key);
}

static __always_inline bool uni_exit_sum_new(const struct uni_exit_place *p,
	const struct uni_bpf_exit_key *key, const struct uni_bpf_exit_sum *sum)
{
	u32 guest = p->v->guest;
	void *sums = bpf_map_lookup_elem(&exit_sums, &guest);

	return sums != NULL && bpf_map_update_elem(sums, key, sum, BPF_ANY) == 0;
}

static __always_inline struct uni_bpf_exit_last *uni_exit_last_of(
	const struct uni_exit_place *p, const struct uni_bpf_exit_kind *kind)
{
	return UNI_OF_GUEST(exit_lasts, p->v->guest, kind);
}

static __always_inline void uni_exit_last_set(const struct uni_exit_place *p,
	const struct uni_bpf_exit_kind *kind, const struct uni_bpf_exit_last *last)
{
	u32 guest = p->v->guest;
	void *lasts = bpf_map_lookup_elem(&exit_lasts, &guest);

	if (lasts != NULL)
		bpf_map_update_elem(lasts, kind, last, BPF_ANY);
}

/* The reason of the exit, as the CPU states it. */
UNI_APART void uni_exit_seen(const struct uni_exit_place *p,
	const struct trace_event_raw_kvm_exit *ctx, struct uni_exit_what *ret)
{
	unsigned long rax = 0, rcx = 0;

	UNI_CORE(rax, uni_exit_vcpu(p), arch.regs[VCPU_REGS_RAX]);
	UNI_CORE(rcx, uni_exit_vcpu(p), arch.regs[VCPU_REGS_RCX]);
	uni_exit_by_cpu(ret, ctx->isa, ctx->exit_reason, ctx->info1, ctx->info2, rax, rcx);
}

SEC("tp/kvm/kvm_exit")
int uni_kvm_exit(struct trace_event_raw_kvm_exit *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct uni_exit_place p;
	struct uni_exit_what w;

	if (!uni_exit_find(&p))
		return 0;
	uni_exit_seen(&p, ctx, &w);
	uni_exit_on_exit(&p, &w, ctx->guest_rip, now);
	return 0;
}

SEC("raw_tp/kvm_entry")
int uni_kvm_entry(void *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct uni_exit_place p;

	if (uni_exit_find(&p))
		uni_exit_end(&p, now);
	return 0;
}

/* (load): KVM_RUN begins and loads the guest's FPU state, or KVM_RUN ends. */
SEC("raw_tp/kvm_fpu")
int uni_kvm_fpu(const u64 *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct uni_exit_place p;

	if (ctx[0] != 0 && uni_exit_find(&p))
		uni_exit_on_run(&p, now);
	return 0;
}

/* The reason why KVM_RUN returns, as the VMM is told. */
UNI_APART void uni_exit_told(
	const struct uni_exit_place *p, u32 reason, int error, struct uni_exit_what *ret)
{
	struct uni_kvm_run run = { 0 };
	void *addr = NULL;

	UNI_CORE(addr, uni_exit_vcpu(p), run);
	if (addr != NULL)
		bpf_probe_read_kernel(&run, sizeof(run), addr);
	uni_exit_by_run(ret, &run, reason, error);
}

/* (reason, error) */
SEC("raw_tp/kvm_userspace_exit")
int uni_kvm_userspace_exit(u64 *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct uni_exit_place p;
	struct uni_exit_what w;

	if (!uni_exit_find(&p))
		return 0;
	uni_exit_told(&p, (u32)ctx[0], (int)ctx[1], &w);
	uni_exit_on_return(&p, &w, now);
	return 0;
}

/* (direction, port, size, count, data) */
SEC("raw_tp/kvm_pio")
int uni_kvm_pio(u64 *ctx)
{
	struct uni_exit_place p;

	if ((u32)ctx[0] == UNI_PIO_OUT && uni_exit_find(&p))
		uni_exit_on_access(
			&p, UNI_EXIT_INFO_PORT, (u32)ctx[1], UNI_EXIT_ACCESS_WRITE, ctx[2]);
	return 0;
}

/* (kind, length, GPA, value) */
SEC("raw_tp/kvm_mmio")
int uni_kvm_mmio(u64 *ctx)
{
	struct uni_exit_place p;

	if (uni_exit_find(&p))
		uni_exit_on_access(&p, UNI_EXIT_INFO_MMIO, ctx[2],
			(u32)ctx[0] == UNI_MMIO_WRITE ? UNI_EXIT_ACCESS_WRITE
						      : UNI_EXIT_ACCESS_READ,
			ctx[1]);
	return 0;
}

/* (GPA): a write that an eventfd takes. */
SEC("raw_tp/kvm_fast_mmio")
int uni_kvm_fast_mmio(u64 *ctx)
{
	struct uni_exit_place p;

	if (uni_exit_find(&p))
		uni_exit_on_access(&p, UNI_EXIT_INFO_MMIO, ctx[0], UNI_EXIT_ACCESS_WRITE, 0);
	return 0;
}

/* (ns, slept, valid) */
SEC("raw_tp/kvm_vcpu_wakeup")
int uni_kvm_vcpu_wakeup(u64 *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct uni_exit_place p;

	if (uni_exit_find(&p))
		uni_exit_on_wakeup(&p, ctx[0], ctx[1] != 0, now);
	return 0;
}
