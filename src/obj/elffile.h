/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The few structures of ELF that an image needs. libelf reads them, and we check them: counts,
 * offsets, sizes and links of a hostile file are checked here before they are used. libelf refuses
 * tables that lie outside the file, but leaves them out silently. It returns sh_offset, sh_size,
 * sh_link and st_name unchecked.
 */
#ifndef UNI_OBJ_ELFFILE_H
#define UNI_OBJ_ELFFILE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "obj/image.h"
#include "obj/solo5.h"

#define UNI_ELF_FILE_MAX ((size_t)1 << 30)

/* uni_elf_open() has checked that the tables of both kinds of headers lie inside the file. */
struct uni_elf {
	Elf *elf;	     /* owned */
	const uint8_t *data; /* borrowed */
	size_t size;
	bool is64;
	uint16_t machine; /* EM_* */
	uint64_t entry;
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

/*
 * Accepts linked (ET_EXEC, ET_DYN) little-endian files of both classes. data is borrowed until
 * uni_elf_close(), must not change, and is not const only because of libelf's interface.
 */
int uni_elf_open(
	const char *name, void *data, size_t size, struct uni_elf *ret, struct uni_err *err);
/* Afterwards only machine, entry and is64 are valid. Accepts a zeroed e, too. */
void uni_elf_close(struct uni_elf *e);
struct uni_elf_ph uni_elf_ph(const struct uni_elf *e, uint32_t i); /* i < nr_ph */
struct uni_elf_sh uni_elf_sh(const struct uni_elf *e, uint32_t i); /* i < nr_sh */
/* The bytes of a section, borrowed; NULL if it has none, or if they lie outside the file. */
const uint8_t *uni_elf_section_bytes(const struct uni_elf *e, const struct uni_elf_sh *sh);
/* The symbol table in section i, or why it cannot be read. Borrowed from e. */
int uni_elf_symbols(
	const char *name, const struct uni_elf *e, uint32_t i, Elf_Data **ret, struct uni_err *err);
/* Symbol i of such a table; false past its end. */
bool uni_elf_symbol(Elf_Data *table, size_t i, struct uni_elf_sym *ret);
/* The first section of that SHT_ type; 0 (never a real section) if there is none. */
uint32_t uni_elf_find_section(const struct uni_elf *e, uint32_t type);
/* The first section of that name; 0 if there is none. */
uint32_t uni_elf_find_named(const struct uni_elf *e, const char *name);
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
/* The number of code bytes in the file. */
uint64_t uni_segments_code_bytes(const struct uni_segments *s);
/* Is all code of a also in b, at the same addresses under `mask`? False if a has no code. */
bool uni_segments_same_code(
	const struct uni_segments *a, const struct uni_segments *b, uint64_t mask);

struct uni_elf_notes {
	uint8_t build_id[UNI_BUILD_ID_MAX];
	size_t build_id_len; /* 0: none */
	uint64_t pvh_entry;  /* physical address of XEN_ELFNOTE_PHYS32_ENTRY */
	bool has_pvh_entry;
	uint64_t pv_entry; /* address of XEN_ELFNOTE_ENTRY */
	bool has_pv_entry;
	uint64_t stubs; /* XEN_ELFNOTE_HYPERCALL_PAGE: an address, filled in by Xen */
	bool has_stubs;
};

void uni_elf_notes(const struct uni_elf *e, struct uni_elf_notes *ret);
void uni_elf_solo5(const struct uni_elf *e, struct uni_solo5 *ret);
/* Adds the notes of one note area to ret, which the caller zeroed at first. */
void uni_elf_notes_parse(const uint8_t *data, size_t size, struct uni_elf_notes *ret);

/* EM_* of the instructions. That differs from e_machine in an ELF32 wrapper around 64-bit code. */
unsigned uni_elf_code_machine(const struct uni_elf *e, const struct uni_segments *s);

#endif
