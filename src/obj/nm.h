/* SPDX-License-Identifier: BSD-2-Clause */
/* The symbol table of an ELF file as `nm -n` prints it, for tools that read that. */
#ifndef UNI_OBJ_NM_H
#define UNI_OBJ_NM_H

#include "base/err.h"
#include "base/sink.h"

/*
 * Writes undefined symbols, then the others by address and name: "0000000000001000 T foo". Leaves
 * out the names of sections and source files. -UNI_ENOENT: the file has no symbol table.
 */
int uni_nm_write(const char *path, struct uni_sink *out, struct uni_err *err);
int uni_nm_from_memory(
	const char *name, const void *data, size_t size, struct uni_sink *out, struct uni_err *err);

#endif
