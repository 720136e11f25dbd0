/* SPDX-License-Identifier: BSD-2-Clause */
/* From a `g` reply to registers, by the architecture's table. */
#ifndef UNI_BACKEND_GDB_REGS_H
#define UNI_BACKEND_GDB_REGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/err.h"

/*
 * Registers that the stub does not know ("xxxx"), or that are behind the end, stay invalid.
 * with_sys: the reply has QEMU's layout with the system registers. Otherwise only registers are
 * used that every stub has. Returns 0; -UNI_EPROTO: not even pc is there.
 */
int uni_gdb_regs(const struct uni_arch *arch, const uint8_t *hex, size_t size, bool with_sys,
	struct uni_regs *ret);

/* The number in a `p` reply: up to 8 bytes, little endian. False: it is no number. */
bool uni_gdb_reg_value(const uint8_t *hex, size_t size, uint64_t *ret);

/* The regnum of <reg name="NAME" ...> in a target description; false if there is none. */
bool uni_gdb_xml_reg(const char *xml, const char *name, uint32_t *ret);

/* Our architecture for the stub's name of it; NULL: not known. */
const struct uni_arch *uni_gdb_arch_of(const char *stub_name);

/* Compares the stub's name of its architecture with ours: 0, or -UNI_EMISMATCH and err. */
int uni_gdb_check_arch(const struct uni_arch *arch, const char *stub_name, struct uni_err *err);

/* The <architecture> of a target description; false: it has none (or it does not fit). */
bool uni_gdb_xml_arch(const char *xml, char *out, size_t cap);

#endif
