/* SPDX-License-Identifier: BSD-2-Clause */
/* The difference between machines: the layout of a vCPU's context. */
#ifndef UNI_BACKEND_XEN_VCPU_H
#define UNI_BACKEND_XEN_VCPU_H

#include "arch/arch.h"

#define UNI_XEN_WAIT_BYTES 4u

struct uni_xen_arch {
	const char *machine; /* as in uname */
	const struct uni_arch *arch;
	size_t ctx_bytes; /* struct vcpu_guest_context */
	/* Converts a context of ctx_bytes; a PV domain has other control registers. */
	void (*regs)(const uint8_t *ctx, bool pv, struct uni_regs *ret);
	/* Converts further registers; NULL: there are none. */
	void (*more)(const uint8_t *ctx, struct uni_more_regs *ret);
	/*
	 * before: the UNI_XEN_WAIT_BYTES bytes before a pc. Can a vCPU wait for an event there?
	 * That is behind an instruction that halts it, or that calls the hypervisor.
	 */
	bool (*may_wait)(const uint8_t *before);
};

extern const struct uni_xen_arch uni_xen_arch_x86_64, uni_xen_arch_aarch64;

/* The host's, which its guests have, too; NULL: not known. */
const struct uni_xen_arch *uni_xen_arch_of_host(void);

#endif
