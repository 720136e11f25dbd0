/* SPDX-License-Identifier: BSD-2-Clause */
#include "arch/regs.h"

static const char *const names[UNI_VCPU_STATE_NR] = {
	[UNI_VCPU_RUNNING] = "running",
	[UNI_VCPU_HALTED] = "halted",
	[UNI_VCPU_OFFLINE] = "offline",
	[UNI_VCPU_UNKNOWN] = "unknown",
	[UNI_VCPU_KVM] = "kvm",
	[UNI_VCPU_VMM] = "vmm",
	[UNI_VCPU_STOLEN] = "stolen",
	[UNI_OFF_CPU_READY] = "ready",
	[UNI_OFF_CPU_BLOCKED] = "blocked",
	[UNI_OFF_CPU_SLEEPING] = "sleeping",
	[UNI_OFF_CPU_WAITING] = "waiting",
};

const char *uni_vcpu_state_name(unsigned state)
{
	return state < UNI_VCPU_STATE_NR ? names[state] : "unknown";
}
