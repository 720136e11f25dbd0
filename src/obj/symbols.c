/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "obj/plt.h"

struct section {
	uint64_t addr, size;
	bool alloc, exec;
};

/* A code symbol while it is read: with the data that decides between aliases, and its limit. */
struct candidate {
	struct uni_symbol sym;
	uint64_t section_last;
	uint32_t name_len;
	uint8_t rank;
};

struct reader {
	const char *file;
	const struct uni_elf *elf;
	struct section *sections;
	uint32_t nr_sections;
	Elf_Data *table;
	const uint8_t *strings;
	size_t strings_size;
	size_t names_max;
	UNI_VEC(struct candidate) code;
	UNI_VEC(struct uni_named) named;
	struct uni_strbuf names;
};

void uni_symbols_init(struct uni_symbols *s)
{
	*s = (struct uni_symbols){ 0 };
	uni_strbuf_init(&s->names);
}

void uni_symbols_deinit(struct uni_symbols *s)
{
	free(s->v);
	free(s->named);
	uni_strbuf_deinit(&s->names);
	uni_ranges_deinit(&s->ranges);
}

static void reader_deinit(struct reader *r)
{
	free(r->sections);
	uni_vec_free(&r->code);
	uni_vec_free(&r->named);
	uni_strbuf_deinit(&r->names);
}

static int read_sections(struct reader *r, struct uni_err *err)
{
	/* st_shndx has 16 bits; only object files with thousands of sections need more. */
	r->nr_sections = uni_min(r->elf->nr_sh, (uint32_t)SHN_LORESERVE);
	r->sections = calloc((size_t)r->nr_sections + 1, sizeof(*r->sections));
	if (r->sections == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory loading %s", r->file);
	for (uint32_t i = 1; i < r->nr_sections; i++) {
		struct uni_elf_sh sh = uni_elf_sh(r->elf, i);

		if (!(sh.flags & SHF_ALLOC) || !uni_range_ok(sh.addr, sh.size))
			continue;
		r->sections[i] = (struct section){
			.addr = sh.addr,
			.size = sh.size,
			.alloc = true,
			.exec = (sh.flags & SHF_EXECINSTR) != 0,
		};
	}
	return 0;
}

static int open_table(struct reader *r, uint32_t index, struct uni_err *err)
{
	const struct uni_elf *e = r->elf;
	struct uni_elf_sh sh = uni_elf_sh(e, index), str;
	int rc;

	rc = uni_elf_symbols(r->file, e, index, &r->table, err);
	if (rc != 0)
		return rc;
	if (sh.link == 0 || sh.link >= e->nr_sh)
		return uni_err_set(err, UNI_EFORMAT, "%s: its symbols have no names", r->file);
	str = uni_elf_sh(e, sh.link);
	r->strings = uni_elf_section_bytes(e, &str);
	if (r->strings == NULL)
		return uni_err_set(err, UNI_EFORMAT,
			"%s: its symbol names lie outside the file: truncated?", r->file);
	r->strings_size = (size_t)str.size;
	/*
	 * Names may share their tails, so copies can be longer than the table, and cleaning can
	 * triple them. Only a file made to exhaust memory exceeds this limit.
	 */
	r->names_max = uni_min((size_t)UINT32_MAX, 65536 + 16 * r->strings_size);
	return 0;
}

/* Adds the cleaned name to the names; false if it is empty or outside the table. */
static bool add_name(struct reader *r, uint32_t off, uint32_t *name_ret, uint32_t *len_ret)
{
	char name[UNI_TEXT_MAX];
	size_t len;

	if (off >= r->strings_size)
		return false;
	len = uni_text_clean(name, sizeof(name), r->strings + off, r->strings_size - off);
	if (len == 0)
		return false;
	*name_ret = (uint32_t)r->names.len;
	*len_ret = (uint32_t)len;
	uni_strbuf_add(&r->names, name, len + 1);
	return true;
}

static uint8_t bind_rank(unsigned bind)
{
	if (bind == STB_GLOBAL || bind == STB_GNU_UNIQUE)
		return 0;
	return bind == STB_WEAK ? 1 : 2;
}

/* .L labels of assemblers, and the $x/$d marks between code and data. */
static bool is_marker(const char *name, unsigned type, unsigned bind)
{
	if (type != STT_NOTYPE || bind != STB_LOCAL)
		return false;
	return name[0] == '$' || strncmp(name, ".L", 2) == 0;
}

static bool is_code(const struct reader *r, const struct uni_elf_sym *sym)
{
	unsigned type = ELF64_ST_TYPE(sym->info);
	const struct section *sec;

	if (sym->section == SHN_UNDEF || sym->section >= r->nr_sections)
		return false; /* also SHN_ABS: numbers, not addresses */
	sec = &r->sections[sym->section];
	if (!sec->alloc || !uni_range_has(sec->addr, sec->size, sym->addr))
		return false;
	/* Hand-written boot sections often lack the flag, but then their functions have a type. */
	return type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && sec->exec);
}

static bool has_address(const struct uni_elf_sym *sym)
{
	unsigned type = ELF64_ST_TYPE(sym->info);

	if (sym->section == SHN_UNDEF || sym->section == SHN_COMMON)
		return false;
	return type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC ||
	       type == STT_GNU_IFUNC;
}

static bool add_symbol(struct reader *r, const struct uni_elf_sym *sym)
{
	unsigned type = ELF64_ST_TYPE(sym->info), bind = ELF64_ST_BIND(sym->info);
	uint32_t name, len;
	struct uni_named named = { .addr = sym->addr, .size = sym->size, .rank = bind_rank(bind) };
	struct candidate c = { .rank = bind_rank(bind) };
	const struct section *sec;

	if (!has_address(sym) || !add_name(r, sym->name, &name, &len))
		return true;
	named.name = name;
	if (!uni_vec_push(&r->named, named))
		return false;
	if (!is_code(r, sym) || is_marker(r->names.s + name, type, bind))
		return true;
	sec = &r->sections[sym->section];
	c.section_last = sec->addr + (sec->size - 1);
	c.name_len = len;
	c.sym = (struct uni_symbol){
		.addr = sym->addr,
		.size = sym->size,
		.name = name,
		.type = (uint8_t)type,
		.bind = (uint8_t)bind,
	};
	return uni_vec_push(&r->code, c);
}

static int read_symbols(struct reader *r, struct uni_err *err)
{
	struct uni_elf_sym sym;

	for (size_t i = 1; uni_elf_symbol(r->table, i, &sym); i++) {
		if (!add_symbol(r, &sym) || uni_strbuf_failed(&r->names))
			return uni_err_set(err, UNI_ENOMEM, "out of memory loading %s", r->file);
		if (r->names.len > r->names_max)
			return uni_err_set(err, UNI_EFORMAT,
				"%s: its symbol names overlap without measure", r->file);
	}
	return 0;
}

/* Nobody's symbol: it counts only where there is no other. */
static int add_stub(void *ctx, uint64_t addr, uint64_t size, const char *text)
{
	struct reader *r = ctx;
	struct candidate c = { .section_last = addr + (size - 1), .rank = bind_rank(STB_LOCAL) };
	char name[UNI_TEXT_MAX];
	size_t len = uni_text_clean(name, sizeof(name), text, strlen(text));

	c.name_len = (uint32_t)len;
	c.sym = (struct uni_symbol){
		.addr = addr,
		.size = size,
		.name = (uint32_t)r->names.len,
		.type = STT_FUNC,
		.bind = STB_LOCAL,
	};
	uni_strbuf_add(&r->names, name, len + 1);
	if (uni_strbuf_failed(&r->names) || !uni_vec_push(&r->code, c))
		return -UNI_ENOMEM;
	return r->names.len > r->names_max ? -UNI_EFORMAT : 0;
}

static int add_stubs(struct reader *r, const struct uni_elf *code, struct uni_err *err)
{
	int rc = uni_plt_each(code, add_stub, r);

	if (rc == -UNI_ENOMEM)
		return uni_err_set(err, UNI_ENOMEM, "out of memory loading %s", r->file);
	/* With too many of them, some have none. */
	return 0;
}

static int cmp_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Is it the begin or the end of an OCaml module: camlList.code_begin, camlList__code_end? */
static bool is_bound(const char *name, size_t len)
{
	return strncmp(name, "caml", 4) == 0 &&
	       ((len > 10 && strcmp(name + len - 10, "code_begin") == 0) ||
		       (len > 8 && strcmp(name + len - 8, "code_end") == 0));
}

/* Sorts the best alias first: image.h states the order. */
static int cmp_candidates(const void *pa, const void *pb, void *names)
{
	const struct candidate *a = pa, *b = pb;
	const char *s = names;
	int r = cmp_u64(a->sym.addr, b->sym.addr);

	if (r == 0)
		r = is_bound(s + a->sym.name, a->name_len) - is_bound(s + b->sym.name, b->name_len);
	if (r == 0)
		r = (a->sym.type == STT_NOTYPE) - (b->sym.type == STT_NOTYPE);
	if (r == 0)
		r = a->rank - b->rank;
	if (r == 0)
		r = (a->sym.size == 0) - (b->sym.size == 0);
	if (r == 0)
		r = cmp_u64(a->name_len, b->name_len);
	if (r == 0)
		r = strcmp(s + a->sym.name, s + b->sym.name);
	return r != 0 ? r : cmp_u64(a->sym.size, b->sym.size);
}

/*
 * Keeps the first symbol of each address. If it has no size, it takes the largest of its aliases.
 */
static void drop_aliases(struct reader *r)
{
	size_t nr = 0;

	for (size_t i = 0; i < r->code.nr; i++) {
		struct candidate *c = &r->code.v[i];
		struct candidate *kept = nr != 0 ? &r->code.v[nr - 1] : NULL;

		if (kept == NULL || kept->sym.addr != c->sym.addr) {
			/*
			 * Until settle_sizes(), guessed_size means: take the size from the aliases.
			 */
			c->sym.guessed_size = c->sym.size == 0;
			r->code.v[nr++] = *c;
		} else if (kept->sym.guessed_size && c->sym.size > kept->sym.size) {
			kept->sym.size = c->sym.size;
		}
	}
	r->code.nr = nr;
}

/*
 * No symbol reaches past its section. A symbol without a size ends before the next symbol. Inside a
 * symbol that has a size (a label in an assembler function), it ends with that one.
 */
static void settle_sizes(struct reader *r)
{
	uint64_t sized_last = 0;
	bool any_sized = false;

	for (size_t i = 0; i < r->code.nr; i++) {
		struct candidate *c = &r->code.v[i];
		struct uni_symbol *s = &c->sym;
		uint64_t last = c->section_last;

		s->guessed_size = s->size == 0;
		if (!s->guessed_size) {
			s->size = uni_min(s->size - 1, last - s->addr) + 1;
			sized_last = uni_max(sized_last, s->addr + (s->size - 1));
			any_sized = true;
			continue;
		}
		if (i + 1 < r->code.nr)
			last = uni_min(last, r->code.v[i + 1].sym.addr - 1);
		if (any_sized && sized_last >= s->addr)
			last = uni_min(last, sized_last);
		s->size = last - s->addr + 1;
	}
}

static int hand_over(struct reader *r, struct uni_symbols *s, struct uni_err *err)
{
	_cleanup_free_ struct uni_symbol *v = calloc(r->code.nr + 1, sizeof(*v));

	if (v == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory loading %s", r->file);
	for (size_t i = 0; i < r->code.nr; i++)
		v[i] = r->code.v[i].sym;
	if (!uni_ranges_build(v, r->code.nr, &s->ranges))
		return uni_err_set(err, UNI_ENOMEM, "out of memory loading %s", r->file);
	s->v = uni_take(v);
	s->nr = r->code.nr;
	s->named = uni_take(r->named.v);
	s->nr_named = r->named.nr;
	s->names = r->names;
	uni_strbuf_init(&r->names);
	return 0;
}

int uni_symbols_read(const char *file, const struct uni_elf *e, const struct uni_elf *code,
	struct uni_symbols *s, struct uni_err *err)
{
	_cleanup_(reader_deinit) struct reader r = { .file = file, .elf = e };
	uint32_t table = uni_elf_find_section(e, SHT_SYMTAB);
	int rc;

	uni_strbuf_init(&r.names);
	if (table == 0)
		table = uni_elf_find_section(e, SHT_DYNSYM);
	if (table == 0)
		return 0;
	rc = read_sections(&r, err);
	if (rc == 0)
		rc = open_table(&r, table, err);
	if (rc == 0)
		rc = read_symbols(&r, err);
	if (rc == 0)
		rc = add_stubs(&r, code, err);
	if (rc != 0)
		return rc;
	if (r.code.nr != 0)
		qsort_r(r.code.v, r.code.nr, sizeof(*r.code.v), cmp_candidates, r.names.s);
	drop_aliases(&r);
	settle_sizes(&r);
	return hand_over(&r, s, err);
}
