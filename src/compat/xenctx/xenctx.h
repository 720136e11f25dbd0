/* SPDX-License-Identifier: BSD-2-Clause */
/* xenctx's views of a stopped guest: capturing and printing them. */
#ifndef UNI_COMPAT_XENCTX_XENCTX_H
#define UNI_COMPAT_XENCTX_XENCTX_H

#include <stdio.h>

#include "app/attach.h"

#define UNI_XENCTX_CODE	      32 /* bytes around the instruction, which is at UNI_XENCTX_BEFORE */
#define UNI_XENCTX_BEFORE     21
#define UNI_XENCTX_PAGE	      4096u
#define UNI_XENCTX_PAGES_MAX  64 /* of stack, or of memory */
#define UNI_XENCTX_PAGES_READ 4u /* of stack, at the least: call traces cross pages */
#define UNI_XENCTX_WORD	      8u
#define UNI_XENCTX_LINES_ALL  UINT64_MAX

struct uni_xenctx_args {
	const struct uni_symtab *symtab; /* NULL: addresses stay without names */
	uint64_t kernel_start;		 /* code begins there, if neither image nor names show it */
	bool all_regs, all_vcpus, stack_trace, ascii, tagged, frame_pointers;
	bool has_memory, has_dump;
	uint64_t memory, dump; /* addresses: to dump, and to take for a stack */
	uint64_t vcpu, pages, lines, bytes_per_line; /* of whole words */
};

/* Memory from `addr` on. */
struct uni_xenctx_bytes {
	uint64_t addr;
	uint64_t shown; /* as much of it may be printed; the rest is to find return addresses in */
	size_t len;	/* number of mapped bytes in the requested range */
	uint8_t *v;
};

struct uni_xenctx_vcpu {
	struct uni_chain chain;
	struct uni_more_regs more;
	struct uni_xenctx_bytes stack, memory;
	uint8_t code[UNI_XENCTX_CODE];
	bool has_code[UNI_XENCTX_CODE];
};

/* All data to print, from one moment. */
struct uni_xenctx {
	struct uni_regs *regs;
	struct uni_xenctx_vcpu **vcpu; /* NULL: not asked for */
	size_t nr;
};

/* The guest is held for the moment of reading. ret is zeroed by the caller. */
int uni_xenctx_take(struct uni_guest *g, const struct uni_xenctx_args *args, struct uni_xenctx *ret,
	struct uni_err *err);
void uni_xenctx_free(struct uni_xenctx *x);
void uni_xenctx_print(const struct uni_guest *g, const struct uni_xenctx_args *args,
	const struct uni_xenctx *x, FILE *out);

#endif
