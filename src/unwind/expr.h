/* SPDX-License-Identifier: BSD-2-Clause */
/* Evaluates the expressions of unwind rows: a small stack machine, bounded in steps and depth. */
#ifndef UNI_UNWIND_EXPR_H
#define UNI_UNWIND_EXPR_H

#include "arch/arch.h"
#include "arch/cfi.h"

/*
 * Evaluates the expression at op[first]. Its stack first has the value that `cfa` points at (NULL:
 * nothing). Returns 0; -UNI_EINVAL if a register is not known or the stack ends; or as
 * uni_as_read().
 */
int uni_cfi_eval(const struct uni_cfi_table *t, uint32_t first, const struct uni_arch *arch,
	struct uni_as *as, const struct uni_regs *regs, const uint64_t *cfa, uint64_t *ret);

/* A register by its DWARF number; pc and sp have numbers, too. */
bool uni_cfi_register(
	const struct uni_arch *arch, const struct uni_regs *regs, unsigned reg, uint64_t *ret);

#endif
