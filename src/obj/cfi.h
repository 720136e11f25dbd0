/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call frame information (.eh_frame and .debug_frame; DWARF 5, 6.4) compiled into the rows of
 * arch/cfi.h. Everything in the sections is hostile. Malformed entries give no rows; there the
 * unwinder goes on without rows.
 */
#ifndef UNI_OBJ_CFI_H
#define UNI_OBJ_CFI_H

#include "arch/arch.h"
#include "arch/cfi.h"

struct uni_cfi_section {
	const uint8_t *data; /* borrowed for the call */
	size_t size;
	uint64_t addr; /* SVMA of data[0]: pc-relative pointers count from there */
	bool eh;       /* laid out as .eh_frame, else as .debug_frame */
};

/* Malformed entries: for their code the unwinder goes on without rows. */
struct uni_cfi_bad {
	uint64_t nr; /* number of functions; the other members describe the first one */
	bool eh;     /* it is in .eh_frame, else in .debug_frame */
	uint8_t opcode;
	size_t entry, insn; /* offsets of its FDE and of the instruction in the section */
	uint64_t start;	    /* the function's SVMA */
};

struct uni_cfi_code { /* a range of code, SVMA; call frame information of other addresses is ignored
		       */
	uint64_t start, size;
	const uint8_t *bytes; /* NULL: not known */
	size_t nr_bytes;
};

struct uni_cfi_source {
	const struct uni_arch *arch;
	/* If two sections describe the same code, the first one is used. */
	const struct uni_cfi_section *section;
	size_t nr_sections;
	const struct uni_cfi_code *code;
	size_t nr_code;
	const uint64_t *entry; /* SVMA in functions that nobody called: they get no caller */
	size_t nr_entries;
	uint64_t follow;	 /* registers that other images need */
	struct uni_cfi_bad *bad; /* is filled; may be NULL */
};

struct uni_cfi {
	struct uni_cfi_table table; /* its base is an SVMA; borrows the arrays below */
	struct uni_cfi_row *row;
	uint32_t *bucket;
	struct uni_cfi_rule *rule;
	struct uni_cfi_val *other;
	struct uni_cfi_op *op;
};

/* Returns 0 or -UNI_ENOMEM. *ret is NULL if the sections describe no code. */
int uni_cfi_compile(const struct uni_cfi_source *src, struct uni_cfi **ret);
void uni_cfi_destroy(struct uni_cfi *c); /* NULL-safe */

#endif
