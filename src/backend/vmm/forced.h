/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing memory of a VMM that it has mapped read-only for itself, as solo5-hvt does with the code
 * of its guest, which cannot change it then. A debugger can: by /proc/PID/mem where the mapping is
 * private (ptrace(2)), and where it is shared by the file that is mapped (proc(5), map_files), if
 * that is memory without a name in any folder.
 */
#ifndef UNI_BACKEND_VMM_FORCED_H
#define UNI_BACKEND_VMM_FORCED_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct uni_vmm_maps;

struct uni_vmm_forced_map {
	uint64_t start, size, offset; /* HVA, bytes; where `start` is in fd */
	int fd;
};

struct uni_vmm_forced {
	UNI_VEC(struct uni_vmm_forced_map) map;
};

/* Is [hva, hva + len) mapped read-only? Then a way to write there is opened. Once for all ranges:
 * maps are those of the process. What has no such way stays without one. 0 or -UNI_ENOMEM. */
int uni_vmm_forced_add(struct uni_vmm_forced *f, int pid, const struct uni_vmm_maps *maps,
	uint64_t hva, size_t len);
void uni_vmm_forced_deinit(struct uni_vmm_forced *f);

/* 0 or -UNI_EFAULT. No allocation. The part of it that may be written is written as always. */
int uni_vmm_forced_write(
	const struct uni_vmm_forced *f, int pid, uint64_t hva, const void *buf, size_t len);

#endif
