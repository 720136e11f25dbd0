/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/sites_priv.h"

#include <elf.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"

#define TABLES 3

/* Tables of the addresses of entry sites. */
struct tables {
	struct {
		uint64_t addr, size;
	} table[TABLES];
	unsigned nr;
};

static bool in_table(const struct tables *t, uint64_t addr)
{
	for (unsigned i = 0; i < t->nr; i++) {
		if (uni_range_contains(t->table[i].addr, t->table[i].size, addr, 8))
			return true;
	}
	return false;
}

static void add_table(struct tables *t, uint64_t addr, uint64_t size)
{
	t->table[t->nr].addr = addr;
	t->table[t->nr++].size = size;
}

/*
 * Finds the sections, or the place between the symbols that Linux's linker script defines for them.
 */
static void find_tables(const struct uni_image *img, const struct uni_elf *e, struct tables *ret)
{
	static const char *const names[] = { "__mcount_loc", "__patchable_function_entries" };
	uint64_t start, stop, size;

	for (size_t i = 0; i < uni_array_len(names); i++) {
		uint32_t section = uni_elf_find_named(e, names[i]);
		struct uni_elf_sh sh = { 0 };

		if (section != 0)
			sh = uni_elf_sh(e, section);
		if (sh.flags & SHF_ALLOC)
			add_table(ret, sh.addr, sh.size);
	}
	if (ret->nr == 0 && uni_image_find(img, "__start_mcount_loc", &start, &size) == 0 &&
		uni_image_find(img, "__stop_mcount_loc", &stop, &size) == 0 && stop > start)
		add_table(ret, start, stop - start);
}

/* In position-independent images the words are 0; the addresses are in the relocations. */
static bool read_table(
	const struct uni_image *img, uint64_t addr, uint64_t size, struct uni_site_places *ret)
{
	for (uint64_t at = 0; at + 8 <= size; at += 8) {
		uint8_t bytes[8];
		struct uni_cursor c = uni_cursor_make(bytes, sizeof(bytes));
		uint64_t word;

		if (!uni_image_bytes(img, addr + at, bytes, sizeof(bytes)))
			return true; /* the section claims more than the file has */
		word = uni_cursor_u64(&c);
		if (word != 0 && !uni_vec_push(&ret->entries, word))
			return false;
	}
	return true;
}

static bool take_relocation(const GElf_Rela *r, Elf_Data *symbols, const struct tables *tables,
	struct uni_site_places *ret)
{
	struct uni_elf_sym sym = { 0 };
	uint64_t type = GELF_R_TYPE(r->r_info);
	uint64_t addend = (uint64_t)r->r_addend;

	switch (type) {
	case R_X86_64_RELATIVE:
	case R_X86_64_64:
		if (!in_table(tables, r->r_offset))
			return true;
		if (type == R_X86_64_64 && !uni_elf_symbol(symbols, GELF_R_SYM(r->r_info), &sym))
			return true;
		return uni_vec_push(&ret->entries, sym.addr + addend);
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
		/* The distance counts from the end of its four bytes. */
		if (ret->thunk == 0 || !uni_elf_symbol(symbols, GELF_R_SYM(r->r_info), &sym) ||
			sym.addr + addend + 4 != ret->thunk)
			return true;
		return uni_vec_push(&ret->exits, r->r_offset - 1);
	default:
		return true;
	}
}

static bool take_relocations(const struct uni_elf *e, uint32_t section, const struct tables *tables,
	struct uni_site_places *ret)
{
	struct uni_elf_sh sh = uni_elf_sh(e, section);
	Elf_Data none = { 0 }, *symbols = &none, *data;
	GElf_Rela r;

	if (sh.type != SHT_RELA || sh.ent_size != gelf_fsize(e->elf, ELF_T_RELA, 1, EV_CURRENT) ||
		uni_elf_section_bytes(e, &sh) == NULL)
		return true;
	if (sh.link != 0 && sh.link < e->nr_sh)
		(void)uni_elf_symbols("", e, sh.link, &symbols, NULL);
	data = elf_getdata(elf_getscn(e->elf, section), NULL);
	if (data == NULL || data->d_type != ELF_T_RELA)
		return true;
	for (int i = 0; i < INT_MAX && gelf_getrela(data, i, &r) != NULL; i++) {
		if (!take_relocation(&r, symbols, tables, ret))
			return false;
	}
	return true;
}

bool uni_site_places_read(
	const struct uni_image *img, const struct uni_elf *e, struct uni_site_places *ret)
{
	struct tables tables = { 0 };

	find_tables(img, e, &tables);
	for (unsigned i = 0; i < tables.nr; i++) {
		if (!read_table(img, tables.table[i].addr, tables.table[i].size, ret))
			return false;
	}
	for (uint32_t i = 1; i < e->nr_sh; i++) {
		if (!take_relocations(e, i, &tables, ret))
			return false;
	}
	return true;
}

void uni_site_places_deinit(struct uni_site_places *p)
{
	uni_vec_free(&p->entries);
	uni_vec_free(&p->exits);
}
