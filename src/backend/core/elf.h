/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The structure of an ELF core, which may be cut off anywhere: all that lies in the file is read.
 * We read it ourselves because libelf wants a whole file, and cores are larger than memory.
 */
#ifndef UNI_BACKEND_CORE_ELF_H
#define UNI_BACKEND_CORE_ELF_H

#include <stdbool.h>

#include "base/cursor.h"
#include "backend/core/src.h"

struct uni_core_elf {
	const struct uni_core_src *src; /* borrowed */
	uint16_t machine;
	uint64_t phoff, shoff;
	uint32_t nr_ph, nr_sh, shstrndx;
	bool cut; /* some headers are behind the file's end */
};

struct uni_core_ph {
	uint32_t type;
	uint64_t offset, vaddr, paddr, file_size, mem_size;
};

struct uni_core_sh {
	uint32_t name; /* offset into the string section */
	uint64_t offset, size, ent_size;
	uint32_t link, info;
};

struct uni_core_note {
	const char *name; /* name_size bytes, with or without its NUL */
	size_t name_size;
	uint32_t type;
	const uint8_t *desc;
	size_t size;
};

/* Accepts 64-bit little-endian cores only; otherwise err says what the file is, and what to do. */
int uni_core_elf_open(
	const struct uni_core_src *src, struct uni_core_elf *ret, struct uni_err *err);

/* Reads all program headers, nr_ph of them; the caller owns them. */
int uni_core_elf_phs(const struct uni_core_elf *e, struct uni_core_ph **ret, struct uni_err *err);

/* -UNI_ENOENT: there is no section of that name. */
int uni_core_elf_section(const struct uni_core_elf *e, const char *name, struct uni_core_sh *ret);

/* Reads the part of [off, off + size) that is in the file, at most 64 MiB; the caller owns it. */
int uni_core_elf_bytes(const struct uni_core_elf *e, uint64_t off, uint64_t size, uint8_t **ret,
	size_t *size_ret, struct uni_err *err);

/* The next note; false at the end, or if the note is truncated. */
bool uni_core_note_next(struct uni_cursor *c, struct uni_core_note *ret);
bool uni_core_note_is(const struct uni_core_note *n, const char *name, uint32_t type);

#endif
