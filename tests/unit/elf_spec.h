/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes small ELF images into memory for tests: a code segment, a data segment and notes, with the
 * symbols that a test lists. All offsets are kept, so that a test can then damage what it wants.
 */
#ifndef UNI_TESTS_ELF_SPEC_H
#define UNI_TESTS_ELF_SPEC_H

#include <assert.h>
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ELF_SPEC_MAX 16384

enum { SPEC_TEXT = 1, SPEC_DATA, SPEC_NOTE, SPEC_SYMTAB, SPEC_STRTAB, SPEC_NR_SECTIONS };

struct spec_sym {
	const char *name;
	uint64_t addr, size;
	unsigned type, bind;
	uint16_t section;
};

struct elf_spec {
	bool elf32, debug_only, no_exec_flag;
	uint16_t machine, type; /* 0: EM_X86_64, ET_EXEC */
	uint64_t text, data;	/* SVMA */
	uint64_t phys_offset;	/* paddr = vaddr - phys_offset */
	uint64_t entry;
	const uint8_t *code; /* NULL: NOPs */
	uint64_t code_size;
	const struct spec_sym *syms;
	size_t nr_syms; /* 0: stripped */
	const char *build_id;
	uint64_t pvh_entry; /* 0: no note */
	uint32_t pvh_bytes; /* of that note; 0: 4 */
	const void *notes;  /* more of them, as they lie in the file */
	size_t notes_size;
};

struct elf_image {
	uint8_t data[ELF_SPEC_MAX];
	size_t size, ph_off, code_off, note_off, sym_off, str_off, sh_off;
	bool is64;
};

static inline void spec_put(struct elf_image *e, uint64_t v, size_t n)
{
	assert(e->size + n <= sizeof(e->data));
	for (size_t i = 0; i < n; i++)
		e->data[e->size++] = (uint8_t)(v >> 8 * i);
}

static inline void spec_word(struct elf_image *e, uint64_t v)
{
	spec_put(e, v, e->is64 ? 8 : 4);
}

static inline void spec_bytes(struct elf_image *e, const void *p, size_t n)
{
	assert(e->size + n <= sizeof(e->data));
	memcpy(e->data + e->size, p, n);
	e->size += n;
}

static inline void spec_header(struct elf_image *e, const struct elf_spec *s)
{
	const uint8_t ident[EI_NIDENT] = { 0x7f, 'E', 'L', 'F', e->is64 ? 2 : 1, 1, 1 };

	spec_bytes(e, ident, sizeof(ident));
	spec_put(e, s->type != 0 ? s->type : ET_EXEC, 2);
	spec_put(e, s->machine != 0 ? s->machine : EM_X86_64, 2);
	spec_put(e, 1, 4);
	spec_word(e, s->entry);
	spec_word(e, e->ph_off);
	spec_word(e, e->sh_off);
	spec_put(e, 0, 4);
	spec_put(e, e->is64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr), 2);
	spec_put(e, e->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr), 2);
	spec_put(e, 3, 2);
	spec_put(e, e->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr), 2);
	spec_put(e, s->nr_syms != 0 ? SPEC_NR_SECTIONS : SPEC_SYMTAB, 2);
	spec_put(e, 0, 2);
}

static inline void spec_phdr(struct elf_image *e, uint32_t type, uint32_t flags, uint64_t off,
	uint64_t vaddr, uint64_t paddr, uint64_t file_size, uint64_t mem_size)
{
	spec_put(e, type, 4);
	if (e->is64)
		spec_put(e, flags, 4);
	spec_word(e, off);
	spec_word(e, vaddr);
	spec_word(e, paddr);
	spec_word(e, file_size);
	spec_word(e, mem_size);
	if (!e->is64)
		spec_put(e, flags, 4);
	spec_word(e, 1);
}

static inline void spec_shdr(struct elf_image *e, uint32_t type, uint64_t flags, uint64_t addr,
	uint64_t off, uint64_t size, uint32_t link, uint64_t ent_size)
{
	spec_put(e, 0, 4);
	spec_put(e, type, 4);
	spec_word(e, flags);
	spec_word(e, addr);
	spec_word(e, off);
	spec_word(e, size);
	spec_put(e, link, 4);
	spec_put(e, 0, 4);
	spec_word(e, 1);
	spec_word(e, ent_size);
}

static inline void spec_note(
	struct elf_image *e, const char *name, uint32_t type, const void *desc, size_t len)
{
	spec_put(e, 4, 4);
	spec_put(e, len, 4);
	spec_put(e, type, 4);
	spec_bytes(e, name, 4);
	spec_bytes(e, desc, len);
	while (e->size % 4 != 0)
		spec_put(e, 0, 1);
}

static inline void spec_symbol(struct elf_image *e, uint32_t name, const struct spec_sym *s)
{
	spec_put(e, name, 4);
	if (!e->is64) {
		spec_word(e, s->addr);
		spec_word(e, s->size);
	}
	spec_put(e, ELF64_ST_INFO(s->bind, s->type), 1);
	spec_put(e, 0, 1);
	spec_put(e, s->section, 2);
	if (e->is64) {
		spec_word(e, s->addr);
		spec_word(e, s->size);
	}
}

static inline void spec_symbols(struct elf_image *e, const struct elf_spec *s)
{
	const struct spec_sym null = { 0 };
	uint32_t name = 1;

	e->sym_off = e->size;
	spec_symbol(e, 0, &null);
	for (size_t i = 0; i < s->nr_syms; i++) {
		spec_symbol(e, name, &s->syms[i]);
		name += (uint32_t)strlen(s->syms[i].name) + 1;
	}
	e->str_off = e->size;
	spec_put(e, 0, 1);
	for (size_t i = 0; i < s->nr_syms; i++)
		spec_bytes(e, s->syms[i].name, strlen(s->syms[i].name) + 1);
}

static inline void spec_sections(
	struct elf_image *e, const struct elf_spec *s, uint64_t data_off, uint64_t note_size)
{
	uint64_t exec = s->no_exec_flag ? 0 : SHF_EXECINSTR;

	e->sh_off = e->size;
	spec_shdr(e, SHT_NULL, 0, 0, 0, 0, 0, 0);
	spec_shdr(e, s->debug_only ? SHT_NOBITS : SHT_PROGBITS, SHF_ALLOC | exec, s->text,
		e->code_off, s->code_size, 0, 0);
	spec_shdr(e, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, s->data, data_off, 16, 0, 0);
	spec_shdr(e, SHT_NOTE, SHF_ALLOC, 0, e->note_off, note_size, 0, 0);
	if (s->nr_syms == 0)
		return;
	spec_shdr(e, SHT_SYMTAB, 0, 0, e->sym_off, e->str_off - e->sym_off, SPEC_STRTAB,
		e->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
	spec_shdr(e, SHT_STRTAB, 0, 0, e->str_off, e->sh_off - e->str_off, 0, 0);
}

static inline void elf_spec_write(const struct elf_spec *s, struct elf_image *e)
{
	uint64_t data_off, note_size, kept = s->debug_only ? 0 : s->code_size;

	memset(e, 0, sizeof(*e));
	e->is64 = !s->elf32;
	e->ph_off = 64;
	e->code_off = e->size = 256;
	for (uint64_t i = 0; i < kept; i++)
		spec_put(e, s->code != NULL ? s->code[i] : 0x90, 1);
	data_off = e->size;
	spec_bytes(e, "0123456789abcdef", 16);
	e->note_off = e->size = (e->size + 7) / 8 * 8;
	if (s->pvh_entry != 0)
		spec_note(e, "Xen", 18, &s->pvh_entry, s->pvh_bytes != 0 ? s->pvh_bytes : 4);
	if (s->build_id != NULL)
		spec_note(e, "GNU", NT_GNU_BUILD_ID, s->build_id, strlen(s->build_id));
	if (s->notes_size != 0)
		spec_bytes(e, s->notes, s->notes_size);
	note_size = e->size - e->note_off;
	if (s->nr_syms != 0)
		spec_symbols(e, s);
	spec_sections(e, s, data_off, note_size);

	kept = e->size;
	e->size = 0;
	spec_header(e, s);
	e->size = e->ph_off;
	spec_phdr(e, PT_LOAD, PF_R | PF_X, e->code_off, s->text, s->text - s->phys_offset,
		s->code_size, s->code_size);
	spec_phdr(e, PT_LOAD, PF_R | PF_W, data_off, s->data, s->data - s->phys_offset, 16, 64);
	spec_phdr(e, PT_NOTE, PF_R, e->note_off, 0, 0, note_size, note_size);
	e->size = kept;
}

#endif
