/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/elffile.h"

#include <elf.h>
#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"

/* An address, offset or size: 4 or 8 bytes by the file's class. */
static uint64_t get_word(struct uni_cursor *c, bool is64)
{
	return is64 ? uni_cursor_u64(c) : uni_cursor_u32(c);
}

static struct uni_cursor at(const struct uni_elf *e, uint64_t off)
{
	struct uni_cursor c = uni_cursor_make(e->data, e->size);

	/* Tables were checked at open, so off fits. */
	uni_cursor_seek(&c, (size_t)off);
	return c;
}

static size_t sh_entry(const struct uni_elf *e)
{
	return e->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
}

static size_t ph_entry(const struct uni_elf *e)
{
	return e->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
}

struct uni_elf_sh uni_elf_sh(const struct uni_elf *e, uint32_t i)
{
	struct uni_cursor c = at(e, e->sh_off + (uint64_t)i * sh_entry(e));
	struct uni_elf_sh sh;

	(void)uni_cursor_u32(&c); /* sh_name: sections are known by type and flags */
	sh.type = uni_cursor_u32(&c);
	sh.flags = get_word(&c, e->is64);
	sh.addr = get_word(&c, e->is64);
	sh.offset = get_word(&c, e->is64);
	sh.size = get_word(&c, e->is64);
	sh.link = uni_cursor_u32(&c);
	(void)uni_cursor_u32(&c);    /* sh_info */
	(void)get_word(&c, e->is64); /* sh_addralign */
	sh.ent_size = get_word(&c, e->is64);
	return sh;
}

struct uni_elf_ph uni_elf_ph(const struct uni_elf *e, uint32_t i)
{
	struct uni_cursor c = at(e, e->ph_off + (uint64_t)i * ph_entry(e));
	struct uni_elf_ph ph;

	ph.type = uni_cursor_u32(&c);
	if (e->is64)
		ph.flags = uni_cursor_u32(&c);
	ph.offset = get_word(&c, e->is64);
	ph.vaddr = get_word(&c, e->is64);
	ph.paddr = get_word(&c, e->is64);
	ph.file_size = get_word(&c, e->is64);
	ph.mem_size = get_word(&c, e->is64);
	if (!e->is64)
		ph.flags = uni_cursor_u32(&c);
	return ph;
}

const uint8_t *uni_elf_section_bytes(const struct uni_elf *e, const struct uni_elf_sh *sh)
{
	if (sh->type == SHT_NOBITS || sh->type == SHT_NULL ||
		!uni_range_contains(0, e->size, sh->offset, sh->size))
		return NULL;
	return e->data + sh->offset;
}

bool uni_elf_symbol(const struct uni_elf *e, const uint8_t *table, size_t size, size_t i,
	struct uni_elf_sym *ret)
{
	const size_t entry = e->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	struct uni_cursor c;

	if (i >= size / entry)
		return false;
	c = uni_cursor_make(table + i * entry, entry);
	ret->name = uni_cursor_u32(&c);
	if (!e->is64) {
		ret->addr = uni_cursor_u32(&c);
		ret->size = uni_cursor_u32(&c);
	}
	ret->info = uni_cursor_u8(&c);
	(void)uni_cursor_u8(&c); /* st_other: visibility */
	ret->section = uni_cursor_u16(&c);
	if (e->is64) {
		ret->addr = uni_cursor_u64(&c);
		ret->size = uni_cursor_u64(&c);
	}
	return true;
}

uint32_t uni_elf_find_section(const struct uni_elf *e, uint32_t type)
{
	for (uint32_t i = 1; i < e->nr_sh; i++) {
		if (uni_elf_sh(e, i).type == type)
			return i;
	}
	return 0;
}

bool uni_elf_is_debug_only(const struct uni_elf *e)
{
	bool nobits = false;

	for (uint32_t i = 1; i < e->nr_sh; i++) {
		struct uni_elf_sh sh = uni_elf_sh(e, i);

		if (!(sh.flags & SHF_ALLOC) || !(sh.flags & SHF_EXECINSTR))
			continue;
		if (sh.type != SHT_NOBITS)
			return false;
		nobits = true;
	}
	return nobits;
}

static int check_ident(
	const char *name, const uint8_t *data, size_t size, bool *is64_ret, struct uni_err *err)
{
	if (size < EI_NIDENT || memcmp(data, ELFMAG, SELFMAG) != 0)
		return uni_err_set(err, UNI_EFORMAT, "%s is not an ELF file", name);
	if (data[EI_CLASS] != ELFCLASS32 && data[EI_CLASS] != ELFCLASS64)
		return uni_err_set(err, UNI_EFORMAT, "%s: ELF class %u is neither 32 nor 64 bit",
			name, data[EI_CLASS]);
	if (data[EI_DATA] != ELFDATA2LSB)
		return uni_err_set(
			err, UNI_ENOTSUP, "%s: only little-endian images are supported", name);
	*is64_ret = data[EI_CLASS] == ELFCLASS64;
	return 0;
}

static int check_type(const char *name, unsigned type, struct uni_err *err)
{
	if (type == ET_EXEC || type == ET_DYN)
		return 0;
	if (type == ET_REL)
		return uni_err_set(err, UNI_EFORMAT,
			"%s is an object file: name the linked image instead", name);
	return uni_err_set(err, UNI_EFORMAT, "%s: ELF type %u is not a linked image", name, type);
}

/* Counts that do not fit e_phnum and e_shnum are in section 0 (gABI, "ELF header"). */
static void extended_counts(struct uni_elf *e)
{
	struct uni_elf_sh sh;
	struct uni_cursor c;

	if (e->sh_off == 0 || !uni_range_contains(0, e->size, e->sh_off, sh_entry(e)))
		return;
	sh = uni_elf_sh(e, 0);
	if (e->nr_sh == 0)
		e->nr_sh = (uint32_t)uni_min(sh.size, UINT32_MAX);
	if (e->nr_ph == PN_XNUM) {
		c = at(e, e->sh_off);
		(void)uni_cursor_take(&c,
			e->is64 ? offsetof(Elf64_Shdr, sh_info) : offsetof(Elf32_Shdr, sh_info));
		e->nr_ph = uni_cursor_u32(&c);
	}
}

static int check_tables(
	const char *name, struct uni_elf *e, unsigned ph_ent, unsigned sh_ent, struct uni_err *err)
{
	if (e->ph_off == 0)
		e->nr_ph = 0;
	if (e->sh_off == 0)
		e->nr_sh = 0;
	if ((e->nr_ph != 0 && ph_ent != ph_entry(e)) || (e->nr_sh != 0 && sh_ent != sh_entry(e)))
		return uni_err_set(
			err, UNI_EFORMAT, "%s: program or section headers of a wrong size", name);
	if (!uni_range_contains(0, e->size, e->ph_off, (uint64_t)e->nr_ph * ph_entry(e)))
		return uni_err_set(err, UNI_EFORMAT,
			"%s: its program headers lie outside the file: truncated?", name);
	if (!uni_range_contains(0, e->size, e->sh_off, (uint64_t)e->nr_sh * sh_entry(e)))
		return uni_err_set(err, UNI_EFORMAT,
			"%s: its section headers lie outside the file: truncated?", name);
	return 0;
}

int uni_elf_open(
	const char *name, const void *data, size_t size, struct uni_elf *ret, struct uni_err *err)
{
	struct uni_elf e = { .data = data, .size = size };
	struct uni_cursor c = uni_cursor_make(data, size);
	unsigned ph_ent, sh_ent;
	int rc;

	rc = check_ident(name, data, size, &e.is64, err);
	if (rc != 0)
		return rc;
	uni_cursor_seek(&c, EI_NIDENT);
	e.type = uni_cursor_u16(&c);
	e.machine = uni_cursor_u16(&c);
	(void)uni_cursor_u32(&c); /* e_version: some wrappers leave 0 */
	e.entry = get_word(&c, e.is64);
	e.ph_off = get_word(&c, e.is64);
	e.sh_off = get_word(&c, e.is64);
	(void)uni_cursor_u32(&c); /* e_flags */
	(void)uni_cursor_u16(&c); /* e_ehsize */
	ph_ent = uni_cursor_u16(&c);
	e.nr_ph = uni_cursor_u16(&c);
	sh_ent = uni_cursor_u16(&c);
	e.nr_sh = uni_cursor_u16(&c);
	(void)uni_cursor_u16(&c); /* e_shstrndx */
	if (c.failed)
		return uni_err_set(err, UNI_EFORMAT, "%s: the ELF header is cut short", name);
	rc = check_type(name, e.type, err);
	if (rc != 0)
		return rc;
	extended_counts(&e);
	rc = check_tables(name, &e, ph_ent, sh_ent, err);
	if (rc != 0)
		return rc;
	*ret = e;
	return 0;
}
