/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the objects that a dynamic linker in the guest has loaded. Their dynamic sections
 * (DT_DEBUG, System V ABI) point to the linker's list of link maps. All of this comes from the
 * guest.
 */
#ifndef UNI_SAMPLING_LINKMAP_H
#define UNI_SAMPLING_LINKMAP_H

#include "mem/as.h"

#define UNI_LINKS_MAX 128

struct uni_link {
	uint64_t bias;
	char path[256]; /* clean; "" for the program itself */
};

/*
 * Begins at the table at [dynamic, + size); 0 if that names no list. A list that does not end is
 * cut. Starts samples of `as` at this root (NULL: GVA == GPA).
 */
size_t uni_links_read(struct uni_as *as, const struct uni_pt_root *root, uint64_t dynamic,
	uint64_t size, struct uni_link *ret, size_t max);

#endif
