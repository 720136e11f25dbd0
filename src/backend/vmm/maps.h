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
	bool readable, writable, shared;
	char name[64]; /* cleaned; cut when longer */
};

struct uni_vmm_maps {
	UNI_VEC(struct uni_vmm_map) m; /* by rising address */
};

/* Lines that make no sense are passed over. -UNI_ENOMEM is the only failure. */
int uni_vmm_maps_parse(const void *data, size_t size, struct uni_vmm_maps *ret);
int uni_vmm_maps_read(int pid, struct uni_vmm_maps *ret, struct uni_err *err);
void uni_vmm_maps_deinit(struct uni_vmm_maps *maps);

/* Could guest RAM be in here? Not in KVM's and devices' own mappings, whose reading may have
 * effects, nor in what is larger than any host's memory (the shadow of a sanitizer). */
bool uni_vmm_map_may_be_ram(const struct uni_vmm_map *m);

/* The mapping that holds addr, or NULL. */
const struct uni_vmm_map *uni_vmm_maps_find(const struct uni_vmm_maps *maps, uint64_t addr);

/*
 * The run of mappings around addr that touch each other and are of one kind (the same file going
 * on, or anonymous). Upwards it takes what is readable; downwards it goes no further than `want`
 * and takes any protection (Solo5 makes text read-only and page 0 inaccessible). False if addr is
 * in no readable mapping.
 */
bool uni_vmm_maps_run(const struct uni_vmm_maps *maps, uint64_t addr, uint64_t want,
	uint64_t *start_ret, uint64_t *size_ret);

#define _cleanup_maps_ __attribute__((cleanup(uni_vmm_maps_deinit)))

#endif
