/* SPDX-License-Identifier: BSD-2-Clause */
/* Walking page tables (walk.c) through an address space's caches (as.c). For these two alone. */
#ifndef UNI_MEM_WALK_H
#define UNI_MEM_WALK_H

#include "mem/as.h"

#define UNI_AS_PAGE 4096u /* what translations are kept by; no architecture has smaller pages */

/* What a walk found, or where it ended. */
struct uni_walked {
	uint64_t gpa;  /* of the page that holds the address */
	uint64_t span; /* bytes of the leaf, or that the entry without one stands for */
	bool no_exec;  /* some entry on the way forbids to run what is there */
};

/* As uni_as_translate(). *ret is set whatever happens. */
int uni_as_walk(struct uni_as *as, uint64_t va, struct uni_walked *ret);

const struct uni_pt_root *uni_as_root(const struct uni_as *as);
/* An entry of a table, little endian; paid for by the budget. */
int uni_as_load_entry(struct uni_as *as, uint64_t gpa, size_t size, uint64_t *ret);

#endif
