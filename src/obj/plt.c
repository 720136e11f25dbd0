/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stub jumps through a word of memory. The relocation of this word names the function (System V
 * psABI for AMD64, 5.2).
 */
#include "obj/plt.h"

#include <elf.h>
#include <gelf.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "base/text.h"
#include "base/vec.h"

#define STUB_BYTES     16u /* those of .plt.got may have half of it */
#define NAME_MAX_BYTES ((uint64_t)UNI_TEXT_MAX - 16)

/* A word of memory, and the function whose address it gets. */
struct slot {
	uint64_t addr, value;
	const char *name; /* "": the function at `value`, which is chosen when the program starts */
};

struct slots {
	UNI_VEC(struct slot) v;
};

static int cmp_slots(const void *pa, const void *pb)
{
	const struct slot *a = pa, *b = pb;

	return (a->addr > b->addr) - (a->addr < b->addr);
}

/* A text of the table that ends in it, and is not too long; NULL: none. */
static const char *text_at(const struct uni_elf *e, const struct uni_elf_sh *strings, uint32_t off)
{
	const char *all = (const char *)uni_elf_section_bytes(e, strings);

	if (all == NULL || off >= strings->size || all[off] == '\0' ||
		memchr(all + off, '\0', (size_t)uni_min(strings->size - off, NAME_MAX_BYTES)) ==
			NULL)
		return NULL;
	return all + off;
}

/* False: out of memory. */
static bool take_relocation(const struct uni_elf *e, const struct uni_elf_sh *strings,
	Elf_Data *symbols, const GElf_Rela *r, struct slots *ret)
{
	struct slot s = { .addr = r->r_offset, .value = (uint64_t)r->r_addend, .name = "" };
	uint64_t type = GELF_R_TYPE(r->r_info);
	struct uni_elf_sym sym;

	if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_IRELATIVE)
		return true;
	if (type != R_X86_64_IRELATIVE)
		s.name = uni_elf_symbol(symbols, GELF_R_SYM(r->r_info), &sym)
				 ? text_at(e, strings, sym.name)
				 : NULL;
	return s.name == NULL || uni_vec_push(&ret->v, s);
}

static bool take_relocations(const struct uni_elf *e, uint32_t section, struct slots *ret)
{
	struct uni_elf_sh sh = uni_elf_sh(e, section), table, strings;
	Elf_Data *symbols, *data;
	GElf_Rela r;

	if (sh.type != SHT_RELA || sh.ent_size != sizeof(Elf64_Rela) || sh.link == 0 ||
		sh.link >= e->nr_sh || uni_elf_section_bytes(e, &sh) == NULL)
		return true;
	table = uni_elf_sh(e, sh.link);
	if (table.type != SHT_DYNSYM || table.link == 0 || table.link >= e->nr_sh ||
		uni_elf_symbols("", e, sh.link, &symbols, NULL) != 0)
		return true;
	strings = uni_elf_sh(e, table.link);
	data = elf_getdata(elf_getscn(e->elf, section), NULL);
	if (data == NULL || data->d_type != ELF_T_RELA)
		return true;
	for (int i = 0; i < INT_MAX && gelf_getrela(data, i, &r) != NULL; i++) {
		if (!take_relocation(e, &strings, symbols, &r, ret))
			return false;
	}
	return true;
}

/* The word that a stub jumps through: [endbr64] [bnd] jmp *OFFSET(%rip). False: it is none. */
static bool read_stub(const uint8_t *code, uint64_t at, size_t size, uint64_t *ret)
{
	size_t i = 0;

	if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0)
		i = 4;
	if (code[i] == 0xf2)
		i++;
	if (i + 6 > size || code[i] != 0xff || code[i + 1] != 0x25)
		return false;
	*ret = at + i + 6 + (uint64_t)(int64_t)(int32_t)uni_le32(code + i + 2);
	return true;
}

struct each {
	const struct uni_elf *e;
	const struct slots *slots;
	int (*fn)(void *ctx, uint64_t addr, uint64_t size, const char *name);
	void *ctx;
};

static int tell_stub(const struct each *k, uint64_t at, uint64_t size, uint64_t word)
{
	const struct slot key = { .addr = word }, *s;
	char name[UNI_TEXT_MAX];

	s = k->slots->v.nr != 0
		    ? bsearch(&key, k->slots->v.v, k->slots->v.nr, sizeof(key), cmp_slots)
		    : NULL;
	if (s == NULL)
		return 0;
	if (s->name[0] != '\0')
		(void)snprintf(name, sizeof(name), "%s@plt", s->name);
	else
		(void)snprintf(name, sizeof(name), "*ABS*+0x%" PRIx64 "@plt", s->value);
	return k->fn(k->ctx, at, size, name);
}

static int tell_section(const struct each *k, const char *section)
{
	uint32_t i = uni_elf_find_named(k->e, section);
	struct uni_elf_sh sh = uni_elf_sh(k->e, i);
	const uint8_t *code = i != 0 ? uni_elf_section_bytes(k->e, &sh) : NULL;
	uint64_t step = sh.ent_size == STUB_BYTES / 2 ? STUB_BYTES / 2 : STUB_BYTES, word;
	int rc = 0;

	if (code == NULL || (sh.flags & SHF_EXECINSTR) == 0 || !uni_range_ok(sh.addr, sh.size))
		return 0;
	for (uint64_t at = 0; sh.size - at >= step && rc == 0; at += step) {
		if (read_stub(code + at, sh.addr + at, (size_t)step, &word))
			rc = tell_stub(k, sh.addr + at, step, word);
	}
	return rc;
}

int uni_plt_each(const struct uni_elf *e,
	int (*fn)(void *ctx, uint64_t addr, uint64_t size, const char *name), void *ctx)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };
	struct slots slots = { 0 };
	const struct each k = { .e = e, .slots = &slots, .fn = fn, .ctx = ctx };
	int rc = 0;

	if (!e->is64 || e->machine != EM_X86_64)
		return 0;
	for (uint32_t i = 1; i < e->nr_sh && rc == 0; i++)
		rc = take_relocations(e, i, &slots) ? 0 : -UNI_ENOMEM;
	if (slots.v.nr != 0)
		qsort(slots.v.v, slots.v.nr, sizeof(slots.v.v[0]), cmp_slots);
	for (size_t i = 0; i < uni_array_len(sections) && rc == 0; i++)
		rc = tell_section(&k, sections[i]);
	uni_vec_free(&slots.v);
	return rc;
}
