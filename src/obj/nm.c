/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/nm.h"

#include <ctype.h>
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "obj/objfile.h"

struct line {
	uint64_t addr;
	uint32_t name;
	char type;
};

struct lister {
	const struct uni_elf *elf;
	const uint8_t *strings;
	size_t strings_size;
	UNI_VEC(struct line) v;
	struct uni_strbuf names;
};

static char type_of_section(const struct uni_elf_sh *sh)
{
	if (!(sh->flags & SHF_ALLOC))
		return 'n';
	if (sh->flags & SHF_EXECINSTR)
		return 't';
	if (!(sh->flags & SHF_WRITE))
		return 'r';
	return sh->type == SHT_NOBITS ? 'b' : 'd';
}

/* nm's letters; upper case: seen from other files. 0: nothing to show. */
static char type_of(const struct uni_elf *e, const struct uni_elf_sym *s)
{
	unsigned bind = ELF64_ST_BIND(s->info), type = ELF64_ST_TYPE(s->info);
	struct uni_elf_sh sh;
	char c;

	if (type == STT_SECTION || type == STT_FILE)
		return 0;
	if (s->section == SHN_COMMON)
		return 'C';
	if (bind == STB_WEAK) {
		c = type == STT_OBJECT ? 'v' : 'w';
		return s->section == SHN_UNDEF ? c : (char)toupper(c);
	}
	if (s->section == SHN_UNDEF)
		return 'U';
	if (type == STT_GNU_IFUNC)
		return 'i';
	if (bind == STB_GNU_UNIQUE)
		return 'u';
	if (s->section == SHN_ABS) {
		c = 'a';
	} else {
		if (s->section >= e->nr_sh)
			return 0;
		sh = uni_elf_sh(e, s->section);
		c = type_of_section(&sh);
	}
	return bind == STB_LOCAL ? c : (char)toupper(c);
}

static bool add_nm_line(struct lister *l, const struct uni_elf_sym *s)
{
	struct line line = { .addr = s->addr, .type = type_of(l->elf, s) };
	char clean[UNI_TEXT_MAX];
	size_t len;

	if (line.type == 0 || s->name >= l->strings_size)
		return true;
	len = uni_text_clean(clean, sizeof(clean), l->strings + s->name, l->strings_size - s->name);
	if (len == 0)
		return true;
	if (l->names.len > UINT32_MAX - UNI_TEXT_MAX)
		return false;
	line.name = (uint32_t)l->names.len;
	uni_strbuf_add(&l->names, clean, len + 1);
	return !uni_strbuf_failed(&l->names) && uni_vec_push(&l->v, line);
}

static bool is_undefined(const struct line *l)
{
	return l->type == 'U' || l->type == 'w' || l->type == 'v';
}

static int cmp_lines(const void *pa, const void *pb, void *names)
{
	const struct line *a = pa, *b = pb;
	const char *s = names;
	int r = (int)is_undefined(b) - (int)is_undefined(a);

	if (r == 0 && !is_undefined(a))
		r = (a->addr > b->addr) - (a->addr < b->addr);
	return r != 0 ? r : strcmp(s + a->name, s + b->name);
}

static void write_lines(struct lister *l, struct uni_sink *out)
{
	if (l->v.nr != 0)
		qsort_r(l->v.v, l->v.nr, sizeof(*l->v.v), cmp_lines, l->names.s);
	uni_vec_foreach (p, &l->v) {
		if (is_undefined(p))
			uni_sink_printf(out, "%16s %c ", "", p->type);
		else
			uni_sink_printf(out, "%016" PRIx64 " %c ", p->addr, p->type);
		uni_sink_puts(out, l->names.s + p->name);
		uni_sink_putc(out, '\n');
	}
}

static int list_symbols(
	const char *name, const struct uni_elf *e, struct lister *l, struct uni_err *err)
{
	uint32_t index = uni_elf_find_section(e, SHT_SYMTAB);
	struct uni_elf_sh sh, str;
	struct uni_elf_sym sym;
	Elf_Data *table;
	int rc;

	if (index == 0)
		return uni_err_set(err, UNI_ENOENT,
			"%s has no symbol table: give the file before it was stripped", name);
	rc = uni_elf_symbols(name, e, index, &table, err);
	if (rc != 0)
		return rc;
	sh = uni_elf_sh(e, index);
	if (sh.link == 0 || sh.link >= e->nr_sh)
		return uni_err_set(err, UNI_EFORMAT, "%s: its symbols have no names", name);
	str = uni_elf_sh(e, sh.link);
	l->elf = e;
	l->strings = uni_elf_section_bytes(e, &str);
	l->strings_size = (size_t)str.size;
	if (l->strings == NULL)
		return uni_err_set(err, UNI_EFORMAT,
			"%s: its symbol names lie outside the file: truncated?", name);
	for (size_t i = 1; uni_elf_symbol(table, i, &sym); i++) {
		if (!add_nm_line(l, &sym))
			return uni_err_set(
				err, UNI_ENOMEM, "out of memory for the symbols of %s", name);
	}
	return 0;
}

static int write_file(
	const char *name, struct uni_objfile *f, struct uni_sink *out, struct uni_err *err)
{
	struct lister l = { 0 };
	int rc;

	uni_strbuf_init(&l.names);
	rc = list_symbols(name, &f->elf, &l, err);
	if (rc == 0)
		write_lines(&l, out);
	uni_vec_free(&l.v);
	uni_strbuf_deinit(&l.names);
	uni_objfile_deinit(f);
	return rc;
}

int uni_nm_write(const char *path, struct uni_sink *out, struct uni_err *err)
{
	struct uni_objfile f = { 0 };
	int rc = uni_objfile_load(path, &f, err);

	return rc == 0 ? write_file(path, &f, out, err) : rc;
}

int uni_nm_from_memory(
	const char *name, const void *data, size_t size, struct uni_sink *out, struct uni_err *err)
{
	struct uni_objfile f = { 0 };
	int rc = uni_objfile_from_memory(name, data, size, &f, err);

	return rc == 0 ? write_file(name, &f, out, err) : rc;
}
