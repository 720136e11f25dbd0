/* SPDX-License-Identifier: BSD-2-Clause */
/* x86_64 page tables of four levels in a made guest. */
#ifndef UNI_TESTS_TABLES_H
#define UNI_TESTS_TABLES_H

#include "arch/arch.h"
#include "guest.h"

#define MADE_NX	  (1ull << 63)
#define MADE_ROOT 0x1000ull

struct tables {
	struct guest *g; /* whose memory begins at 0 */
	uint64_t next;	 /* page for the next table */
};

/* Maps a leaf of 1 << shift bytes (12, 21, 30); flags such as MADE_NX. */
static inline void made_map(
	struct tables *t, uint64_t va, uint64_t pa, unsigned shift, uint64_t flags)
{
	uint64_t table = MADE_ROOT, at;

	for (unsigned s = 39; s > shift; s -= 9) {
		at = table + (va >> s & 511) * 8;
		memcpy(&table, t->g->ram + at, 8);
		if (table == 0) {
			table = t->next;
			t->next += 4096;
			guest_put64(t->g, at, table | 3);
		}
		table &= ~0xfffull;
	}
	guest_put64(
		t->g, table + (va >> shift & 511) * 8, pa | 3 | flags | (shift > 12 ? 0x80 : 0));
}

/* A vCPU that uses them. */
static inline struct uni_regs made_regs(void)
{
	struct uni_regs r = { .state = UNI_VCPU_RUNNING };

	uni_regs_set_sys(&r, UNI_X86_CR0, 0x80000001);
	uni_regs_set_sys(&r, UNI_X86_CR3, MADE_ROOT);
	uni_regs_set_sys(&r, UNI_X86_CR4, 0x20);
	uni_regs_set_sys(&r, UNI_X86_EFER, 0xd00);
	return r;
}

#endif
