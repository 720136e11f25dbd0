/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/usym.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "obj/debug.h"
#include "obj/usym_priv.h"

struct uni_symtab *uni_symtab_new(size_t nr)
{
	struct uni_symtab *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	uni_strbuf_init(&s->names);
	s->v = calloc(nr + 1, sizeof(*s->v));
	if (s->v == NULL) {
		free(s);
		return NULL;
	}
	return s;
}

void uni_symtab_destroy(struct uni_symtab *s)
{
	if (s == NULL)
		return;
	uni_strbuf_deinit(&s->names);
	uni_ranges_deinit(&s->ranges);
	uni_debug_destroy(s->debug);
	free(s->spans);
	free(s->places);
	free(s->part);
	free(s->v);
	free(s);
}

static void destroy_p(struct uni_symtab **s)
{
	uni_symtab_destroy(*s);
}

const char *uni_symtab_id(const struct uni_symtab *s)
{
	return s->names.s;
}

const char *uni_symtab_path(const struct uni_symtab *s)
{
	return s->names.s + s->path;
}

size_t uni_symtab_nr(const struct uni_symtab *s)
{
	size_t nr = s->nr;

	for (size_t i = 0; i < s->nr_parts; i++)
		nr += s->part[i].symtab->nr;
	return nr;
}

int uni_symtab_join(
	const struct uni_symtab_part *part, size_t nr, struct uni_symtab **ret, struct uni_err *err)
{
	_cleanup_(destroy_p) struct uni_symtab *s = uni_symtab_new(0);
	const struct uni_symtab *first = part[0].symtab;

	if (s != NULL)
		s->part = malloc(nr * sizeof(*part));
	if (s == NULL || s->part == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory for symbols");
	memcpy(s->part, part, nr * sizeof(*part));
	s->nr_parts = nr;
	s->machine = first->machine;
	uni_strbuf_add(&s->names, uni_symtab_id(first), strlen(uni_symtab_id(first)) + 1);
	s->path = (uint32_t)s->names.len;
	uni_strbuf_add(&s->names, uni_symtab_path(first), strlen(uni_symtab_path(first)) + 1);
	if (uni_strbuf_failed(&s->names) || !uni_ranges_build(s->v, 0, &s->ranges))
		return uni_err_set(err, UNI_ENOMEM, "out of memory for symbols");
	*ret = uni_take(s);
	return 0;
}

const struct uni_symtab *uni_symtab_part(
	const struct uni_symtab *s, uint64_t svma, uint64_t *svma_ret)
{
	for (size_t i = 0; i < s->nr_parts; i++) {
		uint64_t at = svma + s->part[i].delta;

		if (uni_ranges_find(&s->part[i].symtab->ranges, at) == UNI_RANGE_GAP)
			continue;
		*svma_ret = at;
		return s->part[i].symtab;
	}
	*svma_ret = svma;
	return s->nr_parts != 0 ? s->part[0].symtab : s;
}

bool uni_symtab_lookup(
	const struct uni_symtab *s, uint64_t svma, const char **name_ret, uint64_t *offset_ret)
{
	uint32_t i;

	s = uni_symtab_part(s, svma, &svma);
	i = uni_ranges_find(&s->ranges, svma);
	if (i == UNI_RANGE_GAP)
		return false;
	*name_ret = s->names.s + s->v[i].name;
	*offset_ret = svma - s->v[i].addr;
	return true;
}

bool uni_symtab_is_guess(const struct uni_symtab *s, uint64_t svma)
{
	uint32_t i = uni_ranges_find(&s->ranges, svma);

	return i != UNI_RANGE_GAP && s->v[i].guessed_size;
}

/* The place in the segment of the first byte that no symbol covers. */
static uint64_t first_gap(const struct uni_image *img, const struct uni_segment *seg)
{
	const struct uni_symbol *sym;
	uint64_t at = 0;

	while (at < seg->mem_size && (sym = uni_image_lookup(img, seg->vaddr + at)) != NULL)
		at += sym->size - (seg->vaddr + at - sym->addr);
	return at;
}

#define NAME_OF_FILE UINT32_MAX

/* A symbol for each segment with code, from its first gap on. All others go before it. */
static void add_file_names(const struct uni_image *img, struct uni_symtab *s)
{
	for (size_t i = 0; i < uni_image_nr_segments(img); i++) {
		const struct uni_segment *seg = uni_image_segment(img, i);
		uint64_t skip = first_gap(img, seg);

		if (seg->exec && skip < seg->mem_size)
			s->v[s->nr++] = (struct uni_symbol){ .addr = seg->vaddr + skip,
				.size = seg->mem_size - skip,
				.name = NAME_OF_FILE,
				.guessed_size = true };
	}
}

/* The names rise with the addresses, as the file's readers want them. */
static bool copy_sym_names(const struct uni_image *img, struct uni_symtab *s)
{
	_cleanup_free_ char *path = strdup(s->names.s + s->path);
	const char *slash = path != NULL ? strrchr(path, '/') : NULL;

	for (size_t i = 0; path != NULL && i < s->nr; i++) {
		struct uni_symbol *sym = &s->v[i];
		const char *name = sym->name != NAME_OF_FILE ? uni_image_sym_name(img, sym) : NULL;

		if (s->names.len > UINT32_MAX - UNI_TEXT_MAX)
			return false;
		sym->name = (uint32_t)s->names.len;
		if (name != NULL)
			uni_strbuf_add(&s->names, name, strlen(name));
		else
			uni_strbuf_addf(&s->names, "[%s]", slash != NULL ? slash + 1 : path);
		uni_strbuf_addc(&s->names, '\0');
	}
	return path != NULL && !uni_strbuf_failed(&s->names);
}

static int compare_symbols(const void *a, const void *b)
{
	const struct uni_symbol *p = a, *q = b;

	return p->addr < q->addr ? -1 : p->addr > q->addr;
}

/* The names of those that are used, behind the id and the path; the symbols move to the front. */
static bool move_symbols(struct uni_symtab *s, const bool *used, struct uni_strbuf *names)
{
	size_t nr = 0;

	uni_strbuf_add(names, s->names.s, s->path + strlen(uni_symtab_path(s)) + 1);
	for (size_t i = 0; i < s->nr; i++) {
		const char *name = s->names.s + s->v[i].name;

		if (!used[i])
			continue;
		s->v[nr] = s->v[i];
		s->v[nr++].name = (uint32_t)names->len;
		uni_strbuf_add(names, name, strlen(name) + 1);
	}
	s->nr = nr;
	return !uni_strbuf_failed(names);
}

int uni_symtab_keep_symbols(
	struct uni_symtab *s, const uint64_t *svma, size_t nr, struct uni_err *err)
{
	_cleanup_free_ bool *used = calloc(s->nr + 1, sizeof(*used));
	struct uni_strbuf names;
	bool ok;

	if (used == NULL)
		return uni_err_nomem(err);
	for (size_t i = 0; i < nr; i++) {
		uint32_t at = uni_ranges_find(&s->ranges, svma[i]);

		if (at != UNI_RANGE_GAP)
			used[at] = true;
	}
	uni_strbuf_init(&names);
	ok = move_symbols(s, used, &names);
	uni_strbuf_deinit(&s->names);
	s->names = names;
	uni_ranges_deinit(&s->ranges);
	ok = uni_ranges_build(s->v, s->nr, &s->ranges) && ok;
	return ok ? 0 : uni_err_nomem(err);
}

static bool copy_image(const struct uni_image *img, bool library, struct uni_symtab *s)
{
	const char *path = uni_image_path(img);
	char clean[UNI_TEXT_MAX];
	size_t len = uni_text_clean(clean, sizeof(clean), path, strlen(path));

	uni_strbuf_add(&s->names, uni_image_id(img), strlen(uni_image_id(img)) + 1);
	s->path = (uint32_t)s->names.len;
	uni_strbuf_add(&s->names, clean, len + 1);
	if (uni_strbuf_failed(&s->names))
		return false;
	if (library)
		add_file_names(img, s);
	for (size_t i = 0; i < uni_image_nr_symbols(img); i++)
		s->v[s->nr++] = *uni_image_symbol(img, i);
	s->machine = uni_image_machine(img);
	if (library && s->nr != 0)
		qsort(s->v, s->nr, sizeof(*s->v), compare_symbols);
	return copy_sym_names(img, s) && uni_ranges_build(s->v, s->nr, &s->ranges);
}

static int symtab_of(
	const struct uni_image *img, bool library, struct uni_symtab **ret, struct uni_err *err)
{
	size_t files = library ? uni_image_nr_segments(img) : 0;
	_cleanup_(destroy_p) struct uni_symtab *s =
		uni_symtab_new(uni_image_nr_symbols(img) + files);

	if (s == NULL || !copy_image(img, library, s))
		return uni_err_set(err, UNI_ENOMEM, "out of memory for the symbols of %s",
			uni_image_path(img));
	*ret = uni_take(s);
	return 0;
}

int uni_symtab_of_image(const struct uni_image *img, struct uni_symtab **ret, struct uni_err *err)
{
	return symtab_of(img, false, ret, err);
}

int uni_symtab_of_library(const struct uni_image *img, struct uni_symtab **ret, struct uni_err *err)
{
	return symtab_of(img, true, ret, err);
}

static bool copy_names(const char *path, const char *const *names, size_t nr, struct uni_symtab *s)
{
	char clean[UNI_TEXT_MAX];
	uint64_t h = FNV_BASIS;
	size_t len;

	for (size_t i = 0; i < nr; i++) {
		for (const char *c = names[i]; *c != '\0'; c++)
			h = (h ^ (uint8_t)*c) * FNV_PRIME;
		h *= FNV_PRIME; /* the end of a name counts, too */
	}
	uni_strbuf_addf(&s->names, "x%016" PRIx64, h);
	uni_strbuf_addc(&s->names, '\0');
	s->path = (uint32_t)s->names.len;
	len = uni_text_clean(clean, sizeof(clean), path, strlen(path));
	uni_strbuf_add(&s->names, clean, len + 1);
	for (; s->nr < nr; s->nr++) {
		if (s->names.len > UINT32_MAX - UNI_TEXT_MAX)
			return false;
		s->v[s->nr] = (struct uni_symbol){ .addr = UNI_NAMES_BASE + s->nr * UNI_NAMES_STEP,
			.size = UNI_NAMES_STEP,
			.name = (uint32_t)s->names.len };
		len = uni_text_clean(clean, sizeof(clean), names[s->nr], strlen(names[s->nr]));
		uni_strbuf_add(&s->names, clean, len + 1);
	}
	return !uni_strbuf_failed(&s->names) && uni_ranges_build(s->v, s->nr, &s->ranges);
}

int uni_symtab_of_names(const char *path, const char *const *names, size_t nr,
	struct uni_symtab **ret, struct uni_err *err)
{
	_cleanup_(destroy_p) struct uni_symtab *s = uni_symtab_new(nr);

	if (s == NULL || !copy_names(path, names, nr, s))
		return uni_err_set(err, UNI_ENOMEM, "out of memory for the names of %s", path);
	*ret = uni_take(s);
	return 0;
}
