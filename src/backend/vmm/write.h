/* SPDX-License-Identifier: BSD-2-Clause */
/* Patching guest memory that is the memory of a process, while its vCPUs stand. */
#ifndef UNI_BACKEND_VMM_WRITE_H
#define UNI_BACKEND_VMM_WRITE_H

#include "mem/gmem.h"
#include "backend/patch.h"
#include "backend/vmm/forced.h"

/*
 * Reads, checks and writes the plan's extents; m is the gmem of that process' guest, its regions'
 * cookies are where they lie in it. Returns as uni_patch_run(); what was written before a failure
 * is taken back. No allocation.
 */
int uni_vmm_patch(int pid, const struct uni_gmem *m, struct uni_patch_plan *p,
	const struct uni_vmm_forced *f);

/* All but the writing, before the guest is stopped: code and pages that are needed for the first
 * time come from a disk, maybe. *f is added what uni_vmm_patch() needs; it is the caller's. */
void uni_vmm_patch_rehearse(
	int pid, const struct uni_gmem *m, struct uni_patch_plan *p, struct uni_vmm_forced *f);

#endif
