/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guest RAM that is mapped in a local VMM process: found, proved, and read by copying
 * (process_vm_readv). Shared by every target whose VMM is a process of this host.
 */
#ifndef UNI_BACKEND_VMM_RAM_H
#define UNI_BACKEND_VMM_RAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/err.h"
#include "mem/gmem.h"
#include "backend/target.h"

struct uni_vmm_ram_opts {
	const struct uni_arch *arch; /* NULL: x86_64 */

	/* The image, to search for and to prove by; borrowed during the call. Only exec ranges that
	 * are not empty count. */
	const struct uni_text_hint *text;
	size_t nr_text;
	bool anywhere; /* as in struct uni_attach_opts */

	/* Registers of the vCPUs (nr_regs of them, those in state OFFLINE or UNKNOWN are passed
	 * over), for the proof by page walk; nr_regs 0: no such proof. Borrowed. */
	const struct uni_regs *regs;
	size_t nr_regs;

	/* Asks the VMM where a GPA is mapped (QMP's gpa2hva): 0, or negative when it is not RAM.
	 * NULL: RAM is found by the image alone. The answer is proved like a found one when there
	 * is text. */
	int (*gpa2hva)(void *ctx, uint64_t gpa, uint64_t *hva_ret);
	void *gpa2hva_ctx;
};

enum uni_vmm_ram_proof {
	/* The executable bytes of the image are there, but for nr_differ. Where some differ,
	 * another proof is always with it. */
	UNI_RAM_PROOF_TEXT = 1u << 0,
	UNI_RAM_PROOF_WALK = 1u << 1, /* a vCPU's page tables lead to them */
	UNI_RAM_PROOF_VMM = 1u << 2,  /* the VMM itself said where it is */
};

struct uni_vmm_ram_info {
	uint64_t hva0;	     /* where GPA 0 is, or would be, in the VMM */
	uint64_t size_bytes; /* guest bytes that can be read, all regions */
	unsigned proof;	     /* enum uni_vmm_ram_proof */
	uint32_t nr_hits;    /* places that began like the image */
	uint64_t nr_differ;  /* bytes of code that the guest changed */
	uint64_t scan_ns;
	char note[160]; /* one line for reports: "RAM by image scan: 64 MiB ..." */
};

/*
 * Finds the RAM of the guest that process pid runs, and makes a physical gmem of it. info_ret may
 * be NULL. The gmem's read returns -UNI_EGONE once the process ended and -UNI_EFAULT for pages that
 * the VMM does not back. Works while vCPUs run or are held; the process is only read.
 *
 * -UNI_EGONE, -UNI_EPERM, -UNI_EMISMATCH (the image is not in that guest: err says what was tried),
 * -UNI_EINVAL (neither text nor gpa2hva given).
 */
int uni_vmm_ram_attach(int pid, const struct uni_vmm_ram_opts *opts, struct uni_gmem **ret,
	struct uni_vmm_ram_info *info_ret, struct uni_err *err);

#endif
