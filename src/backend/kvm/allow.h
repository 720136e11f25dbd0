/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * May kvm_valid_regs of a VMM be set? If the guest's state is protected (SEV-ES, SEV-SNP, TDX), KVM
 * refuses any bit there with -EINVAL, and the VMM would die. So this is proved first; in doubt the
 * answer is no.
 */
#ifndef UNI_BACKEND_KVM_ALLOW_H
#define UNI_BACKEND_KVM_ALLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "backend/vmm/cmdline.h"
#include "backend/vmm/fds.h"

/* The properties of this host's KVM. */
struct uni_kvm_host {
	int sync_regs;	  /* KVM_CAP_SYNC_REGS of a VM made for this check; bits, or negative */
	int vm_types;	  /* KVM_CAP_VM_TYPES: bit n = type n; 0 unknown */
	char sev_es, tdx; /* module parameters: 'Y', 'N'; 0: there is no such module; '?': not
			     readable */
	bool other;	  /* a KVM that is neither Intel's nor AMD's */
};

/* Opens /dev/kvm, or uses the VMM's own file if opening is not permitted. */
int uni_kvm_host_read(int pidfd, int vmm_kvm_fd, struct uni_kvm_host *ret, struct uni_err *err);

/* Returns 0, or -UNI_ENOTSUP with the reason. Pure: uses only its arguments. */
int uni_kvm_allow(const struct uni_kvm_host *host, const struct uni_vmm_cmdline *cmdline,
	const struct uni_vmm_fds *fds, struct uni_err *err);

#endif
