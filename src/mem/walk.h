/* SPDX-License-Identifier: BSD-2-Clause */
/* Walking page tables (walk.c) through an address space's caches (as.c). For these two alone. */
#ifndef UNI_MEM_WALK_H
#define UNI_MEM_WALK_H

#include "mem/as.h"

#define UNI_AS_PAGE 4096u /* size of the cached translations; no architecture has smaller pages */

/* The result of a walk, or the place where it ended. */
struct uni_walked {
	uint64_t gpa;  /* of the page that holds the address */
	uint64_t span; /* bytes of the leaf, or of the range that the missing entry stands for */
	bool no_exec;  /* some entry on the way forbids execution */
};

/* As uni_as_translate(). Always sets *ret, also on failure. */
int uni_as_walk(struct uni_as *as, uint64_t va, struct uni_walked *ret);

const struct uni_pt_root *uni_as_root(const struct uni_as *as);
/* Loads an entry of a table, little endian, and charges the budget for it. */
int uni_as_load_entry(struct uni_as *as, uint64_t gpa, size_t size, uint64_t *ret);

#endif
