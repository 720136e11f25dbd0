/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files that compile call frame information. */
#ifndef UNI_OBJ_CFI_PRIV_H
#define UNI_OBJ_CFI_PRIV_H

#include "base/cursor.h"
#include "base/vec.h"
#include "obj/cfi.h"

struct uni_cfi_cie {
	size_t at; /* offset in its section */
	uint32_t section;
	uint32_t ra; /* return address column */
	uint64_t code_align;
	int64_t data_align;
	size_t insn, insn_size; /* initial instructions: offset in the section, bytes */
	uint8_t encoding;	/* DW_EH_PE_* of addresses */
	uint8_t addr_size;
	bool sized_augmentation; /* 'z': FDEs say how long their augmentation is */
	bool signal;
};

struct uni_cfi_fde {
	uint64_t start, size; /* SVMA; size is not 0 and does not wrap */
	size_t at;	      /* offset in its section */
	size_t insn, insn_size;
	uint32_t cie; /* index */
};

struct uni_cfi_entries {
	UNI_VEC(struct uni_cfi_cie) cie; /* by section, then offset */
	UNI_VEC(struct uni_cfi_fde) fde; /* in the order of the file */
};

/* Appends the entries of section number `index`. False: out of memory. */
bool uni_cfi_parse(const struct uni_cfi_section *s, uint32_t index, unsigned word,
	struct uni_cfi_entries *ret);

/* LEB128 (DWARF 5, 7.6); bits above 64 are lost. */
uint64_t uni_cfi_uleb(struct uni_cursor *c);
int64_t uni_cfi_sleb(struct uni_cursor *c);
/*
 * Reads an address as DW_EH_PE_* `encoding` says; `at` is the address of the cursor's data[0].
 * False if bad.
 */
bool uni_cfi_address(struct uni_cursor *c, uint8_t encoding, unsigned addr_size, uint64_t at,
	uint64_t func, uint64_t *ret);

/* The rules of the registers at one place in a function. */
struct uni_cfi_state {
	struct uni_cfi_val cfa;
	struct uni_cfi_val reg[UNI_REG_MAX]; /* UNI_CFI_NONE: not mentioned */
};

#define UNI_CFI_OPS_MAX	   64  /* operations of one expression */
#define UNI_CFI_EXPRS_MAX  512 /* different expressions of an image */
#define UNI_CFI_ROWS_MAX   (1u << 24)
#define UNI_CFI_RULES_MAX  (1u << 20)
#define UNI_CFI_OTHERS_MAX (1u << 22)

/* A table that grows. */
struct uni_cfi_builder {
	const struct uni_arch *arch;
	uint64_t base;
	uint64_t follow; /* registers with rules of their own */
	uint64_t used;	 /* registers that CFAs and expressions have used so far */
	bool oom;
	bool takes_stack; /* the function that rows are made for may */
	struct uni_cfi_bad bad;
	UNI_VEC(struct uni_cfi_row) row;
	UNI_VEC(struct uni_cfi_rule) rule;
	UNI_VEC(struct uni_cfi_val) other;
	UNI_VEC(struct uni_cfi_op) op;
	UNI_VEC(uint32_t) expr; /* index of each expression's first op */
	uint32_t *hash;		/* of rules; 0: free */
	uint32_t hash_size;	/* a power of two */
};

/* Runs one FDE and appends its rows. Counts instructions down in `budget`; 0 ends it early. */
void uni_cfi_run(struct uni_cfi_builder *b, const struct uni_cfi_section *s,
	const struct uni_cfi_cie *cie, const struct uni_cfi_fde *fde, uint64_t *budget);

/* Sets the state from `start` on (SVMA, not below the last row's); NULL: nothing is known. */
void uni_cfi_emit(struct uni_cfi_builder *b, uint64_t start, const struct uni_cfi_state *s,
	const struct uni_cfi_cie *cie);

/* Index of an expression's first op, or -1 if we cannot evaluate it. */
int32_t uni_cfi_expr(
	struct uni_cfi_builder *b, const uint8_t *data, size_t size, unsigned addr_size);

#endif
