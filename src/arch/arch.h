/* SPDX-License-Identifier: BSD-2-Clause */
/* A CPU architecture as const data, chosen at run time by the image's ELF machine. */
#ifndef UNI_ARCH_ARCH_H
#define UNI_ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/hints.h"
#include "arch/regs.h"
#include "arch/stop.h"
#include "mem/as.h"

/* Bytes before a return address that hold every form of a call. */
#define UNI_CALL_BYTES 7

/* Where a register lies in a gdb `g` packet (bytes, little endian). */
struct uni_gdb_reg {
	uint16_t offset;
	uint8_t size;
	bool sys; /* number is a sys[] index, else a DWARF number */
	uint8_t number;
};

/* A system register that no `g` packet has: a stub that describes its registers is asked for it. */
struct uni_gdb_named {
	const char *name; /* in the description */
	uint8_t number;	  /* sys[] index; several names may have the same */
};

struct uni_arch {
	const char *name;     /* "x86_64" */
	uint16_t elf_machine; /* EM_* */
	bool pc_hole;	      /* its machines have devices, not RAM, below 4 GiB */
	uint8_t word;	      /* bytes of an address: 8 */
	uint8_t nr_regs;
	uint8_t fp_reg, sp_reg, pc_reg;	    /* DWARF numbers */
	uint64_t callee_saved;		    /* bit n: a call leaves register n as it was */
	const char *const *reg_names;	    /* nr_regs, by DWARF number */
	const char *const *sys_names;	    /* UNI_SYS_MAX, NULL where unused */
	const struct uni_gdb_reg *gdb_regs; /* layout without target XML (QEMU's) */
	size_t nr_gdb_regs;
	size_t gdb_g_size;		       /* bytes that a whole `g` reply must at least have */
	const struct uni_gdb_named *gdb_named; /* paging() wants all of these numbers */
	size_t nr_gdb_named;

	/* The paging mode that these registers select; -UNI_EINVAL if they contradict themselves.
	 */
	int (*paging)(const struct uni_regs *regs, struct uni_pt_root *ret);

	/* Do a stopped vCPU's registers say that it has never run? NULL: they cannot. */
	bool (*never_started)(const struct uni_regs *regs);

	/* Does a function with these first bytes set up a frame pointer? n may be less than asked.
	 */
	bool (*sets_frame)(const uint8_t *code, size_t n);

	/*
	 * Do the UNI_CALL_BYTES bytes before a return address end in a call? Its target, or 0 if
	 * it goes through a register or memory.
	 */
	bool (*after_call)(const uint8_t *before, uint64_t ret_addr, uint64_t *target_ret);

	/*
	 * Does this code set the frame pointer to 0 without having saved it before? That is how an
	 * outermost function, of a boot or a thread, marks the end of a chain.
	 */
	bool (*clears_fp)(const uint8_t *code, size_t n);

	/*
	 * Frame-pointer step: replaces regs (pc, sp, fp, valid) by the caller's. `leaf` is true for
	 * the first step of a chain, where prologue and frameless corrections apply. hints may be
	 * NULL. Returns 0, or 1 when the chain ends (*stop_ret says why). That the frame pointer is
	 * 0 proves nothing here (UNI_STOP_BADPTR): other code may keep a number in it.
	 */
	int (*fp_step)(struct uni_as *as, const struct uni_unwind_hints *hints, bool leaf,
		struct uni_regs *regs, enum uni_stop *stop_ret);

	/*
	 * What fp_step() finds out from code alone for the leaf, as a rule of arch/leaf.h for each
	 * of the n bytes of code from hints->text_start on. 0 or -UNI_ENOMEM. NULL: none are made.
	 */
	int (*leaf_rules)(const struct uni_unwind_hints *hints, const uint8_t *code, size_t n,
		uint8_t *rule_ret);

	/*
	 * regs are those of a thread that is on no CPU: pc and sp as its guest saved them. Where
	 * the code at pc only takes saved registers off the stack and returns, that is done: regs
	 * are then those of the caller of the switch. 0, or what reading said; NULL: not known.
	 */
	int (*restore)(struct uni_as *as, struct uni_regs *regs);

	/* Removes pointer-authentication bits and the like from a code address. */
	uint64_t (*strip)(const struct uni_regs *regs, uint64_t pc);
};

extern const struct uni_arch uni_arch_x86_64, uni_arch_aarch64;

/* NULL if there is none. */
const struct uni_arch *uni_arch_by_elf_machine(unsigned machine);
const struct uni_arch *uni_arch_by_name(const char *name);
const struct uni_arch *uni_arch_of_host(void);

#endif
