/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/symtext.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/vec.h"
#include "obj/usym_priv.h"

#define PAGE	      4096u
#define OBJDUMP_FLAGS 7u /* "g     F" */
#define SYMBOLS_MAX   ((size_t)1 << 24)

enum rank { GLOBAL, WEAK, LOCAL };

struct entry {
	uint64_t addr, size; /* 0: not stated */
	uint32_t name, name_len;
	uint8_t rank;
	bool code;
};

struct table {
	UNI_VEC(struct entry) v;
	struct uni_strbuf names;
	size_t nr_code;
	bool all_zero; /* all addresses are 0, as in /proc/kallsyms without the right to see them */
	bool last_wins;
};

/* The part of a line that is still to be read. */
struct text {
	const char *s;
	size_t len;
};

static void skip_blanks(struct text *t)
{
	while (t->len != 0 && (*t->s == ' ' || *t->s == '\t')) {
		t->s++;
		t->len--;
	}
}

static struct text take_word(struct text *t)
{
	struct text word;

	skip_blanks(t);
	word = (struct text){ t->s, 0 };
	while (t->len != 0 && *t->s != ' ' && *t->s != '\t') {
		t->s++;
		t->len--;
		word.len++;
	}
	return word;
}

/* The word must be 3 to 16 hex digits. */
static bool parse_hex(struct text word, uint64_t *ret)
{
	uint64_t v = 0;

	if (word.len > 2 && word.s[0] == '0' && (word.s[1] == 'x' || word.s[1] == 'X'))
		word = (struct text){ word.s + 2, word.len - 2 };
	if (word.len < 3 || word.len > 16)
		return false;
	for (size_t i = 0; i < word.len; i++) {
		int c = tolower((unsigned char)word.s[i]);

		if (!isxdigit(c))
			return false;
		v = v << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	*ret = v;
	return true;
}

/* The rest of the line is the name; a kernel's module follows after a tab. */
static struct text take_name(struct text *t)
{
	const char *tab;

	skip_blanks(t);
	tab = memchr(t->s, '\t', t->len);
	if (tab != NULL)
		t->len = (size_t)(tab - t->s);
	while (t->len != 0 && t->s[t->len - 1] == ' ')
		t->len--;
	return *t;
}

/* "g F .text\t0000000000000026 .hidden main". The name is empty if it has no address. */
static bool parse_objdump(struct text t, struct entry *e, struct text *name)
{
	const char *tab = memchr(t.s, '\t', t.len), *flags = t.s + 1;
	struct text section, rest, word;

	if (tab == NULL || (size_t)(tab - t.s) < OBJDUMP_FLAGS + 2 || t.s[0] != ' ' ||
		flags[OBJDUMP_FLAGS] != ' ' || strchr(" lgu!", flags[0]) == NULL)
		return false;
	section = (struct text){ flags + OBJDUMP_FLAGS + 1,
		(size_t)(tab - flags) - OBJDUMP_FLAGS - 1 };
	rest = (struct text){ tab + 1, t.len - (size_t)(tab + 1 - t.s) };
	if (!parse_hex(take_word(&rest), &e->size))
		return false;
	*name = rest;
	word = take_word(name);
	/* Visibility and other st_other bits are in between. */
	if (word.len < 2 || (word.s[0] != '.' && memcmp(word.s, "0x", 2) != 0))
		*name = rest;
	*name = take_name(name);
	e->rank = flags[1] == 'w' ? WEAK : flags[0] == 'l' ? LOCAL : GLOBAL;
	e->code = flags[6] == 'F' || (flags[6] == ' ' && flags[5] == ' ' && section.len >= 5 &&
					     strncmp(section.s, ".text", 5) == 0);
	if (section.len == 0 || section.s[0] == '*' || flags[6] == 'f' || flags[5] == 'd')
		name->len = 0;
	return true;
}

/* The type letter of nm, or the first flag of objdump: l, g, u, !. */
static bool parse_type(char type, struct entry *e)
{
	if (strchr("tTwWilg!dDbBrRsSGuvVnNpC", type) == NULL)
		return false;
	e->code = strchr("tTwWilg!", type) != NULL;
	if (strchr("wWvV", type) != NULL)
		e->rank = WEAK;
	else
		e->rank =
			type == 'g' || type == '!' || isupper((unsigned char)type) ? GLOBAL : LOCAL;
	return true;
}

static bool ends_with(struct text t, const char *end)
{
	size_t n = strlen(end);

	return t.len > n && memcmp(t.s + t.len - n, end, n) == 0;
}

/* In three columns, names of source files look like symbols at 0. */
static bool is_source_file(uint64_t addr, struct text name)
{
	static const char *const ends[] = { ".c", ".S", ".s", ".cc", ".cpp", ".cxx", ".rs", ".o",
		".asm", ".ml" };

	for (size_t i = 0; addr == 0 && i < uni_array_len(ends); i++) {
		if (ends_with(name, ends[i]))
			return true;
	}
	return false;
}

/* "T name", "0000000000000026 T name": the text after the address. */
static bool parse_nm(struct text t, struct entry *e, struct text *name)
{
	struct text word = take_word(&t);

	if (word.len > 1 && parse_hex(word, &e->size))
		word = take_word(&t);
	if (word.len != 1 || !parse_type(word.s[0], e))
		return false;
	*name = take_name(&t);
	return !is_source_file(e->addr, *name);
}

/* Section names, labels of assemblers, and the marks between code and data. */
static bool is_marker(struct text name)
{
	return name.len == 0 || name.s[0] == '.' || name.s[0] == '$';
}

static bool add_line(struct table *t, struct text line)
{
	struct entry e = { 0 };
	struct text name;
	char clean[UNI_TEXT_MAX];

	if (line.len != 0 && line.s[line.len - 1] == '\r')
		line.len--;
	if (!parse_hex(take_word(&line), &e.addr))
		return true;
	if (!parse_objdump(line, &e, &name) && !parse_nm(line, &e, &name))
		return true;
	if (is_marker(name))
		return true;
	e.name = (uint32_t)t->names.len;
	e.name_len = (uint32_t)uni_text_clean(clean, sizeof(clean), name.s, name.len);
	if (e.name_len == 0)
		return true;
	if (!uni_range_ok(e.addr, e.size))
		e.size = 0;
	t->nr_code += e.code;
	t->all_zero = t->all_zero && e.addr == 0;
	uni_strbuf_add(&t->names, clean, e.name_len + 1);
	return t->v.nr < SYMBOLS_MAX && t->names.len < UINT32_MAX - UNI_TEXT_MAX &&
	       uni_vec_push(&t->v, e);
}

static bool read_lines(struct table *t, const char *data, size_t size)
{
	while (size != 0) {
		const char *nl = memchr(data, '\n', size);
		size_t len = nl != NULL ? (size_t)(nl - data) : size;

		if (!add_line(t, (struct text){ data, len }))
			return false;
		len += nl != NULL;
		data += len;
		size -= len;
	}
	return !uni_strbuf_failed(&t->names);
}

/* Names are in the order of their lines. */
static int cmp_aliases(const struct table *t, const struct entry *a, const struct entry *b)
{
	int r;

	if (t->last_wins)
		return (a->name < b->name) - (a->name > b->name);
	r = (a->name_len > b->name_len) - (a->name_len < b->name_len);
	return r != 0 ? r : strcmp(t->names.s + a->name, t->names.s + b->name);
}

static int cmp_entries(const void *pa, const void *pb, void *ctx)
{
	const struct entry *a = pa, *b = pb;
	int r = (a->addr > b->addr) - (a->addr < b->addr);

	if (r == 0)
		r = b->code - a->code;
	if (r == 0)
		r = a->rank - b->rank;
	return r != 0 ? r : cmp_aliases(ctx, a, b);
}

/* The distance to the next address in the table; entry i is the first at its address. */
static uint64_t guess_size(const struct table *t, size_t i)
{
	uint64_t addr = t->v.v[i].addr, reach = UNI_SYMTEXT_REACH;
	size_t next = i + 1;

	while (next < t->v.nr && t->v.v[next].addr == addr)
		next++;
	if (next < t->v.nr)
		return uni_min(reach, t->v.v[next].addr - addr);
	reach = 2 * PAGE - addr % PAGE;
	return uni_min(reach, UINT64_MAX - addr) + (reach > UINT64_MAX - addr);
}

static bool add_symbol(struct uni_symtab *s, const struct table *t, size_t i)
{
	const struct entry *e = &t->v.v[i];

	if (!e->code || (i != 0 && t->v.v[i - 1].addr == e->addr))
		return true;
	if (s->names.len > UINT32_MAX - UNI_TEXT_MAX)
		return false;
	s->v[s->nr++] = (struct uni_symbol){ .addr = e->addr,
		.size = e->size != 0 ? e->size : guess_size(t, i),
		.name = (uint32_t)s->names.len,
		.guessed_size = e->size == 0 };
	uni_strbuf_add(&s->names, t->names.s + e->name, e->name_len + 1);
	return true;
}

static void add_id(struct uni_symtab *s, const struct table *t)
{
	uint64_t h = FNV_BASIS;

	for (size_t i = 0; i < t->v.nr; i++) {
		const struct entry *e = &t->v.v[i];

		for (size_t k = 0; k < e->name_len; k++)
			h = (h ^ (uint8_t)t->names.s[e->name + k]) * FNV_PRIME;
		for (unsigned k = 0; k < 64; k += 8)
			h = (h ^ (uint8_t)(e->addr >> k)) * FNV_PRIME;
	}
	uni_strbuf_addf(&s->names, "x%016" PRIx64, h);
	uni_strbuf_addc(&s->names, '\0');
}

static bool fill_symtab(struct uni_symtab *s, const struct table *t, const char *path)
{
	char clean[UNI_TEXT_MAX];
	size_t len = uni_text_clean(clean, sizeof(clean), path, strlen(path));

	add_id(s, t);
	s->path = (uint32_t)s->names.len;
	uni_strbuf_add(&s->names, clean, len + 1);
	for (size_t i = 0; i < t->v.nr; i++) {
		if (!add_symbol(s, t, i))
			return false;
	}
	return !uni_strbuf_failed(&s->names) && uni_ranges_build(s->v, s->nr, &s->ranges);
}

static void table_deinit(struct table *t)
{
	uni_vec_free(&t->v);
	uni_strbuf_deinit(&t->names);
}

static int symtab_of(const char *path, const void *data, size_t size, bool last_wins,
	struct uni_symtab **ret, struct uni_err *err)
{
	_cleanup_(table_deinit) struct table t = { .all_zero = true, .last_wins = last_wins };
	struct uni_symtab *s = NULL;

	uni_strbuf_init(&t.names);
	if (!read_lines(&t, data, size))
		return uni_err_set(err, UNI_ENOMEM, "out of memory for the symbols of %s", path);
	if (t.nr_code == 0)
		return uni_err_set(err, UNI_EFORMAT,
			"%s is neither an ELF image nor a .usym nor a symbol table as nm and "
			"objdump -t print it",
			path);
	if (t.all_zero && t.v.nr > 1)
		return uni_err_set(err, UNI_EPERM,
			"all addresses in %s are 0: the kernel hides them from those who lack the "
			"right to see them (kptr_restrict)",
			path);
	qsort_r(t.v.v, t.v.nr, sizeof(*t.v.v), cmp_entries, &t);
	s = uni_symtab_new(t.nr_code);
	if (s == NULL || !fill_symtab(s, &t, path)) {
		uni_symtab_destroy(s);
		return uni_err_set(err, UNI_ENOMEM, "out of memory for the symbols of %s", path);
	}
	*ret = s;
	return 0;
}

int uni_symtab_of_text(const char *path, const void *data, size_t size, struct uni_symtab **ret,
	struct uni_err *err)
{
	return symtab_of(path, data, size, false, ret, err);
}

int uni_symtab_of_nm(const char *path, const void *data, size_t size, struct uni_symtab **ret,
	struct uni_err *err)
{
	return symtab_of(path, data, size, true, ret, err);
}
