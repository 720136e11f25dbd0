/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The few structures of ELF that an image needs, read through a bounded cursor.
 *
 * Ours and not libelf: libelf hands out typed pointers into the file and leaves it to the caller
 * to doubt sh_offset, sh_link, st_name and n_descsz, while nothing here is ever a pointer before
 * it has been checked; and headers, symbols and notes of a linked file are few enough lines to
 * read in one sitting. (DWARF is another matter.)
 */
#ifndef UNI_OBJ_ELFFILE_H
#define UNI_OBJ_ELFFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "obj/image.h"

#define UNI_ELF_FILE_MAX ((size_t)1 << 30)

/* Both headers' tables are known to lie inside the file: that is what uni_elf_open() checks. */
struct uni_elf {
	const uint8_t *data; /* borrowed */
	size_t size;
	bool is64;
	uint16_t type, machine; /* ET_*, EM_* */
	uint64_t entry;
	uint64_t ph_off, sh_off;
	uint32_t nr_ph, nr_sh;
};

struct uni_elf_ph {
	uint32_t type, flags;
	uint64_t offset, vaddr, paddr, file_size, mem_size;
};

struct uni_elf_sh {
	uint32_t type, link;
	uint64_t flags, addr, offset, size, ent_size;
};

struct uni_elf_sym {
	uint32_t name;
	uint16_t section;
	uint8_t info;
	uint64_t addr, size;
};

/* Accepts linked (ET_EXEC, ET_DYN) little-endian files of both classes. data is borrowed. */
int uni_elf_open(
	const char *name, const void *data, size_t size, struct uni_elf *ret, struct uni_err *err);
struct uni_elf_ph uni_elf_ph(const struct uni_elf *e, uint32_t i); /* i < nr_ph */
struct uni_elf_sh uni_elf_sh(const struct uni_elf *e, uint32_t i); /* i < nr_sh */
/* The bytes of a section: NULL if it has none or claims some outside the file. Borrowed. */
const uint8_t *uni_elf_section_bytes(const struct uni_elf *e, const struct uni_elf_sh *sh);
/* Symbol i of a table of `size` bytes; false past its end. */
bool uni_elf_symbol(const struct uni_elf *e, const uint8_t *table, size_t size, size_t i,
	struct uni_elf_sym *ret);
/* The first section of that SHT_ type; 0 (never a real section) if there is none. */
uint32_t uni_elf_find_section(const struct uni_elf *e, uint32_t type);
/* A file made by `objcopy --only-keep-debug`: its code sections have no bytes. */
bool uni_elf_is_debug_only(const struct uni_elf *e);

struct uni_segments {
	struct uni_segment *v; /* in the file's order, none of them empty; bytes borrow the file */
	size_t nr;
};

int uni_segments_read(
	const char *name, const struct uni_elf *e, struct uni_segments *ret, struct uni_err *err);
void uni_segments_deinit(struct uni_segments *s);
bool uni_segments_copy(const struct uni_segments *s, uint64_t svma, void *buf, size_t len);
/* Bytes of code that the file holds. */
uint64_t uni_segments_code_bytes(const struct uni_segments *s);
/* Does all code of a stand in b, at the same addresses under `mask`? False if a has none. */
bool uni_segments_same_code(
	const struct uni_segments *a, const struct uni_segments *b, uint64_t mask);

struct uni_elf_notes {
	uint8_t build_id[UNI_BUILD_ID_MAX];
	size_t build_id_len; /* 0: none */
	uint64_t pvh_entry;  /* physical address of XEN_ELFNOTE_PHYS32_ENTRY */
	bool has_pvh_entry;
};

void uni_elf_notes(const struct uni_elf *e, struct uni_elf_notes *ret);

/* EM_* of the instructions, which is not e_machine in an ELF32 wrapper around 64-bit code. */
unsigned uni_elf_code_machine(const struct uni_elf *e, const struct uni_segments *s);

#endif
