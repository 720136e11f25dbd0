/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes memory of a VMM that the VMM has mapped read-only for itself. solo5-hvt does so with its
 * guest's code, so that the guest cannot change it. A debugger still can. For a private mapping it
 * uses /proc/PID/mem (ptrace(2)). For a shared mapping it uses the mapped file (proc(5),
 * map_files), if that is memory without a name in any folder.
 */
#ifndef UNI_BACKEND_VMM_FORCED_H
#define UNI_BACKEND_VMM_FORCED_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct uni_vmm_maps;

struct uni_vmm_forced_map {
	uint64_t start, size, offset; /* HVA, bytes; offset of `start` in fd */
	int fd;
};

struct uni_vmm_forced {
	UNI_VEC(struct uni_vmm_forced_map) map;
};

/*
 * If [hva, hva + len) is mapped read-only, opens a way to write there. Call it once for all ranges;
 * maps are those of the process. A range without such a way is left out. Returns 0 or -UNI_ENOMEM.
 */
int uni_vmm_forced_add(struct uni_vmm_forced *f, int pid, const struct uni_vmm_maps *maps,
	uint64_t hva, size_t len);
void uni_vmm_forced_deinit(struct uni_vmm_forced *f);

/* Returns 0 or -UNI_EFAULT. No allocation. Writes the writable parts in the usual way. */
int uni_vmm_forced_write(
	const struct uni_vmm_forced *f, int pid, uint64_t hva, const void *buf, size_t len);

#endif
