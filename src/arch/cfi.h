/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind rows: they tell, for each stretch of code, where its caller's registers are (DWARF 5,
 * 6.4). They are compiled once, from an image's call frame information into plain data. obj/ makes
 * them; unwind/ uses them, and so do targets that unwind in the kernel. Neither knows ELF.
 *
 *   row   { start, rule } by rising start; a row reaches to the next row        8 bytes each.
 *   rule  CFA, return address, frame pointer, others; all different            32 bytes each.
 *   other rules of further registers, for the few images that need them.
 *   op    expressions, one after the other, each ended by UNI_CFI_OP_END.
 *
 * Code compiles to very few different rules, so all rules stay in a CPU's first cache.
 */
#ifndef UNI_ARCH_CFI_H
#define UNI_ARCH_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uni_arch;

enum uni_cfi_how {
	UNI_CFI_UNDEF,	 /* lost; as a return address: this frame is the outermost one */
	UNI_CFI_SAME,	 /* where it was: the function has not touched it */
	UNI_CFI_AT_CFA,	 /* saved at CFA + arg */
	UNI_CFI_IS_CFA,	 /* CFA + arg itself */
	UNI_CFI_REG,	 /* value of register `reg` + arg */
	UNI_CFI_AT_EXPR, /* saved at the address that the expression from op[arg] on gives */
	UNI_CFI_IS_EXPR, /* the value of that expression */
	UNI_CFI_NONE,	 /* as a CFA: nothing is known of this code */
};

struct uni_cfi_val {
	int32_t arg;
	uint8_t how; /* enum uni_cfi_how */
	uint8_t reg; /* DWARF number, for UNI_CFI_REG */
	uint8_t of;  /* in other[]: the register that this rule is for */
	uint8_t zero;
};

enum uni_cfi_rule_flags {
	UNI_CFI_SIGNAL =
		1u << 0, /* the caller was interrupted: its pc is exact, not a return address */
	UNI_CFI_TAKES_STACK = 1u << 1, /* its function may load the stack pointer from memory */
};

struct uni_cfi_rule {
	struct uni_cfi_val cfa; /* REG, IS_EXPR or NONE */
	struct uni_cfi_val ra;	/* the caller's pc; UNDEF: there is no caller */
	struct uni_cfi_val fp;	/* the frame pointer of the architecture */
	uint32_t other;		/* index of the first */
	uint16_t nr_other;
	uint8_t flags; /* enum uni_cfi_rule_flags */
	uint8_t zero;
};

struct uni_cfi_row {
	uint32_t start; /* bytes above the table's base */
	uint32_t rule;
};

enum uni_cfi_opcode {
	UNI_CFI_OP_END, /* the result is the top of the stack */
	UNI_CFI_OP_CONST,
	UNI_CFI_OP_REG,	 /* value of register `arg2` + arg */
	UNI_CFI_OP_LOAD, /* replaces an address by `arg` bytes there, zero-extended */
	UNI_CFI_OP_PICK, /* copy of the element `arg` below the top */
	UNI_CFI_OP_DROP,
	UNI_CFI_OP_SWAP,
	UNI_CFI_OP_ROT,
	UNI_CFI_OP_ABS,
	UNI_CFI_OP_NEG,
	UNI_CFI_OP_NOT,
	UNI_CFI_OP_ADD_CONST,
	UNI_CFI_OP_ADD,
	UNI_CFI_OP_SUB,
	UNI_CFI_OP_MUL,
	UNI_CFI_OP_DIV,
	UNI_CFI_OP_MOD,
	UNI_CFI_OP_AND,
	UNI_CFI_OP_OR,
	UNI_CFI_OP_XOR,
	UNI_CFI_OP_SHL,
	UNI_CFI_OP_SHR,
	UNI_CFI_OP_SHRA,
	UNI_CFI_OP_EQ, /* comparisons are signed; 0 or 1 */
	UNI_CFI_OP_NE,
	UNI_CFI_OP_GE,
	UNI_CFI_OP_GT,
	UNI_CFI_OP_LE,
	UNI_CFI_OP_LT,
	UNI_CFI_OP_SKIP,   /* go on at op[arg] */
	UNI_CFI_OP_BRANCH, /* the same if the popped value is not 0 */
	UNI_CFI_OP_NR
};

struct uni_cfi_op {
	int64_t arg;
	uint32_t arg2;
	uint32_t opcode; /* enum uni_cfi_opcode */
};

#define UNI_CFI_EXPR_STACK 16  /* elements; an expression that needs more has no value */
#define UNI_CFI_EXPR_STEPS 128 /* operations executed in one expression */

/* Rule 0 is always UNI_CFI_NONE. All indices in the tables have been checked. */
struct uni_cfi_table {
	uint64_t base; /* GVA (biased) of row offset 0 */
	const struct uni_cfi_row *row;
	const uint32_t *bucket; /* the row that holds the first byte of bucket i */
	const struct uni_cfi_rule *rule;
	const struct uni_cfi_val *other;
	const struct uni_cfi_op *op;
	uint32_t nr_rows, nr_buckets, nr_rules, nr_others, nr_ops;
	uint32_t size; /* offset of the last row, which has rule 0: it is behind all known code */
	uint8_t shift; /* a bucket is 1 << shift bytes */
	uint64_t regs; /* bit n: register n is followed, besides pc, sp and fp */
	/* Not part of the rows: the rules that were asked for last (uni_cfi_recall). NULL: none. */
	uint64_t *memo;
};

/*
 * Is there code that runs on another stack than its caller? A word of its stack leads to a record,
 * which holds the caller's stack pointer. (If the word itself is that pointer, the code may only
 * have aligned its stack, as OpenSSL's does.)
 */
bool uni_cfi_switches(const struct uni_cfi_table *t, unsigned sp_reg);
/*
 * Is there code that has popped its return address and goes on? OCaml 4 calls C so. A copy of the
 * stack from its pointer on has not got that word.
 */
bool uni_cfi_pops(const struct uni_cfi_table *t, unsigned sp_reg);
/*
 * x86_64: does a function with this rule end by `ret`? Then it was called, also if it is marked as
 * a handler of interrupts. OCaml 5 marks functions that switch stacks so, to keep debuggers from
 * comparing stack pointers. A handler ends by `iret`, which loads the stack pointer.
 */
bool uni_cfi_returns(
	const struct uni_arch *a, const struct uni_cfi_rule *r, const struct uni_cfi_val *other);

/* The rule for the instruction at pc; NULL if nothing is known of it. */
const struct uni_cfi_rule *uni_cfi_find(const struct uni_cfi_table *t, uint64_t pc);

#define UNI_CFI_MEMO	   256u /* entries */
#define UNI_CFI_MEMO_EMPTY UINT64_MAX

/*
 * The same in fewer instructions for a pc that was asked for lately, as most of a chain are. An
 * entry is offset << 32 | rule. Threads share the entries: each is read and written as one word.
 */
static inline const struct uni_cfi_rule *uni_cfi_recall(const struct uni_cfi_table *t, uint64_t pc)
{
	uint64_t off = pc - t->base, *slot, known;
	const struct uni_cfi_rule *r;

	if (t->memo == NULL || off >= t->size)
		return uni_cfi_find(t, pc);
	slot = &t->memo[(off ^ off >> 8) % UNI_CFI_MEMO];
	known = __atomic_load_n(slot, __ATOMIC_RELAXED);
	if (known >> 32 == off)
		return &t->rule[(uint32_t)known];
	r = uni_cfi_find(t, pc);
	if (r != NULL)
		__atomic_store_n(slot, off << 32 | (uint64_t)(r - t->rule), __ATOMIC_RELAXED);
	return r;
}

#endif
