/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guest RAM that a local VMM process maps: finds it, proves it, and reads it by copying
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

	/*
	 * The image, for the search and the proof; borrowed during the call. Only exec ranges that
	 * are not empty are used.
	 */
	const struct uni_text_hint *text;
	size_t nr_text;
	bool anywhere;		 /* as in struct uni_attach_opts */
	bool (*over)(void *ctx); /* the same */
	void *over_ctx;

	/*
	 * Registers of the vCPUs (nr_regs; vCPUs in state OFFLINE or UNKNOWN are skipped), for the
	 * proof by page walk. nr_regs 0: no such proof. Borrowed.
	 */
	const struct uni_regs *regs;
	size_t nr_regs;

	/*
	 * Asks the VMM for the HVA of a GPA (QMP's gpa2hva): 0, or negative if it is no RAM. NULL:
	 * only the image is used. If there is text, the reply is proved like a search result.
	 */
	int (*gpa2hva)(void *ctx, uint64_t gpa, uint64_t *hva_ret);
	void *gpa2hva_ctx;
};

enum uni_vmm_ram_proof {
	/*
	 * The executable bytes of the image are there, except for nr_differ. If some differ,
	 * another proof is always set as well.
	 */
	UNI_RAM_PROOF_TEXT = 1u << 0,
	UNI_RAM_PROOF_WALK = 1u << 1, /* a vCPU's page tables lead to them */
	UNI_RAM_PROOF_VMM = 1u << 2,  /* the VMM itself gave the place */
};

struct uni_vmm_ram_info {
	uint64_t hva0;	     /* where GPA 0 is in the VMM, or would be */
	uint64_t size_bytes; /* readable bytes of the guest, all regions */
	unsigned proof;	     /* enum uni_vmm_ram_proof */
	uint32_t nr_hits;    /* places that start like the image */
	uint64_t nr_differ;  /* bytes of code that the guest changed */
	uint64_t scan_ns;
	char note[160]; /* one line for reports: "RAM by image scan: 64 MiB ..." */
};

/*
 * Finds the RAM of process pid's guest, and makes a physical gmem of it. info_ret may be NULL. The
 * gmem's read returns -UNI_EGONE once the process has ended, and -UNI_EFAULT for pages that the VMM
 * does not back. Works while vCPUs run or are held, and only reads the process.
 * Errors: -UNI_EGONE; -UNI_EPERM; -UNI_EMISMATCH: the image is not in that guest (err has the
 * attempts); -UNI_EINVAL: neither text nor gpa2hva is given.
 */
int uni_vmm_ram_attach(int pid, const struct uni_vmm_ram_opts *opts, struct uni_gmem **ret,
	struct uni_vmm_ram_info *info_ret, struct uni_err *err);

#endif
