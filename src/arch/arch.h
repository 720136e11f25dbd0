/* SPDX-License-Identifier: BSD-2-Clause */
/* A CPU architecture as const data, chosen at run time by the image's ELF machine. */
#ifndef UNI_ARCH_ARCH_H
#define UNI_ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/hints.h"
#include "arch/regs.h"
#include "arch/skid.h"
#include "arch/stop.h"
#include "mem/as.h"

/* Bytes before a return address, enough for every form of a call. */
#define UNI_CALL_BYTES 7

/* The place of a register in a gdb `g` packet (bytes, little endian). */
struct uni_gdb_reg {
	uint16_t offset;
	uint8_t size;
	bool sys; /* number is a sys[] index, else a DWARF number */
	uint8_t number;
};

/* A system register that is in no `g` packet: read from stubs that describe their registers. */
struct uni_gdb_named {
	const char *name; /* in the description */
	uint8_t number;	  /* sys[] index; several names may have the same */
};

#define UNI_AHEAD_STORES 8u

/* Registers as they will be when an interrupted function has gone on for some instructions. */
struct uni_ahead {
	struct uni_regs regs;
	bool returned;	    /* the pc is a return address now */
	unsigned nr_stored; /* words that were written */
	uint64_t stored[UNI_AHEAD_STORES];
};

/* Straight code up to a place, as far as it goes on on another stack than its caller. */
struct uni_taken_stack {
	bool taken;  /* it has loaded the stack pointer from memory */
	bool kept;   /* a register still has the stack pointer of before */
	uint8_t reg; /* kept: which one, by DWARF number */
	uint32_t at; /* kept: offset of the instruction that copied the stack pointer there */
};

struct uni_arch {
	const char *name;     /* "x86_64" */
	uint16_t elf_machine; /* EM_* */
	bool pc_hole;	      /* its machines have devices, not RAM, below 4 GiB */
	uint8_t word;	      /* bytes of an address: 8 */
	uint8_t call_bytes;   /* of a direct call */
	uint8_t insn;	      /* instructions begin at multiples of so many bytes */
	uint8_t nr_regs;
	uint8_t fp_reg, sp_reg, pc_reg;	    /* DWARF numbers */
	uint64_t callee_saved;		    /* bit n: a call leaves register n as it was */
	const char *const *reg_names;	    /* nr_regs, by DWARF number */
	const char *const *sys_names;	    /* UNI_SYS_MAX, NULL where unused */
	const struct uni_gdb_reg *gdb_regs; /* layout without target XML (QEMU's) */
	size_t nr_gdb_regs;
	size_t gdb_g_size;		       /* minimum bytes of a whole `g` reply */
	const struct uni_gdb_named *gdb_named; /* paging() needs all of these numbers */
	size_t nr_gdb_named;

	/* The paging mode that these registers select; -UNI_EINVAL if they contradict themselves.
	 */
	int (*paging)(const struct uni_regs *regs, struct uni_pt_root *ret);

	/* Do a stopped vCPU's registers say that it has never run? NULL: they cannot say so. */
	bool (*never_started)(const struct uni_regs *regs);
	/* May an interrupt wake this halted vCPU? NULL: not known. */
	bool (*may_wake)(const struct uni_regs *regs);

	/*
	 * Does a function with these first bytes set up a frame pointer? n may be less than
	 * requested.
	 */
	bool (*sets_frame)(const uint8_t *code, size_t n);

	/*
	 * Do the UNI_CALL_BYTES bytes before a return address end in a call? The target is 0 if the
	 * call goes through a register or memory.
	 */
	bool (*after_call)(const uint8_t *before, uint64_t ret_addr, uint64_t *target_ret);

	/* The bytes of the instruction at code, which has n bytes; 0: it is none. NULL: `insn`. */
	size_t (*insn_size)(const uint8_t *code, size_t n);
	/* The branch at code, of n bytes at address `at`, or UNI_BRANCH_NONE; and its target. */
	enum uni_branch (*branch)(const uint8_t *code, size_t n, uint64_t at, uint64_t *target_ret);

	/* Was the last branch of this vCPU, so far as can be told, a return to where it is? */
	bool (*has_returned)(struct uni_as *as, const struct uni_regs *regs);

	/*
	 * Does this code set the frame pointer to 0 without having saved it before? The outermost
	 * function, of a boot or a thread, marks the end of a chain in this way.
	 */
	bool (*clears_fp)(const uint8_t *code, size_t n);
	/*
	 * Does this code, that of a whole function, first take a new stack from a register, and
	 * then call something? Nobody is above it on that stack. Optional.
	 */
	bool (*begins_stack)(const uint8_t *code, size_t n);

	/*
	 * Frame-pointer step: replaces regs (pc, sp, fp, valid) by the caller's. `leaf` is true for
	 * the first step of a chain, which may need corrections for prologues and frameless
	 * functions. hints may be NULL. Returns 0, or 1 when the chain ends (*stop_ret says why). A
	 * frame pointer of 0 proves nothing here (UNI_STOP_BADPTR): other code may keep a number in
	 * that register.
	 */
	int (*fp_step)(struct uni_as *as, const struct uni_unwind_hints *hints, bool leaf,
		struct uni_regs *regs, enum uni_stop *stop_ret);

	/*
	 * Does this code go straight to a return, by pops alone? Then the return address is
	 * *offset_ret above the stack pointer. NULL: not known.
	 */
	bool (*epilogue)(const uint8_t *code, size_t n, uint32_t *offset_ret);
	/*
	 * Works out the next instruction. False: it is not known which registers it changes, or
	 * where it leads. NULL: not known of any.
	 */
	bool (*ahead)(struct uni_as *as, struct uni_ahead *a);
	/*
	 * Does any instruction of this code load the stack pointer from memory? Searches byte by
	 * byte, so it may see one where there is none. NULL: not known of any.
	 */
	bool (*takes_stack)(const uint8_t *code, size_t n);
	/* Tells how the code from a function's first byte on has changed its stack by code[n]. */
	void (*find_stack)(const uint8_t *code, size_t n, struct uni_taken_stack *ret);

	/*
	 * Does for code what fp_step() does for a leaf: makes a rule of arch/leaf.h for each of the
	 * n bytes of code from hints->text_start on. Returns 0 or -UNI_ENOMEM. NULL: the
	 * architecture has no rules.
	 */
	int (*leaf_rules)(const struct uni_unwind_hints *hints, const uint8_t *code, size_t n,
		uint8_t *rule_ret);

	/*
	 * regs are a thread's that is on no CPU: pc and sp as its guest saved them. If the code at
	 * pc only restores saved registers from the stack and returns, this does the same. Then
	 * regs are those of the caller of the switch. Returns 0, or an error of reading. NULL: not
	 * known.
	 */
	int (*restore)(struct uni_as *as, struct uni_regs *regs);

	/*
	 * Does this code begin with an instruction that stores the flags? A debugger's step over it
	 * would store the step's own flag. NULL: such steps use no flag.
	 */
	bool (*stores_flags)(const uint8_t *code, size_t n);

	/* Removes pointer-authentication bits and the like from a code address. */
	uint64_t (*strip)(const struct uni_regs *regs, uint64_t pc);
};

/* strip() of an architecture that has no such bits; loops can leave the call out. */
uint64_t uni_arch_keep_pc(const struct uni_regs *regs, uint64_t pc);

extern const struct uni_arch uni_arch_x86_64, uni_arch_aarch64;

/* NULL if there is none. */
const struct uni_arch *uni_arch_by_elf_machine(unsigned machine);
const struct uni_arch *uni_arch_by_name(const char *name);
const struct uni_arch *uni_arch_of_host(void);

#endif
