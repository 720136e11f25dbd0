/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNI_PAGE_STORE_PRIV_H
#define UNI_PAGE_STORE_PRIV_H

#include "base/vec.h"
#include "page/lod.h"
#include "page/store.h"

struct uni_store_row {
	uint32_t thread, depth;
	uint16_t cpu;
	struct uni_lod *l;
};

/* A node of a thread on a vCPU. */
struct uni_store_cell {
	uint32_t thread, node;
	uint16_t cpu;
};

/*
 * sums[slice][cell]: the time in a node and in what it called, from the begin to the slice's begin.
 * A range's sum is the difference of two of these, except for less than a slice at each end.
 */
struct uni_page_store {
	UNI_VEC(struct uni_store_row) rows;
	UNI_VEC(struct uni_store_cell) cells; /* by thread and vCPU */
	uint32_t *parent;
	uint32_t *map; /* NULL: node numbers do not change */
	uint32_t nr_mapped;
	uint32_t nr_nodes, nr_slices;
	uint64_t slice; /* ns */
	uint64_t *sums;
	uint64_t nr, begin, end;
};

static inline bool uni_store_is_of(uint32_t thread, uint16_t cpu, struct uni_page_who who)
{
	return (who.thread < 0 || thread == who.thread) && (who.cpu < 0 || cpu == who.cpu);
}

int uni_store_add_up(struct uni_page_store *s);

#endif
