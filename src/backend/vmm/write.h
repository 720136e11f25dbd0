/* SPDX-License-Identifier: BSD-2-Clause */
/* Patches guest memory that is the memory of a process, while its vCPUs are stopped. */
#ifndef UNI_BACKEND_VMM_WRITE_H
#define UNI_BACKEND_VMM_WRITE_H

#include "mem/gmem.h"
#include "backend/patch.h"
#include "backend/vmm/forced.h"

/*
 * Reads, checks and writes the plan's extents. m is the gmem of that process' guest; its regions'
 * cookies are HVAs. Returns as uni_patch_run(); undoes all writes before a failure. No allocation.
 */
int uni_vmm_patch(int pid, const struct uni_gmem *m, struct uni_patch_plan *p,
	const struct uni_vmm_forced *f);

/*
 * Does all but the writing, before the guest is stopped: code and pages that are needed for the
 * first time may come from a disk. Adds to *f what uni_vmm_patch() needs; the caller owns it.
 */
void uni_vmm_patch_rehearse(
	int pid, const struct uni_gmem *m, struct uni_patch_plan *p, struct uni_vmm_forced *f);

#endif
