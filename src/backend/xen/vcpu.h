/* SPDX-License-Identifier: BSD-2-Clause */
/* What differs between machines: the layout of a vCPU's context. */
#ifndef UNI_BACKEND_XEN_VCPU_H
#define UNI_BACKEND_XEN_VCPU_H

#include "arch/arch.h"

#define UNI_XEN_WAIT_BYTES 4u

struct uni_xen_arch {
	const char *machine; /* as uname says */
	const struct uni_arch *arch;
	size_t ctx_bytes; /* struct vcpu_guest_context */
	/* From a context of so many bytes; a PV domain's has other control registers. */
	void (*regs)(const uint8_t *ctx, bool pv, struct uni_regs *ret);
	/* From the same; NULL: there is no more. */
	void (*more)(const uint8_t *ctx, struct uni_more_regs *ret);
	/*
	 * The UNI_XEN_WAIT_BYTES bytes before a pc: may the vCPU wait for an event there, behind an
	 * instruction that halts it, or that calls the hypervisor?
	 */
	bool (*may_wait)(const uint8_t *before);
};

extern const struct uni_xen_arch uni_xen_arch_x86_64, uni_xen_arch_aarch64;

/* The host's, which is its guests' too; NULL: not known. */
const struct uni_xen_arch *uni_xen_arch_of_host(void);

#endif
