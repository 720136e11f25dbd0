/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Facts from a VMM's open files. An anonymous file "kvm-vm" is a VM with its memory slots;
 * "kvm-vcpu:N" is a vCPU with the thread that runs it. Only reads.
 */
#ifndef UNI_BACKEND_KVM_BPF_ITER_BPF_H
#define UNI_BACKEND_KVM_BPF_ITER_BPF_H

#include "backend/kvm/bpf/guest.bpf.h"

#define ANON_INODE_MAGIC 0x09041934
#define BUCKET_MAX	 1024 /* slots in one bucket of the hash; more are invalid */
#define PAGE_SHIFT	 12
#define MM_MAX		 32767 /* KVM's limit of slots */

/* The state of the search for slots; its pointers are the kernel's. */
struct slot_walk {
	struct seq_file *seq;
	const struct kvm *kvm;
	const struct kvm_memslots *ms;
	const struct hlist_node *node;
	u32 idx; /* which of the two sets of links is in use */
};

/*
 * The head of struct uni_bpf_item, for a slot and for a VM: the largest part would take up most of
 * the stack.
 */
struct slot_item {
	u32 kind, id;
	u64 kvm;
	struct uni_bpf_item_slot slot;
};

struct vm_item {
	u32 kind, id;
	u64 kvm;
	struct uni_bpf_item_vm vm;
};

_Static_assert(sizeof(struct slot_item) == UNI_BPF_ITEM_SIZE(slot), "a head of 16 bytes");
_Static_assert(sizeof(struct vm_item) == UNI_BPF_ITEM_SIZE(vm), "a head of 16 bytes");

static __always_inline void emit_slot(const struct slot_walk *w, const struct kvm_memory_slot *slot)
{
	struct slot_item item = { .kind = UNI_BPF_ITEM_SLOT, .kvm = (u64)w->kvm };
	unsigned long n = 0;
	u64 gfn = 0;
	short id = 0;

	UNI_CORE(gfn, slot, base_gfn);
	item.slot.gpa = gfn << PAGE_SHIFT;
	UNI_CORE(n, slot, npages);
	item.slot.size = (u64)n << PAGE_SHIFT;
	UNI_CORE(n, slot, userspace_addr);
	item.slot.hva = n;
	UNI_CORE(item.slot.flags, slot, flags);
	UNI_CORE(id, slot, id);
	item.id = (u32)id;
	bpf_seq_write(w->seq, &item, sizeof(item));
}

static long node_step(u32 i, struct slot_walk *w)
{
	const struct hlist_node *node = w->node;
	u64 at = (u64)node - UNI_OFFSETOF(struct kvm_memory_slot, id_node);

	if (node == NULL)
		return 1;
	emit_slot(w, (const struct kvm_memory_slot *)(at - w->idx * UNI_SIZEOF(struct hlist_node)));
	UNI_CORE(w->node, node, next);
	return 0;
}

static long bucket_step(u32 i, struct slot_walk *w)
{
	u64 bucket = (u64)w->ms + UNI_OFFSETOF(struct kvm_memslots, id_hash) + i * sizeof(u64);

	w->node = NULL;
	bpf_probe_read_kernel(&w->node, sizeof(w->node), (const void *)bucket);
	bpf_loop(BUCKET_MAX, node_step, w, 0);
	return 0;
}

static long array_step(u32 i, struct slot_walk *w)
{
	u64 at = (u64)w->ms + UNI_OFFSETOF(struct kvm_memslots___array, memslots) +
		 i * UNI_SIZEOF(struct kvm_memory_slot);

	emit_slot(w, (const struct kvm_memory_slot *)at);
	return 0;
}

static __always_inline void walk_slots(struct slot_walk *w)
{
	const struct kvm_memslots *ms = w->ms;
	const struct kvm_memslots___array *old = (const void *)ms;
	int n = 0;

	if (UNI_HAS(ms->id_hash)) {
		UNI_CORE(n, ms, node_idx);
		w->idx = (u32)n & 1;
		bpf_loop(UNI_KVM_ID_HASH, bucket_step, w, 0);
	} else if (UNI_HAS(old->used_slots)) {
		UNI_CORE(n, old, used_slots);
		bpf_loop((u32)n & MM_MAX, array_step, w, 0);
	}
}

UNI_APART void emit_vm(struct seq_file *seq, const struct kvm *kvm)
{
	struct vm_item item = { .kind = UNI_BPF_ITEM_VM, .kvm = (u64)kvm };
	struct slot_walk w = { .seq = seq, .kvm = kvm };
	const struct kvm_memslots *ms = NULL;
	bool flag = false;

	UNI_CORE(ms, kvm, memslots[0]);
	UNI_CORE(item.vm.generation, ms, generation);
	UNI_CORE(item.vm.online, kvm, online_vcpus.counter);
	UNI_CORE(item.vm.tgid, kvm, userspace_pid);
	if (UNI_HAS(kvm->arch.kvmclock_offset))
		UNI_CORE(item.vm.clock_offset, kvm, arch.kvmclock_offset);
	if (UNI_HAS(kvm->arch.vm_type)) {
		u8 type = 0;

		UNI_CORE(type, kvm, arch.vm_type);
		item.vm.vm_type = type;
	}
	if (UNI_HAS(kvm->arch.has_private_mem)) {
		UNI_CORE(flag, kvm, arch.has_private_mem);
		item.vm.has_private = flag;
	}
	if (UNI_HAS(kvm->arch.has_protected_state)) {
		UNI_CORE(flag, kvm, arch.has_protected_state);
		item.vm.has_protected = flag;
	}
	bpf_seq_write(seq, &item, sizeof(item));
	w.ms = ms;
	if (ms != NULL)
		walk_slots(&w);
}

/* numbers[] has one element for each pid namespace around it, the host's first. */
static __always_inline u32 number_of(const struct pid *pid, u32 level)
{
	int n = 0;

	bpf_probe_read_kernel(&n, sizeof(n),
		(const void *)((u64)pid + UNI_OFFSETOF(struct pid, numbers) +
			       level * UNI_SIZEOF(struct upid)));
	return (u32)n;
}

/* The namespace of whoever reads this file; 0, no thread's number, if it cannot see this one. */
static __always_inline u32 readers_number(const struct pid *pid)
{
	const struct task_struct *reader = bpf_get_current_task_btf();
	const struct pid *own = NULL;
	u32 level = 0, most = 0;

	UNI_CORE(own, reader, thread_pid);
	UNI_CORE(level, own, level);
	UNI_CORE(most, pid, level);
	return level <= most ? number_of(pid, level) : 0;
}

/* The thread that runs the vCPU, and its state in the scheduler. */
static __always_inline void fill_task(struct uni_bpf_item *item, const struct kvm_vcpu *v)
{
	const struct task_struct *t = NULL;
	const struct hlist_node *node = NULL;
	const struct cfs_rq *cfs = NULL;
	const struct rq *rq = NULL;
	const struct pid *pid = NULL;
	unsigned char delayed = 0;

	UNI_CORE(pid, v, pid);
	if (pid == NULL)
		return;
	item->vcpu.tid = readers_number(pid);
	item->vcpu.host_tid = number_of(pid, 0);
	UNI_CORE(node, pid, tasks[0].first);
	if (node == NULL)
		return;
	t = (const void *)((u64)node - UNI_OFFSETOF(struct task_struct, pid_links));
	item->vcpu.now_ns = bpf_ktime_get_ns();
	UNI_CORE(cfs, t, se.cfs_rq);
	UNI_CORE(rq, cfs, rq);
	UNI_CORE(item->vcpu.clock, rq, clock);
	UNI_CORE(item->vcpu.arrival, t, sched_info.last_arrival);
	UNI_CORE(item->vcpu.queued, t, sched_info.last_queued);
	UNI_CORE(item->vcpu.delay, t, sched_info.run_delay);
	UNI_CORE(item->vcpu.exec_ns, t, se.sum_exec_runtime);
	UNI_CORE(item->vcpu.on_cpu, t, on_cpu);
	UNI_CORE(item->vcpu.on_rq, t, on_rq);
	if (UNI_HAS(t->se.sched_delayed))
		UNI_CORE(delayed, t, se.sched_delayed);
	if (delayed != 0)
		item->vcpu.on_rq = 0;
}

UNI_APART void emit_vcpu(struct seq_file *seq, const struct kvm_vcpu *v)
{
	struct uni_bpf_item item = { .kind = UNI_BPF_ITEM_VCPU };
	bool flag = false;
	int id = 0;

	UNI_CORE(item.kvm, v, kvm);
	UNI_CORE(id, v, vcpu_id);
	item.id = (u32)id;
	item.vcpu.vcpu = (u64)v;
	if (UNI_HAS(v->arch.guest_state_protected))
		UNI_CORE(flag, v, arch.guest_state_protected);
	item.vcpu.protected_regs = flag;
	fill_task(&item, v);
	uni_regs_read(v, &item.vcpu.regs);
	bpf_seq_write(seq, &item, UNI_BPF_ITEM_SIZE(vcpu));
}

int uni_files(struct bpf_iter__task_file *ctx); /* -Wmissing-prototypes, where it is tested */

SEC("iter/task_file")
int uni_files(struct bpf_iter__task_file *ctx)
{
	struct file *f = ctx->file;
	char name[16] = { 0 };

	if (f == NULL || ctx->task == NULL || f->f_inode->i_sb->s_magic != ANON_INODE_MAGIC)
		return 0;
	bpf_probe_read_kernel_str(name, sizeof(name), f->f_path.dentry->d_name.name);
	if (name[0] != 'k' || name[1] != 'v' || name[2] != 'm' || name[3] != '-' || name[4] != 'v')
		return 0;
	if (name[5] == 'm' && name[6] == '\0')
		emit_vm(ctx->meta->seq, f->private_data);
	else if (name[5] == 'c' && name[6] == 'p' && name[7] == 'u' && name[8] == ':')
		emit_vcpu(ctx->meta->seq, f->private_data);
	return 0;
}

#endif
