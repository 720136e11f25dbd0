/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function's instructions and their source lines, from its image, with numbers to each: samples,
 * or executions. Addresses are SVMA (as linked).
 */
#ifndef UNI_ANNOTATE_CODE_H
#define UNI_ANNOTATE_CODE_H

#include <stdbool.h>

#include "base/strtab.h"
#include "base/vec.h"
#include "obj/debug.h"
#include "obj/disasm.h"

#define UNI_CODE_MAX  ((uint64_t)1 << 20) /* bytes of a function */
#define UNI_CODE_NONE UINT32_MAX

/* Strings are of the code's table; 0: not known. */
struct uni_code_line {
	uint32_t file, line;
	uint32_t function; /* that is inlined there; 0: it is the function itself */
	double self;	   /* sum of its instructions' */
};

struct uni_code_insn {
	struct uni_insn insn;
	uint32_t line;	 /* of lines; UNI_CODE_NONE */
	uint32_t callee; /* string: of a call, or of a jump out of the function; 0: not known */
	uint32_t to;	 /* instruction that it jumps to, in this function; UNI_CODE_NONE */
	double self;	 /* samples at it; exact counts: executions */
	double below; /* samples in what it called; exact counts: instructions in all its callee */
	uint64_t calls;	 /* traces and exact counts, of its callee by this function */
	uint32_t sites;	 /* such calls of that callee: with more than one, they share the numbers */
	uint32_t serial; /* of the last sample that was added */
};

struct uni_code {
	struct uni_strtab *strings;
	char name[512]; /* demangled */
	uint64_t addr, size;
	UNI_VEC(struct uni_code_insn) insns;
	UNI_VEC(struct uni_code_line) lines;
	bool has_lines;
};

/* debug NULL: without lines. -UNI_ERANGE: it is too large, or its bytes are not in the image. */
int uni_code_read(const struct uni_image *img, const struct uni_symbol *sym,
	struct uni_debug *debug, struct uni_code *ret, struct uni_err *err);
void uni_code_deinit(struct uni_code *c); /* of a zeroed one nothing */
const char *uni_code_string(const struct uni_code *c, uint32_t string); /* NULL for 0 */
/* The instruction that has a byte at this address; NULL: it is not in the function. */
struct uni_code_insn *uni_code_at(struct uni_code *c, uint64_t svma);
/* Once the instructions have their numbers: those of lines. */
void uni_code_sum_lines(struct uni_code *c);

/* The symbols of the function: by name, as the linker or the source has it. Returns their number;
 * the first `max` are in ret. */
size_t uni_code_find(
	const struct uni_image *img, const char *name, const struct uni_symbol **ret, size_t max);

/*
 * The one function of that name; *ret is NULL if there is none. Several may have it, as static ones
 * of several files: -UNI_EUSAGE, and the message has their addresses in the guest.
 */
int uni_code_choose(const struct uni_image *img, const char *name, uint64_t bias,
	const struct uni_symbol **ret, struct uni_err *err);

#endif
