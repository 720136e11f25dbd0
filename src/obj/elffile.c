/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/elffile.h"

#include <elf.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>

#include "base/checked.h"

struct uni_elf_sh uni_elf_sh(const struct uni_elf *e, uint32_t i)
{
	Elf_Scn *scn = elf_getscn(e->elf, i);
	GElf_Shdr sh;

	if (scn == NULL || gelf_getshdr(scn, &sh) == NULL)
		return (struct uni_elf_sh){ 0 };
	return (struct uni_elf_sh){
		.type = sh.sh_type,
		.link = sh.sh_link,
		.flags = sh.sh_flags,
		.addr = sh.sh_addr,
		.offset = sh.sh_offset,
		.size = sh.sh_size,
		.ent_size = sh.sh_entsize,
	};
}

struct uni_elf_ph uni_elf_ph(const struct uni_elf *e, uint32_t i)
{
	GElf_Phdr ph;

	if (gelf_getphdr(e->elf, (int)i, &ph) == NULL)
		return (struct uni_elf_ph){ 0 };
	return (struct uni_elf_ph){
		.type = ph.p_type,
		.flags = ph.p_flags,
		.offset = ph.p_offset,
		.vaddr = ph.p_vaddr,
		.paddr = ph.p_paddr,
		.file_size = ph.p_filesz,
		.mem_size = ph.p_memsz,
	};
}

const uint8_t *uni_elf_section_bytes(const struct uni_elf *e, const struct uni_elf_sh *sh)
{
	if (sh->type == SHT_NOBITS || sh->type == SHT_NULL ||
		!uni_range_contains(0, e->size, sh->offset, sh->size))
		return NULL;
	return e->data + sh->offset;
}

int uni_elf_symbols(
	const char *name, const struct uni_elf *e, uint32_t i, Elf_Data **ret, struct uni_err *err)
{
	struct uni_elf_sh sh = uni_elf_sh(e, i);
	Elf_Data *data;

	if (sh.ent_size != gelf_fsize(e->elf, ELF_T_SYM, 1, EV_CURRENT))
		return uni_err_set(err, UNI_EFORMAT, "%s: symbols of a wrong size", name);
	if (uni_elf_section_bytes(e, &sh) == NULL)
		return uni_err_set(err, UNI_EFORMAT,
			"%s: its symbol table lies outside the file: truncated?", name);
	data = elf_getdata(elf_getscn(e->elf, i), NULL);
	if (data == NULL || data->d_type != ELF_T_SYM)
		return uni_err_set(err, UNI_EFORMAT, "%s: libelf cannot read its symbols: %s", name,
			elf_errmsg(-1));
	*ret = data;
	return 0;
}

bool uni_elf_symbol(Elf_Data *table, size_t i, struct uni_elf_sym *ret)
{
	GElf_Sym sym;

	if (table->d_buf == NULL || i > INT_MAX || gelf_getsym(table, (int)i, &sym) == NULL)
		return false;
	*ret = (struct uni_elf_sym){
		.name = sym.st_name,
		.section = sym.st_shndx,
		.info = sym.st_info,
		.addr = sym.st_value,
		.size = sym.st_size,
	};
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

uint32_t uni_elf_find_named(const struct uni_elf *e, const char *name)
{
	size_t names;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(e->elf, &names) != 0)
		return 0;
	for (uint32_t i = 1; i < e->nr_sh; i++) {
		Elf_Scn *scn = elf_getscn(e->elf, i);
		const char *found = scn != NULL && gelf_getshdr(scn, &sh) != NULL
					    ? elf_strptr(e->elf, names, sh.sh_name)
					    : NULL;

		if (found != NULL && strcmp(found, name) == 0)
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

/* Checks for files that libelf would call "no ELF file" without a reason. */
static int check_ident(const char *name, const uint8_t *data, size_t size, struct uni_err *err)
{
	if (size < EI_NIDENT || memcmp(data, ELFMAG, SELFMAG) != 0)
		return uni_err_set(err, UNI_EFORMAT, "%s is not an ELF file", name);
	if (data[EI_CLASS] != ELFCLASS32 && data[EI_CLASS] != ELFCLASS64)
		return uni_err_set(err, UNI_EFORMAT, "%s: ELF class %u is neither 32 nor 64 bit",
			name, data[EI_CLASS]);
	if (data[EI_DATA] != ELFDATA2LSB)
		return uni_err_set(
			err, UNI_ENOTSUP, "%s: only little-endian images are supported", name);
	if (data[EI_VERSION] != EV_CURRENT)
		return uni_err_set(err, UNI_EFORMAT, "%s: ELF version %u is not known", name,
			data[EI_VERSION]);
	if (size < (data[EI_CLASS] == ELFCLASS64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
		return uni_err_set(err, UNI_EFORMAT, "%s: the ELF header is cut short", name);
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

/* A number that does not fit e_phnum is in section 0 (gABI, "ELF header"). */
static size_t stated_phnum(const struct uni_elf *e, const GElf_Ehdr *h)
{
	GElf_Shdr sh;

	if (h->e_phnum != PN_XNUM || gelf_getshdr(elf_getscn(e->elf, 0), &sh) == NULL)
		return h->e_phnum;
	return sh.sh_info;
}

/*
 * libelf counts no more headers than the file can hold, without an error. So a count that differs
 * from the stated one means a truncated file. (If e_shnum refers to section 0, and libelf does not
 * believe that section, then there are no sections.)
 */
static int count_tables(
	const char *name, struct uni_elf *e, const GElf_Ehdr *h, struct uni_err *err)
{
	size_t ph_size = gelf_fsize(e->elf, ELF_T_PHDR, 1, EV_CURRENT);
	size_t sh_size = gelf_fsize(e->elf, ELF_T_SHDR, 1, EV_CURRENT);
	size_t nr_ph = 0, nr_sh = 0;

	if ((h->e_phoff != 0 && h->e_phnum != 0 && h->e_phentsize != ph_size) ||
		(h->e_shoff != 0 && h->e_shnum != 0 && h->e_shentsize != sh_size))
		return uni_err_set(
			err, UNI_EFORMAT, "%s: program or section headers of a wrong size", name);
	if (h->e_phoff != 0 &&
		(elf_getphdrnum(e->elf, &nr_ph) != 0 || nr_ph != stated_phnum(e, h) ||
			!uni_range_contains(0, e->size, h->e_phoff, (uint64_t)nr_ph * ph_size)))
		return uni_err_set(err, UNI_EFORMAT,
			"%s: its program headers lie outside the file: truncated?", name);
	if (h->e_shoff != 0 &&
		(elf_getshdrnum(e->elf, &nr_sh) != 0 || (h->e_shnum != 0 && nr_sh != h->e_shnum) ||
			!uni_range_contains(0, e->size, h->e_shoff, (uint64_t)nr_sh * sh_size)))
		return uni_err_set(err, UNI_EFORMAT,
			"%s: its section headers lie outside the file: truncated?", name);
	e->nr_ph = (uint32_t)nr_ph;
	e->nr_sh = (uint32_t)nr_sh;
	return 0;
}

static int read_header(const char *name, struct uni_elf *e, struct uni_err *err)
{
	GElf_Ehdr h;
	int rc;

	if (e->elf == NULL || gelf_getehdr(e->elf, &h) == NULL)
		return uni_err_set(
			err, UNI_EFORMAT, "%s: libelf cannot read it: %s", name, elf_errmsg(-1));
	rc = check_type(name, h.e_type, err);
	if (rc != 0)
		return rc;
	e->is64 = gelf_getclass(e->elf) == ELFCLASS64;
	e->machine = h.e_machine;
	e->entry = h.e_entry;
	return count_tables(name, e, &h, err);
}

int uni_elf_open(
	const char *name, void *data, size_t size, struct uni_elf *ret, struct uni_err *err)
{
	struct uni_elf e = { .data = data, .size = size };
	int rc = check_ident(name, data, size, err);

	if (rc != 0)
		return rc;
	(void)elf_version(EV_CURRENT); /* libelf refuses to work before this call */
	e.elf = elf_memory(data, size);
	rc = read_header(name, &e, err);
	if (rc != 0) {
		uni_elf_close(&e);
		return rc;
	}
	*ret = e;
	return 0;
}

void uni_elf_close(struct uni_elf *e)
{
	(void)elf_end(e->elf);
	e->elf = NULL;
	e->data = NULL;
	e->size = 0;
	e->nr_ph = e->nr_sh = 0;
}
