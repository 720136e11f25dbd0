/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of this folder; other folders use uni_arch_x86_64. */
#ifndef UNI_ARCH_X86_64_H
#define UNI_ARCH_X86_64_H

#include "arch/arch.h"

/* Code bytes of a function's start, enough to find its prologue. */
#define UNI_X86_PROLOGUE_MAX 32

/* The instructions that set up the frame pointer, as offsets from the function's start. */
struct uni_x86_64_prologue {
	uint8_t push; /* push rbp */
	uint8_t mov;  /* mov rbp, rsp */
};

int uni_x86_64_paging(const struct uni_regs *regs, struct uni_pt_root *ret);

/* False if the function does not begin by setting up a frame pointer. */
bool uni_x86_64_prologue(const uint8_t *code, size_t n, struct uni_x86_64_prologue *ret);
bool uni_x86_64_sets_frame(const uint8_t *code, size_t n);
/*
 * Does the code have xor ebp, ebp without a push rbp before it? Searches byte by byte: see arch.h.
 */
bool uni_x86_64_clears_fp(const uint8_t *code, size_t n);
bool uni_x86_64_stores_flags(const uint8_t *code, size_t n);
bool uni_x86_64_begins_stack(const uint8_t *code, size_t n);

/* Bytes before a return address, enough for every form of a near call that we know. */
#define UNI_X86_CALL_MAX UNI_CALL_BYTES

/* Do the UNI_X86_CALL_MAX bytes before ret_addr end in call rel32 (E8)? Gives its target. */
bool uni_x86_64_direct_call(const uint8_t *before, uint64_t ret_addr, uint64_t *target_ret);
/* Or do they end in a call through a register or memory (FF /2)? */
bool uni_x86_64_indirect_call(const uint8_t *before);
/* Do they end in either of these? The target is 0 for an indirect call. */
bool uni_x86_64_after_call(const uint8_t *before, uint64_t ret_addr, uint64_t *target_ret);
/*
 * Does this code go straight to a ret without restoring rbp on the way? Then the return address is
 * *offset_ret above rsp, and rbp is the caller's, even if it was changed before.
 */
bool uni_x86_64_epilogue(const uint8_t *code, size_t n, uint32_t *offset_ret);
/* The DWARF number of a register, by its number in instructions (0 to 15). */
unsigned uni_x86_64_dwarf(unsigned enc);
/* As in struct uni_arch. */
bool uni_x86_64_takes_stack(const uint8_t *code, size_t n);
void uni_x86_64_find_stack(const uint8_t *code, size_t n, struct uni_taken_stack *ret);
/* As struct uni_arch.ahead. */
bool uni_x86_64_ahead(struct uni_as *as, struct uni_ahead *a);
/*
 * Length of one instruction of an epilogue, or 0: it is none. Tells whether it is the ret, else
 * what it adds to rsp.
 */
size_t uni_x86_64_epilogue_step(const uint8_t *code, size_t n, uint32_t *add_ret, bool *ret_ret);
/*
 * How far a function without a frame has moved rsp after its first n bytes. True: these are only
 * pushes, sub rsp and harmless instructions. False: *offset_ret is how far it had moved rsp before
 * the first other instruction.
 */
bool uni_x86_64_pushed(const uint8_t *code, size_t n, uint32_t *offset_ret);
/* Length of one such instruction, or 0: it is none. Also gives what it takes off rsp. */
size_t uni_x86_64_push_step(const uint8_t *code, size_t n, uint32_t *sub_ret);
/* Is it mov rbp, rsp? */
bool uni_x86_64_is_set_frame(const uint8_t *code, size_t n);
/*
 * How far a stub of a hypervisor (Xen's hypercall page) has moved rsp after its first n bytes.
 * False if this is no such stub, or if it has returned before.
 */
bool uni_x86_64_stub(const uint8_t *code, size_t n, uint32_t *offset_ret);
/* Is the instruction before code[n] pop rbp or leave? May be wrong: it guesses from the bytes. */
bool uni_x86_64_frame_popped(const uint8_t *before, size_t n);

/* How many bytes a leaf step looks at: of the code at pc, and of a frameless function's start. */
#define UNI_X86_LEAF_CODE_MAX 32
#define UNI_X86_START_MAX     64

/* leaf.c: the result of a leaf step that looks at code alone, for each byte; see arch/leaf.h. */
int uni_x86_64_leaf_rules(
	const struct uni_unwind_hints *hints, const uint8_t *code, size_t n, uint8_t *rule_ret);

int uni_x86_64_fp_step(struct uni_as *as, const struct uni_unwind_hints *hints, bool leaf,
	struct uni_regs *regs, enum uni_stop *stop_ret);

/* restore.c: see arch.h. */
int uni_x86_64_restore(struct uni_as *as, struct uni_regs *regs);

/* insn.c: see arch.h; the bytes before the opcode; those of ModRM, SIB and displacement. 0: it does
 * not fit, or is no instruction. */
size_t uni_x86_64_insn_size(const uint8_t *code, size_t n);
size_t uni_x86_64_prefixes(const uint8_t *code, size_t n);
size_t uni_x86_64_modrm_size(const uint8_t *code, size_t n);

enum uni_branch uni_x86_64_branch(const uint8_t *code, size_t n, uint64_t at, uint64_t *target_ret);
bool uni_x86_64_has_returned(struct uni_as *as, const struct uni_regs *regs);

#endif
