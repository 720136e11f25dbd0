/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The kernel's structures, with only the members that are used. The loader finds their places in
 * the running kernel from its BTF (CO-RE). Names with ___ are other forms that a structure has had.
 */
#ifndef UNI_BACKEND_KVM_BPF_KERNEL_BPF_H
#define UNI_BACKEND_KVM_BPF_KERNEL_BPF_H

#ifdef __bpf__
#define UNI_RELOC __attribute__((preserve_access_index))
#else
#define UNI_RELOC
#endif

struct hlist_node {
	struct hlist_node *next;
} UNI_RELOC;

struct hlist_head {
	struct hlist_node *first;
} UNI_RELOC;

/* Tasks and time. */

struct rq {
	u64 clock;
} UNI_RELOC;

struct cfs_rq {
	struct rq *rq;
} UNI_RELOC;

struct sched_entity {
	u64 sum_exec_runtime;
	unsigned char sched_delayed;
	struct cfs_rq *cfs_rq;
} UNI_RELOC;

struct sched_info {
	unsigned long long run_delay;
	unsigned long long last_arrival;
	unsigned long long last_queued;
} UNI_RELOC;

struct upid {
	int nr;
} UNI_RELOC;

struct pid {
	unsigned int level;
	struct hlist_head tasks[4];
	struct upid numbers[1];
} UNI_RELOC;

struct task_struct {
	int on_cpu;
	int on_rq;
	struct sched_entity se;
	struct sched_info sched_info;
	int pid;
	int tgid;
	struct hlist_node pid_links[4];
	struct pid *thread_pid;
} UNI_RELOC;

struct pt_regs {
	unsigned long si;
	unsigned long orig_ax;
} UNI_RELOC;

/* Files. */

struct qstr {
	const unsigned char *name;
} UNI_RELOC;

struct dentry {
	struct qstr d_name;
} UNI_RELOC;

struct path {
	struct dentry *dentry;
} UNI_RELOC;

struct super_block {
	unsigned long s_magic;
} UNI_RELOC;

struct inode {
	struct super_block *i_sb;
} UNI_RELOC;

struct file {
	void *private_data;
	struct inode *f_inode;
	struct path f_path;
} UNI_RELOC;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} UNI_RELOC;

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
} UNI_RELOC;

/* KVM. */

struct kvm_memory_slot {
	struct hlist_node id_node[2];
	u64 base_gfn;
	unsigned long npages;
	unsigned long userspace_addr;
	u32 flags;
	short id;
} UNI_RELOC;

#define UNI_KVM_ID_HASH 128 /* buckets of id_hash[] */

struct kvm_memslots {
	u64 generation;
	struct hlist_head id_hash[UNI_KVM_ID_HASH];
	int node_idx;
} UNI_RELOC;

/* Before Linux 5.17. */
struct kvm_memslots___array {
	u64 generation;
	int used_slots;
	struct kvm_memory_slot memslots[1];
} UNI_RELOC;

typedef struct {
	int counter;
} atomic_t;

struct kvm_arch {
	long long kvmclock_offset;
	u8 vm_type;
	_Bool has_private_mem;
	_Bool has_protected_state;
} UNI_RELOC;

struct kvm {
	struct kvm_memslots *memslots[1];
	atomic_t online_vcpus;
	struct kvm_arch arch;
	int userspace_pid;
} UNI_RELOC;

/* x86: indices of arch.regs[] and bits of arch.regs_avail. */
enum kvm_reg {
	VCPU_REGS_RAX = 0,
	VCPU_REGS_RCX = 1,
	VCPU_REGS_RBX = 3,
	VCPU_REGS_RSP = 4,
	VCPU_REGS_RBP = 5,
	VCPU_REGS_R12 = 12,
	VCPU_REGS_R13 = 13,
	VCPU_REGS_R14 = 14,
	VCPU_REGS_R15 = 15,
	VCPU_REGS_RIP = 16,
	VCPU_EXREG_CR0 = 18,
	VCPU_EXREG_CR3 = 19,
	VCPU_EXREG_CR4 = 20,
};

struct kvm_vcpu_arch {
	unsigned long regs[17];
	u32 regs_avail;
	unsigned long cr0;
	unsigned long cr3;
	unsigned long cr4;
	u64 efer;
	u8 handling_intr_from_guest;
	_Bool guest_state_protected;
} UNI_RELOC;

struct kvm_vcpu {
	struct kvm *kvm;
	int vcpu_id;
	struct pid *pid;
	void *run; /* struct kvm_run, see exit_what.bpf.h */
	struct kvm_vcpu_arch arch;
} UNI_RELOC;

/* arm64: arch.ctxt has what x86 has in arch.regs[]. */
struct user_pt_regs___arm64 {
	u64 regs[31];
	u64 sp;
	u64 pc;
} UNI_RELOC;

struct kvm_cpu_context___arm64 {
	struct user_pt_regs___arm64 regs;
} UNI_RELOC;

struct kvm_vcpu_arch___arm64 {
	struct kvm_cpu_context___arm64 ctxt;
} UNI_RELOC;

struct kvm_vcpu___arm64 {
	struct kvm_vcpu_arch___arm64 arch;
} UNI_RELOC;

#endif
