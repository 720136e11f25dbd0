/* SPDX-License-Identifier: BSD-2-Clause */
/* The mappings of a process, from the text of /proc/PID/maps. */
#ifndef UNI_BACKEND_VMM_MAPS_H
#define UNI_BACKEND_VMM_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"

struct uni_vmm_map {
	uint64_t start, size, offset, inode;
	bool readable, writable, executable, shared;
	char name[64]; /* cleaned; cut if longer */
};

struct uni_vmm_maps {
	UNI_VEC(struct uni_vmm_map) m; /* by rising address */
};

/* Skips malformed lines. The only error is -UNI_ENOMEM. */
int uni_vmm_maps_parse(const void *data, size_t size, struct uni_vmm_maps *ret);
int uni_vmm_maps_read(int pid, struct uni_vmm_maps *ret, struct uni_err *err);
void uni_vmm_maps_deinit(struct uni_vmm_maps *maps);

/*
 * Can guest RAM be in this mapping? No for mappings of KVM and of devices, as reading them may have
 * effects. No also for mappings larger than any host's memory (the shadow of a sanitizer).
 */
bool uni_vmm_map_may_be_ram(const struct uni_vmm_map *m);

/* The mapping that contains addr, or NULL. */
const struct uni_vmm_map *uni_vmm_maps_find(const struct uni_vmm_maps *maps, uint64_t addr);

/*
 * Finds the run of adjacent mappings of one kind around addr (the same file, or anonymous). Upwards
 * it takes readable mappings. Downwards it goes to `want` at most, and takes any protection (Solo5
 * makes text read-only and page 0 inaccessible). False if addr is in no readable mapping.
 */
bool uni_vmm_maps_run(const struct uni_vmm_maps *maps, uint64_t addr, uint64_t want,
	uint64_t *start_ret, uint64_t *size_ret);

#define _cleanup_maps_ __attribute__((cleanup(uni_vmm_maps_deinit)))

#endif
