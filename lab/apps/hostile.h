/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the hostile modes. */
#ifndef LAB_HOSTILE_H
#define LAB_HOSTILE_H

#include "lab.h"

#define HOSTILE_SPIN_TURNS 5000 /* of 4 instructions */

/* Registers to show to a profiler: rsp 0 means the true one. */
struct hostile_regs {
	uint64_t rbp, rsp;
};

struct hostile_mode {
	const char *name;
	void (*prepare)(void); /* once; may be NULL */
	struct hostile_regs (*step)(uint64_t turn);
};

struct frame {
	uint64_t next, ret;
};

void hostile_spin(uint64_t turns, uint64_t rbp, uint64_t rsp);
void hostile_burn(struct hostile_regs regs); /* hostile_spin with books */

uint64_t hostile_text(unsigned i);	  /* some even address inside a function */
struct frame *hostile_pages(unsigned nr); /* zeroed, above all stacks */
uint64_t link_frames(struct frame *f, unsigned nr, uint64_t last); /* ascending; first address */

/* hostile_chains.c, hostile_tables.c: end with a nameless one */
extern const struct hostile_mode hostile_chains[], hostile_tables[];

#endif
