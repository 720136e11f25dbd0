/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/uktrace/defs.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "base/text.h"

#define MAGIC	  0x65645054u /* "TPde" */
#define ALIGNMENT 4	      /* definitions lie at 8 or 32 bytes, as the compiler likes */

/* Text of a definition, with its NUL or without; cleaned. */
static const char *definition_text(struct uni_ukt_defs *d, const uint8_t *s, size_t len)
{
	char clean[256 * 3];
	size_t n;
	uint32_t id;

	/* Some formats end their line themselves. */
	while (len != 0 && (s[len - 1] == '\0' || s[len - 1] == '\n'))
		len--;
	n = uni_text_clean(clean, sizeof(clean), s, len);
	id = uni_strtab_add(d->text, clean, n);
	return id == UNI_STR_NONE ? NULL : uni_strtab_get(d->text, id);
}

/* Reads a definition at c; false: it is invalid. *size_ret: its size with its padding. */
static bool read_one(struct uni_cursor *c, struct uni_ukt_def *ret, const uint8_t **name_ret,
	const uint8_t **format_ret, uint8_t len_ret[2], size_t *size_ret)
{
	size_t at = c->pos;
	uint32_t magic = uni_cursor_u32(c), size = uni_cursor_u32(c);
	const uint8_t *sizes, *types;

	*ret = (struct uni_ukt_def){ .cookie = uni_cursor_u64(c), .readable = true };
	ret->nr_args = uni_cursor_u8(c);
	len_ret[0] = uni_cursor_u8(c);
	len_ret[1] = uni_cursor_u8(c);
	sizes = uni_cursor_take(c, ret->nr_args);
	types = uni_cursor_take(c, ret->nr_args);
	*name_ret = uni_cursor_take(c, len_ret[0]);
	*format_ret = uni_cursor_take(c, len_ret[1]);
	if (c->failed || magic != MAGIC || ret->nr_args > UNI_UKT_ARGS_MAX || size < c->pos - at ||
		size > c->size - at)
		return false;
	for (unsigned i = 0; i < ret->nr_args; i++) {
		ret->arg[i] = (struct uni_ukt_arg_def){ sizes[i], types[i] };
		if (types[i] > UNI_UKT_STRING)
			ret->readable = false;
	}
	*size_ret = size;
	return true;
}

static int by_cookie(const void *a, const void *b)
{
	const struct uni_ukt_def *x = a, *y = b;

	return (x->cookie > y->cookie) - (x->cookie < y->cookie);
}

static int add_definition(struct uni_ukt_defs *d, struct uni_ukt_def *def, const uint8_t *name,
	const uint8_t *format, const uint8_t len[2])
{
	def->name = definition_text(d, name, len[0]);
	def->format = definition_text(d, format, len[1]);
	if (def->name == NULL || def->format == NULL || !uni_vec_push(&d->all, *def))
		return -UNI_ENOMEM;
	return 0;
}

static int parse_definitions(const uint8_t *data, size_t size, struct uni_ukt_defs *d)
{
	size_t at = 0;

	while (size - at >= ALIGNMENT && d->all.nr < UNI_UKT_DEFS_MAX) {
		struct uni_cursor c = uni_cursor_make(data, size);
		struct uni_ukt_def def;
		const uint8_t *name, *format;
		uint8_t len[2];
		size_t took;

		uni_cursor_seek(&c, at);
		if (read_one(&c, &def, &name, &format, len, &took)) {
			if (add_definition(d, &def, name, format, len) != 0)
				return -UNI_ENOMEM;
			at += took;
			at = uni_min(size, (at + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1));
			continue;
		}
		if (memcmp(data + at, "\0\0\0", ALIGNMENT) != 0)
			d->damaged += ALIGNMENT;
		at += ALIGNMENT;
	}
	return 0;
}

int uni_ukt_defs_parse(const void *data, size_t size, struct uni_ukt_defs *ret, struct uni_err *err)
{
	*ret = (struct uni_ukt_defs){ .text = uni_strtab_create() };
	if (ret->text == NULL || parse_definitions(data, size, ret) != 0) {
		uni_ukt_defs_free(ret);
		return uni_err_nomem(err);
	}
	if (ret->all.nr > 1)
		qsort(ret->all.v, ret->all.nr, sizeof(ret->all.v[0]), by_cookie);
	return 0;
}

void uni_ukt_defs_free(struct uni_ukt_defs *d)
{
	uni_vec_free(&d->all);
	uni_strtab_destroy(d->text);
	*d = (struct uni_ukt_defs){ 0 };
}

const struct uni_ukt_def *uni_ukt_defs_find(const struct uni_ukt_defs *d, uint64_t cookie)
{
	const struct uni_ukt_def key = { .cookie = cookie };

	if (d->all.nr == 0)
		return NULL;
	return bsearch(&key, d->all.v, d->all.nr, sizeof(d->all.v[0]), by_cookie);
}
