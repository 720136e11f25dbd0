/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's facts about a VMM's VM: its memory slots, its vCPUs, the threads that run them, and
 * their state in the scheduler. They are exact, and nothing is stopped for them.
 */
#ifndef UNI_BACKEND_KVM_BPF_SCAN_H
#define UNI_BACKEND_KVM_BPF_SCAN_H

#include "arch/regs.h"
#include "backend/kvm/bpf/object.h"
#include "backend/target.h"

struct uni_kvm_scan {
	uint64_t kvm, generation, clock_offset;
	uint32_t online, tgid, vm_type;
	bool private_memory, protected_regs;
	bool several; /* more than one VM */
	uint32_t nr_slots;
	struct uni_bpf_slot slot[UNI_BPF_SLOTS]; /* joined; the largest first */
	uint32_t nr_left_off;			 /* slots that found no room */
	uint32_t nr_vcpus;
	struct uni_bpf_item vcpu[UNI_VCPU_MAX]; /* by rising id; tid 0: it never ran */
};

/* Returns 0, -UNI_EGONE, -UNI_EPERM, -UNI_ENOENT (it has no VM), or -UNI_EIO. */
int uni_kvm_scan(
	const struct uni_kvm_bpf *b, int pid, struct uni_kvm_scan *ret, struct uni_err *err);

/* The same from the iterator's output. Pure; for tests. -UNI_ENOENT: it has no VM. */
int uni_kvm_scan_parse(const void *data, size_t size, struct uni_kvm_scan *ret);

/* Can its memory and registers be read at all? 0, or -UNI_ENOTSUP with the reason. Pure. */
int uni_kvm_scan_allow(const struct uni_kvm_scan *scan, struct uni_err *err);

/* Does KVM have fresh copies of the control registers that paging depends on? */
static inline bool uni_kvm_scan_has_sys(const struct uni_bpf_regs *r)
{
	const uint32_t sys = UNI_BPF_HAVE_CR0 | UNI_BPF_HAVE_CR3 | UNI_BPF_HAVE_CR4;

	return (r->have & sys) == sys;
}

/* Converts the known registers of a vCPU; in regs.c, which every build has. */
void uni_kvm_scan_regs(const struct uni_bpf_regs *r, struct uni_regs *ret);

#endif
