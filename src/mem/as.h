/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address spaces: translates GVA to GPA by walking the guest's own page tables, and reads through
 * that. Each sample starts with a new root. The translation and page caches live for one sample
 * only, so a guest that rewrites its tables is never read through stale entries. The paging mode is
 * data (struct uni_pt_geometry), so one walker serves every architecture.
 */
#ifndef UNI_MEM_AS_H
#define UNI_MEM_AS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/addr.h"
#include "mem/gmem.h"

#define UNI_PT_LEVELS_MAX 5

/* One level of a page table, root first. All masks apply to the raw entry. */
struct uni_pt_level {
	uint8_t shift;	    /* lowest GVA bit that indexes this level */
	uint8_t bits;	    /* number of index bits */
	bool leaf_allowed;  /* may an entry here map memory itself? */
	uint64_t leaf_mask; /* entry & leaf_mask == leaf_value: it is a leaf */
	uint64_t leaf_value;
	uint64_t reserved_leaf;	 /* bits that must be 0 in a leaf */
	uint64_t reserved_table; /* bits that must be 0 in a pointer to a table */
	/* Address bits that a leaf keeps elsewhere: (entry & leaf_high) << leaf_high_shift. */
	uint64_t leaf_high;
	uint8_t leaf_high_shift;
};

struct uni_pt_geometry {
	const char *name;   /* "x86_64 4-level", for messages */
	uint8_t nr_levels;  /* 0: no paging, GVA == GPA */
	uint8_t entry_size; /* 4 or 8 bytes */
	uint8_t va_bits;    /* 0: 32-bit space; else GVAs must be canonical to this many bits */
	bool canonical;	    /* sign-extended (x86_64); else the bits above are 0, or 1 in high */
	uint64_t present_mask, present_value;
	uint64_t table_addr; /* mask of the next table's GPA in an entry */
	uint64_t leaf_addr;  /* mask of the page's GPA, further cut to the leaf's size */
	/* Address bits that a pointer to a table keeps elsewhere, as level[].leaf_high. */
	uint64_t table_high;
	uint8_t table_high_shift;
	/*
	 * Bits of an entry that forbid execution: no_exec in any entry on the way, no_exec_leaf in
	 * the leaf, no_exec_table in a pointer to a table.
	 */
	uint64_t no_exec, no_exec_leaf, no_exec_table;
	struct uni_pt_level level[UNI_PT_LEVELS_MAX];
};

/* The start of a translation; arch->paging() makes it from a vCPU's system registers. */
struct uni_pt_root {
	const struct uni_pt_geometry *geometry; /* borrowed, static */
	uni_gpa root;				/* GPA of the top table */
	uint64_t phys_mask;			/* CPU's physical width; wider addresses fault */
	uint64_t reserved; /* bits that must be 0 in every entry of this vCPU: NX while off */
	/* A second half with its own table (aarch64 TTBR1); geometry NULL where there is none. */
	const struct uni_pt_geometry *geometry_high;
	uni_gpa root_high;
	/*
	 * The size of a space that is smaller than the geometry's; 0: it is not. The levels above
	 * are left out: the root is the table of the first level that translates bits of this
	 * space.
	 */
	uint8_t va_bits, va_bits_high;
	bool ignore_top, ignore_top_high; /* bits 63:56 of GVAs are tags; bit 55 tells the half */
};

/* Limits for one sample. A guest decides none of them. */
struct uni_as_budget {
	uint32_t bytes;	      /* guest bytes copied */
	uint32_t table_loads; /* page-table entries loaded */
	uint32_t reads;	      /* copies asked of the target; 0 = no limit */
	uint64_t wall_ns;     /* since uni_as_begin(); 0 = no limit */
	uint64_t cpu_ns;      /* instead: CPU time of this thread; 0 = wall_ns counts */
	/* Is the result of no use any more? Asked once in UNI_AS_ASK table loads; may be NULL. */
	bool (*over)(void *ctx);
	void *ctx;
};
#define UNI_AS_ASK 4096

struct uni_as_stats { /* of the current sample */
	uint32_t bytes, table_loads;
	uint32_t reads; /* copies asked of the target */
};

struct uni_as; /* opaque; one per sampling thread */

/* Borrows m. All memory the space will ever need is allocated here. */
int uni_as_create(struct uni_gmem *m, const struct uni_as_budget *budget, struct uni_as **ret,
	struct uni_err *err);
void uni_as_destroy(struct uni_as *as); /* NULL-safe */
struct uni_gmem *uni_as_gmem(struct uni_as *as);

/* Default budget: 1 MiB, 4096 table loads, 20 ms. */
extern const struct uni_as_budget uni_as_budget_default;
/*
 * The same for reading once, as at attach: 1 s of CPU time. A busy host may take the CPU away from
 * us for longer than any limit. That must not look like memory that cannot be read.
 */
extern const struct uni_as_budget uni_as_budget_once;

/*
 * Starts a sample: new root, empty caches, full budget. root NULL or a virtual gmem: GVA == GPA.
 * The root is copied, the geometry borrowed.
 */
void uni_as_begin(struct uni_as *as, const struct uni_pt_root *root);

/*
 * After uni_as_begin(): fetches what the last samples needed (tables, stack, code) in one request,
 * if the target can. Its contents are always new: nothing is kept from the last samples.
 */
void uni_as_prefetch(struct uni_as *as);
/* Fetches those parts of [va, va + len) that are mapped and not fetched yet. */
void uni_as_touch(struct uni_as *as, uni_gva va, size_t len);
/*
 * From now to the next uni_as_begin() nothing is read from the target. An address that has not been
 * fetched gives -UNI_EFAULT, and uni_as_missed() is true. For unwinding after the guest runs again.
 */
void uni_as_seal(struct uni_as *as);
bool uni_as_missed(const struct uni_as *as);

/*
 * Returns 0; -UNI_EFAULT: not mapped, reserved bits set, or table unreadable; -UNI_EBUDGET; or the
 * target's error (-UNI_EGONE). The address may map to something that is not memory. page_size_ret
 * (may be NULL): bytes of the leaf found, e.g. 4096.
 */
int uni_as_translate(struct uni_as *as, uni_gva va, uni_gpa *ret, uint64_t *page_size_ret);

/* May code at va run? Returns 0, or as uni_as_translate(): -UNI_EFAULT also if it may not run. */
int uni_as_check_exec(struct uni_as *as, uni_gva va);

struct uni_mapping {
	uni_gva gva;
	uni_gpa gpa;
	uint64_t size; /* bytes, up to the leaf's end */
	bool exec;
};

/*
 * Finds the mapping at `from`, or the next one after it; from is rounded down to a page.
 * -UNI_ENOENT: there are no more, or there are no page tables (no paging, a virtual gmem).
 * -UNI_EBUDGET: a guest's tables may be endless.
 */
int uni_as_next(struct uni_as *as, uni_gva from, struct uni_mapping *ret);

/* Copies [va, va + len), page by page. buf is unspecified on failure. No allocation. */
int uni_as_read(struct uni_as *as, uni_gva va, void *buf, size_t len);
/* One little-endian 8-byte word; need not be aligned. */
int uni_as_read_u64(struct uni_as *as, uni_gva va, uint64_t *ret);

/* Some bytes that were copied already: at offsets below `words`, 8 bytes are there. */
struct uni_as_window {
	uint64_t va, words;
	const uint8_t *bytes;
};

/*
 * The copy that the last word of uni_as_read_u64() came from, or nothing (words 0): the next word
 * of a stack is mostly in it, too. It is valid until the next read.
 */
void uni_as_look(const struct uni_as *as, struct uni_as_window *ret);

/*
 * Copies the mapped part of [va, va + len) from its start, in whole pages after the first. Returns
 * the bytes copied (0 if none). For stack slabs.
 */
size_t uni_as_read_some(struct uni_as *as, uni_gva va, void *buf, size_t len);

const struct uni_as_stats *uni_as_stats(const struct uni_as *as);
/* True: since uni_as_begin() a read failed only because the budget was spent. */
bool uni_as_is_spent(const struct uni_as *as);

#endif
