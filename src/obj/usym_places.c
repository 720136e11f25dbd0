/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines and inlined functions of a symbol source: kept for chosen addresses, or read from DWARF. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/strtab.h"
#include "base/text.h"
#include "base/vec.h"
#include "obj/debug.h"
#include "obj/usym_priv.h"

void uni_symtab_set_debug(struct uni_symtab *s, struct uni_debug *debug)
{
	uni_debug_destroy(s->debug);
	s->debug = debug;
}

bool uni_symtab_has_places(const struct uni_symtab *s)
{
	bool any = s->nr_spans != 0 || s->debug != NULL;

	for (size_t i = 0; i < s->nr_parts; i++)
		any = any || uni_symtab_has_places(s->part[i].symtab);
	return any;
}

/* The span that holds svma, or NULL. */
static const struct uni_symtab_span *find_span(const struct uni_symtab *s, uint64_t svma)
{
	size_t lo = 0, hi = s->nr_spans;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (uni_range_has(s->spans[mid].start, s->spans[mid].size, svma))
			return &s->spans[mid];
		if (s->spans[mid].start < svma)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

size_t uni_symtab_places(
	const struct uni_symtab *s, uint64_t svma, struct uni_place ret[UNI_INLINE_MAX])
{
	const struct uni_symtab_span *span;

	s = uni_symtab_part(s, svma, &svma);
	span = find_span(s, svma);
	if (span == NULL)
		return s->debug != NULL ? uni_debug_lookup(s->debug, svma, ret, NULL) : 0;
	for (size_t i = 0; i < span->nr; i++) {
		const struct uni_symtab_place *p = &s->places[span->first + i];

		ret[i] = (struct uni_place){
			.function = p->function != 0 ? s->names.s + p->function : NULL,
			.file = p->file != 0 ? s->names.s + p->file : NULL,
			.line = p->line,
		};
	}
	return span->nr;
}

/* Places while they are gathered. Strings are numbers of the table until all are known. */
struct keeper {
	struct uni_symtab *s;
	struct uni_strtab *strings;
	UNI_VEC(struct uni_symtab_span) spans;
	UNI_VEC(struct uni_symtab_place) places;
};

static void keeper_deinit(struct keeper *k)
{
	uni_strtab_destroy(k->strings);
	uni_vec_free(&k->spans);
	uni_vec_free(&k->places);
}

static bool add_string(struct keeper *k, const char *text, uint32_t *ret)
{
	*ret = text != NULL ? uni_strtab_add(k->strings, text, strlen(text)) : 0;
	return *ret != UNI_STR_NONE;
}

static bool add_place(struct keeper *k, const struct uni_place *from)
{
	struct uni_symtab_place p = { .line = from->line };

	return add_string(k, from->function, &p.function) && add_string(k, from->file, &p.file) &&
	       uni_vec_push(&k->places, p);
}

/* svma must rise from call to call. */
static bool keep_places(struct keeper *k, uint64_t svma)
{
	const struct uni_symtab_span *prev = k->spans.nr != 0 ? &k->spans.v[k->spans.nr - 1] : NULL;
	struct uni_place place[UNI_INLINE_MAX];
	struct uni_span found;
	struct uni_symtab_span span = { .first = (uint32_t)k->places.nr };

	if (prev != NULL && uni_range_has(prev->start, prev->size, svma))
		return true;
	span.nr = (uint32_t)uni_debug_lookup(k->s->debug, svma, place, &found);
	if (span.nr == 0 || k->places.nr > UINT32_MAX - UNI_INLINE_MAX)
		return true;
	span.start = found.start;
	span.size = found.size;
	for (size_t i = 0; i < span.nr; i++) {
		if (!add_place(k, &place[i]))
			return false;
	}
	return uni_vec_push(&k->spans, span);
}

/* Puts the strings behind the symbols' names, and stores their offsets in the places. */
static bool place_strings(struct keeper *k)
{
	uint32_t nr = uni_strtab_nr(k->strings);
	_cleanup_free_ uint32_t *offset = calloc((size_t)nr + 1, sizeof(*offset));
	struct uni_strbuf *names = &k->s->names;

	if (offset == NULL)
		return false;
	for (uint32_t i = 1; i < nr; i++) {
		if (names->len > UINT32_MAX - UNI_TEXT_MAX)
			return false;
		offset[i] = (uint32_t)names->len;
		uni_strbuf_add(
			names, uni_strtab_get(k->strings, i), uni_strtab_len(k->strings, i) + 1);
	}
	for (size_t i = 0; i < k->places.nr; i++) {
		k->places.v[i].function = offset[k->places.v[i].function];
		k->places.v[i].file = offset[k->places.v[i].file];
	}
	return !uni_strbuf_failed(names);
}

static int cmp_u64(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

int uni_symtab_keep_places(struct uni_symtab *s, uint64_t *svma, size_t nr, struct uni_err *err)
{
	_cleanup_(keeper_deinit) struct keeper k = { .s = s, .strings = uni_strtab_create() };
	bool ok = k.strings != NULL;

	if (s->debug == NULL || s->nr_spans != 0)
		return 0;
	if (nr != 0)
		qsort(svma, nr, sizeof(*svma), cmp_u64);
	for (size_t i = 0; ok && i < nr; i++)
		ok = keep_places(&k, svma[i]);
	if (!ok || !place_strings(&k))
		return uni_err_set(err, UNI_ENOMEM, "out of memory for the source lines of %s",
			uni_symtab_path(s));
	s->spans = k.spans.v;
	s->nr_spans = k.spans.nr;
	s->places = k.places.v;
	s->nr_places = k.places.nr;
	k.spans.v = NULL;
	k.places.v = NULL;
	return 0;
}
