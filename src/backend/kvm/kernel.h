/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel side of one guest: the kernel's facts about it, and samples made in the kernel. Works
 * without stopping anything. A build without clang or libbpf has no kernel side.
 */
#ifndef UNI_BACKEND_KVM_KERNEL_H
#define UNI_BACKEND_KVM_KERNEL_H

#include "base/err.h"
#include "mem/gmem.h"
#include "backend/kvm/bpf/scan.h"
#include "backend/target.h"

struct uni_kvm_kernel;

struct uni_kvm_kernel_ops {
	/*
	 * Loads and attaches the programs that sample, then (exits_err is not NULL) those that
	 * watch VM exits, and unloads them all. An err with a code says what was refused.
	 */
	void (*trial)(struct uni_err *sampler_err, struct uni_err *exits_err);
	/* Loads the programs, or uses those of `shared` (may be NULL), and looks at the guest. */
	int (*open)(int pid, struct uni_target_shared *shared, struct uni_kvm_kernel **ret,
		struct uni_err *err);
	/*
	 * Loads the programs for `shared`, and makes all that later needs rights (exits: for VM
	 * exits, too). From then on this process needs none.
	 */
	int (*hand_over)(
		int pid, struct uni_target_shared *shared, bool exits, struct uni_err *err);
	void (*close)(struct uni_kvm_kernel *k); /* NULL-safe; ends sampling */

	/* The facts from opening it, or from the last look. Borrowed. */
	const struct uni_kvm_scan *(*scan)(const struct uni_kvm_kernel *k);
	int (*look)(struct uni_kvm_kernel *k); /* again. 0, -UNI_EGONE, ... */
	/* Guest memory exactly, as regions with HVAs for cookies. Returns their number. */
	size_t (*regions)(const struct uni_kvm_kernel *k, struct uni_gmem_region *ret, size_t cap);
	/* For uni_vmm_ram_opts.gpa2hva; ctx is the kernel side. */
	int (*gpa2hva)(void *ctx, uint64_t gpa, uint64_t *hva_ret);
	/*
	 * Keeps the physical addresses of the image's code, to read it until the guest has set up
	 * paging.
	 */
	void (*keep_text)(struct uni_kvm_kernel *k, const struct uni_text_hint *text, size_t nr);
	/*
	 * Keeps control registers from a sample made in another way, in case KVM has no copy of
	 * them.
	 */
	void (*keep_sys)(struct uni_kvm_kernel *k, const struct uni_regs *regs);

	/* As the target's operations. gmem is used to copy the image's code. */
	int (*start)(struct uni_kvm_kernel *k, const struct uni_stream_cfg *cfg,
		const struct uni_unwind_hints *hints, struct uni_gmem *gmem,
		const struct uni_arch *arch, struct uni_err *err);
	int (*read)(struct uni_kvm_kernel *k, const struct uni_stream_sink *sink);
	void (*stats)(const struct uni_kvm_kernel *k, struct uni_stream_stats *ret);
	int (*times)(struct uni_kvm_kernel *k, uint32_t vcpu, struct uni_vcpu_times *ret);
	int (*stop)(struct uni_kvm_kernel *k);
	bool (*back)(struct uni_kvm_kernel *k, struct uni_stream_back *ret);
};

/* NULL: this build has no kernel side; err says why. */
const struct uni_kvm_kernel_ops *uni_kvm_kernel_ops(struct uni_err *err);

#endif
