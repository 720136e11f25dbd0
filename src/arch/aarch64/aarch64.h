/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of this folder; other folders use uni_arch_aarch64. */
#ifndef UNI_ARCH_AARCH64_H
#define UNI_ARCH_AARCH64_H

#include "arch/arch.h"

#define UNI_A64_INSN 4u /* bytes of an instruction */

int uni_aarch64_paging(const struct uni_regs *regs, struct uni_pt_root *ret);
/* Address bits of the half that bit 55 of va selects; 48 if nothing is known. */
unsigned uni_aarch64_va_bits(const struct uni_regs *regs, uint64_t va);

/*
 * Finds the instruction with which a function of this code makes x29 point at its frame record, as
 * an offset. False if the function does not begin by setting up a frame record.
 */
bool uni_aarch64_prologue(const uint8_t *code, size_t n, size_t *set_ret);
bool uni_aarch64_sets_frame(const uint8_t *code, size_t n);
/* Does the code run mov x29, xzr (or #0) without a store of x29 before it? */
bool uni_aarch64_clears_fp(const uint8_t *code, size_t n);
bool uni_aarch64_after_call(const uint8_t *before, uint64_t ret_addr, uint64_t *target_ret);
/* Does this code go straight to a return without loading x30? Then x30 is the return address. */
bool uni_aarch64_epilogue(const uint8_t *code, size_t n);

/* The register that a return instruction returns to, or -1: the instruction is no return. */
int uni_aarch64_return_reg(uint32_t insn);
uint32_t uni_aarch64_insn(const uint8_t *code);

/* restore.c: see arch.h. */
int uni_aarch64_restore(struct uni_as *as, struct uni_regs *regs);

int uni_aarch64_fp_step(struct uni_as *as, const struct uni_unwind_hints *hints, bool leaf,
	struct uni_regs *regs, enum uni_stop *stop_ret);

enum uni_branch uni_aarch64_branch(
	const uint8_t *code, size_t n, uint64_t at, uint64_t *target_ret);
bool uni_aarch64_has_returned(struct uni_as *as, const struct uni_regs *regs);

#endif
