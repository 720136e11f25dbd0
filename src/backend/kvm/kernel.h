/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel side of one guest: what the kernel knows of it, and samples made there. Works without
 * stopping anything. A build without clang or libbpf has none.
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
	 * Loads and attaches the programs that sample, then those that watch VM exits, and lets go
	 * of all. An err with a code says what was refused.
	 */
	void (*trial)(struct uni_err *sampler_err, struct uni_err *exits_err);
	/* Loads the programs, or takes those of `shared` (may be NULL), and looks at the guest. */
	int (*open)(int pid, struct uni_target_shared *shared, struct uni_kvm_kernel **ret,
		struct uni_err *err);
	void (*close)(struct uni_kvm_kernel *k); /* NULL-safe; ends sampling */

	/* What was seen when it was opened, or looked at again. Borrowed. */
	const struct uni_kvm_scan *(*scan)(const struct uni_kvm_kernel *k);
	int (*look)(struct uni_kvm_kernel *k); /* again. 0, -UNI_EGONE, ... */
	/* Where guest memory is, exactly, as regions with HVAs for cookies. How many. */
	size_t (*regions)(const struct uni_kvm_kernel *k, struct uni_gmem_region *ret, size_t cap);
	/* For uni_vmm_ram_opts.gpa2hva; ctx is the kernel side. */
	int (*gpa2hva)(void *ctx, uint64_t gpa, uint64_t *hva_ret);
	/* Physical places of the image's code, by which it is read while the guest has not set up
	 * paging. */
	void (*keep_text)(struct uni_kvm_kernel *k, const struct uni_text_hint *text, size_t nr);
	/* Control registers, from a sample made another way, for where KVM has no copy. */
	void (*keep_sys)(struct uni_kvm_kernel *k, const struct uni_regs *regs);

	/* As the target's operations. gmem: to copy the image's code. */
	int (*start)(struct uni_kvm_kernel *k, const struct uni_stream_cfg *cfg,
		const struct uni_unwind_hints *hints, struct uni_gmem *gmem,
		const struct uni_arch *arch, struct uni_err *err);
	int (*read)(struct uni_kvm_kernel *k, const struct uni_stream_sink *sink);
	void (*stats)(const struct uni_kvm_kernel *k, struct uni_stream_stats *ret);
	int (*times)(struct uni_kvm_kernel *k, uint32_t vcpu, struct uni_vcpu_times *ret);
	int (*stop)(struct uni_kvm_kernel *k);
};

/* NULL: this build has none, and err says why. */
const struct uni_kvm_kernel_ops *uni_kvm_kernel_ops(struct uni_err *err);

#endif
