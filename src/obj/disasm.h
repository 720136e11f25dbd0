/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From bytes to instructions, by Capstone. The library is loaded when it is first needed, because
 * loading it with the program would make each command start a quarter slower.
 */
#ifndef UNI_OBJ_DISASM_H
#define UNI_OBJ_DISASM_H

#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/err.h"

#define UNI_INSN_TEXT 208

enum uni_insn_kind {
	UNI_INSN_OTHER,
	UNI_INSN_JUMP, /* within the function or out of it, taken always or not */
	UNI_INSN_CALL,
	UNI_INSN_RETURN,
	UNI_INSN_BAD, /* bytes that are no instruction */
};

struct uni_insn {
	uint64_t addr;
	uint64_t target; /* of a direct jump or call; 0: none */
	uint32_t size;
	uint8_t kind;		  /* enum uni_insn_kind */
	char text[UNI_INSN_TEXT]; /* x86 in AT&T syntax */
};

struct uni_disasm;

/* Loads the library for good, for a process that may not do so later. If there is none, opening
 * says so. */
void uni_disasm_load(void);
/* -UNI_ENOTSUP: no library, or no such architecture; err says which package has it. */
int uni_disasm_open(const struct uni_arch *arch, struct uni_disasm **ret, struct uni_err *err);
void uni_disasm_close(struct uni_disasm *d); /* NULL-safe */
/* The instruction at the begin of these bytes, which are at addr; size is not 0. It has at least
 * one of them, and no more than size. */
void uni_disasm_one(struct uni_disasm *d, const uint8_t *code, size_t size, uint64_t addr,
	struct uni_insn *ret);

#endif
