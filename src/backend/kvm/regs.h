/* SPDX-License-Identifier: BSD-2-Clause */
/* KVM's register structures -> ours. */
#ifndef UNI_BACKEND_KVM_REGS_H
#define UNI_BACKEND_KVM_REGS_H

#include <linux/kvm.h>

#include "arch/regs.h"

/* Fills all general and system registers and their valid bits; leaves the state alone. */
void uni_kvm_regs_convert(
	const struct kvm_regs *regs, const struct kvm_sregs *sregs, struct uni_regs *ret);

#endif
