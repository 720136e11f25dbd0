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

static bool copy_image(const struct uni_image *img, struct uni_symtab *s)
{
	const char *path = uni_image_path(img);
	char clean[UNI_TEXT_MAX];
	size_t len = uni_text_clean(clean, sizeof(clean), path, strlen(path));

	uni_strbuf_add(&s->names, uni_image_id(img), strlen(uni_image_id(img)) + 1);
	s->path = (uint32_t)s->names.len;
	uni_strbuf_add(&s->names, clean, len + 1);
	for (; s->nr < uni_image_nr_symbols(img); s->nr++) {
		const struct uni_symbol *sym = uni_image_symbol(img, s->nr);
		const char *name = uni_image_sym_name(img, sym);

		if (s->names.len > UINT32_MAX - UNI_TEXT_MAX)
			return false;
		s->v[s->nr] = *sym;
		s->v[s->nr].name = (uint32_t)s->names.len;
		uni_strbuf_add(&s->names, name, strlen(name) + 1);
	}
	s->machine = uni_image_machine(img);
	return !uni_strbuf_failed(&s->names) && uni_ranges_build(s->v, s->nr, &s->ranges);
}

int uni_symtab_of_image(const struct uni_image *img, struct uni_symtab **ret, struct uni_err *err)
{
	_cleanup_(destroy_p) struct uni_symtab *s = uni_symtab_new(uni_image_nr_symbols(img));

	if (s == NULL || !copy_image(img, s))
		return uni_err_set(err, UNI_ENOMEM, "out of memory for the symbols of %s",
			uni_image_path(img));
	*ret = uni_take(s);
	return 0;
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
