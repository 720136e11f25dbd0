/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which bytes of an image are the same in the guest as in the file, and which does the guest
 * change? Tables of the image name the places that it changes. Everything in the file is hostile.
 */
#ifndef UNI_OBJ_CHANGES_H
#define UNI_OBJ_CHANGES_H

#include "obj/elffile.h"
#include "obj/ranges.h"

/* Why a byte of code differs in the guest. */
enum uni_change_kind {
	UNI_CHANGE_NONE,	/* no reason is known */
	UNI_CHANGE_ALTERNATIVE, /* Linux: instructions for this CPU (.altinstructions and others) */
	UNI_CHANGE_KEY,		/* Linux: static keys and static calls */
	UNI_CHANGE_TRACER,	/* Linux' ftrace, or our tracer */
	UNI_CHANGE_HYPERVISOR,	/* Xen's page of hypercalls */
	UNI_CHANGE_MOVED,	/* an address, in an image that was loaded elsewhere */
	UNI_CHANGE_TABLE,     /* accessed and dirty bits of page tables that are within the code */
	UNI_CHANGE_ASSEMBLER, /* code and data without a type, which boot code changes itself */
	UNI_CHANGE_NR
};

struct uni_change {
	uint64_t addr; /* SVMA */
	uint32_t size;
	uint8_t kind;
};

struct uni_changes {
	struct uni_span
		*code; /* code that stays the same: without start-up code, whose memory is freed */
	size_t nr_code;
	struct uni_change *v; /* sorted by address */
	size_t nr;
};

struct uni_symbols;

/* Returns 0 or -UNI_ENOMEM; leaves out malformed tables. */
int uni_changes_read(const struct uni_elf *e, const struct uni_segments *segs,
	const struct uni_symbols *syms, struct uni_changes *ret);
void uni_changes_deinit(struct uni_changes *p);
void uni_changes_sort(struct uni_change *v, size_t nr);
/* The place that has this address, or NULL. */
const struct uni_change *uni_changes_find(const struct uni_change *v, size_t nr, uint64_t svma);
/* "alternatives" */
const char *uni_change_text(enum uni_change_kind kind);

#endif
