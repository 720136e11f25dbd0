/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout is in docs/formats/usym.md. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/io.h"
#include "base/sink.h"
#include "base/text.h"
#include "obj/debug.h"
#include "obj/usym_priv.h"

#define USYM_MAGIC	  "uniusym"
#define USYM_VERSION	  2
#define USYM_HEADER_SIZE  64
#define USYM_RECORD_SIZE  24
#define USYM_SPAN_SIZE	  24
#define USYM_PLACE_SIZE	  16
#define USYM_CHECKSUM_AT  56
#define USYM_FILE_MAX	  ((size_t)256 << 20)
#define USYM_FLAG_GUESSED 1u

static void destroy_p(struct uni_symtab **s)
{
	uni_symtab_destroy(*s);
}

/* FNV-1a, 64 bit, of the file with zeros in place of the checksum. */
static uint64_t usym_checksum(const uint8_t *data, size_t size)
{
	uint64_t h = FNV_BASIS;

	for (size_t i = 0; i < size; i++) {
		bool own = uni_range_has(USYM_CHECKSUM_AT, 8, i);

		h = (h ^ (own ? 0 : data[i])) * FNV_PRIME;
	}
	return h;
}

static void put_u32(struct uni_strbuf *b, uint32_t v)
{
	uint8_t bytes[4] = { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
		(uint8_t)(v >> 24) };

	uni_strbuf_add(b, bytes, sizeof(bytes));
}

static void put_u64(struct uni_strbuf *b, uint64_t v)
{
	put_u32(b, (uint32_t)v);
	put_u32(b, (uint32_t)(v >> 32));
}

static void encode_places(const struct uni_symtab *s, struct uni_strbuf *b)
{
	for (size_t i = 0; i < s->nr_spans; i++) {
		put_u64(b, s->spans[i].start);
		put_u64(b, s->spans[i].size);
		put_u32(b, s->spans[i].first);
		put_u32(b, s->spans[i].nr);
	}
	for (size_t i = 0; i < s->nr_places; i++) {
		put_u32(b, s->places[i].function);
		put_u32(b, s->places[i].file);
		put_u32(b, s->places[i].line);
		put_u32(b, 0);
	}
}

/* All but the checksum, which stays 0. */
static void encode_usym(const struct uni_symtab *s, struct uni_strbuf *b)
{
	uint64_t size = USYM_HEADER_SIZE + (uint64_t)s->nr * USYM_RECORD_SIZE +
			(uint64_t)s->nr_spans * USYM_SPAN_SIZE +
			(uint64_t)s->nr_places * USYM_PLACE_SIZE + s->names.len;

	uni_strbuf_add(b, USYM_MAGIC, 8);
	put_u32(b, s->nr_spans != 0 ? USYM_VERSION : 1);
	put_u32(b, USYM_HEADER_SIZE);
	put_u64(b, size);
	put_u32(b, (uint32_t)s->nr);
	put_u32(b, (uint32_t)s->names.len);
	put_u32(b, s->path);
	put_u32(b, s->machine);
	put_u32(b, (uint32_t)s->nr_spans);
	put_u32(b, (uint32_t)s->nr_places);
	put_u64(b, 0);
	put_u64(b, 0);
	for (size_t i = 0; i < s->nr; i++) {
		put_u64(b, s->v[i].addr);
		put_u64(b, s->v[i].size);
		put_u32(b, s->v[i].name);
		put_u32(b, s->v[i].guessed_size ? USYM_FLAG_GUESSED : 0);
	}
	encode_places(s, b);
	uni_strbuf_add(b, s->names.s, s->names.len);
}

int uni_usym_write(const struct uni_image *img, const char *path, struct uni_err *err)
{
	_cleanup_(destroy_p) struct uni_symtab *s = NULL;
	int rc = uni_symtab_of_image(img, &s, err);

	return rc == 0 ? uni_symtab_write_below(s, AT_FDCWD, path, path, err) : rc;
}

int uni_symtab_write_below(const struct uni_symtab *s, int dir_fd, const char *name,
	const char *shown, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf b;
	struct uni_sink *out;
	uint64_t sum;
	int rc;

	uni_strbuf_init(&b);
	encode_usym(s, &b);
	if (uni_strbuf_failed(&b))
		return uni_err_set(err, UNI_ENOMEM, "out of memory writing %s", shown);
	if (b.len > USYM_FILE_MAX)
		return uni_err_set(err, UNI_ERANGE, "%s has too many symbols to write to %s",
			uni_symtab_path(s), shown);
	sum = usym_checksum((const uint8_t *)b.s, b.len);
	for (unsigned i = 0; i < 8; i++)
		b.s[USYM_CHECKSUM_AT + i] = (char)(sum >> 8 * i);
	rc = uni_sink_open_below(dir_fd, name, shown, &out, err);
	if (rc != 0)
		return rc;
	uni_sink_set_durable(out);
	uni_sink_write(out, b.s, b.len);
	return uni_sink_close(out, err);
}

struct header {
	uint32_t nr, names_size, path, machine, nr_spans, nr_places;
};

static uint64_t stated_size(const struct header *h)
{
	return USYM_HEADER_SIZE + (uint64_t)h->nr * USYM_RECORD_SIZE +
	       (uint64_t)h->nr_spans * USYM_SPAN_SIZE + (uint64_t)h->nr_places * USYM_PLACE_SIZE +
	       h->names_size;
}

static int parse_header(
	struct uni_cursor *c, const uint8_t *data, struct header *h, struct uni_err *err)
{
	uint64_t file_size, sum;
	const uint8_t *magic = uni_cursor_take(c, 8);
	uint32_t version = uni_cursor_u32(c), header_size = uni_cursor_u32(c);

	if (c->size < USYM_HEADER_SIZE || memcmp(magic, USYM_MAGIC, 8) != 0)
		return uni_err_set(err, UNI_EFORMAT, "not a symbol file (.usym)");
	if (version == 0 || version > USYM_VERSION)
		return uni_err_set(err, UNI_ENOTSUP,
			"symbol file of version %u: this program reads versions up to %u", version,
			USYM_VERSION);
	file_size = uni_cursor_u64(c);
	h->nr = uni_cursor_u32(c);
	h->names_size = uni_cursor_u32(c);
	h->path = uni_cursor_u32(c);
	h->machine = uni_cursor_u32(c);
	h->nr_spans = version >= 2 ? uni_cursor_u32(c) : 0;
	h->nr_places = version >= 2 ? uni_cursor_u32(c) : 0;
	(void)uni_cursor_take(c, version >= 2 ? 8 : 16);
	sum = uni_cursor_u64(c);
	if (c->failed || header_size != USYM_HEADER_SIZE || file_size != c->size ||
		stated_size(h) != c->size)
		return uni_err_set(err, UNI_EFORMAT, "symbol file with wrong lengths: cut short?");
	if (sum != usym_checksum(data, c->size))
		return uni_err_set(err, UNI_EFORMAT, "symbol file with a wrong checksum");
	return 0;
}

/*
 * A string at off is valid if it is clean text and starts right behind another string. Offsets rise
 * from symbol to symbol, so the time for all checks is linear in the file's size.
 */
static bool check_string(const struct uni_symtab *s, uint32_t off, size_t *len_ret)
{
	char clean[UNI_TEXT_MAX];
	size_t len;

	if (off >= s->names.len || (off != 0 && s->names.s[off - 1] != '\0'))
		return false;
	len = strlen(s->names.s + off);
	if (len >= sizeof(clean) ||
		uni_text_clean(clean, sizeof(clean), s->names.s + off, len) != len ||
		memcmp(clean, s->names.s + off, len) != 0)
		return false;
	*len_ret = len;
	return true;
}

/* The id becomes part of file names. */
static bool check_id_and_path(const struct uni_symtab *s)
{
	size_t len;

	if (!check_string(s, 0, &len) || len == 0 || len > 2 * UNI_BUILD_ID_MAX ||
		strspn(s->names.s, "0123456789abcdefx") != len)
		return false;
	return s->path == len + 1 && check_string(s, s->path, &len);
}

static bool parse_symbol(struct uni_cursor *c, struct uni_symtab *s)
{
	const struct uni_symbol *prev = s->nr != 0 ? &s->v[s->nr - 1] : NULL;
	struct uni_symbol *sym = &s->v[s->nr];
	uint32_t flags;
	size_t len;

	sym->addr = uni_cursor_u64(c);
	sym->size = uni_cursor_u64(c);
	sym->name = uni_cursor_u32(c);
	flags = uni_cursor_u32(c);
	sym->guessed_size = (flags & USYM_FLAG_GUESSED) != 0;
	if (sym->size == 0 || !uni_range_ok(sym->addr, sym->size))
		return false;
	if (prev != NULL && sym->addr <= prev->addr)
		return false;
	if (sym->name <= (prev != NULL ? prev->name : s->path))
		return false;
	return check_string(s, sym->name, &len) && len != 0;
}

/* Checks the strings behind the symbols' names: all must be clean, as any may be used. */
static bool check_more_names(const struct uni_symtab *s)
{
	uint32_t last = s->nr != 0 ? s->v[s->nr - 1].name : s->path;
	size_t at = last, len;

	for (at += strlen(s->names.s + at) + 1; at < s->names.len; at += len + 1) {
		if (!check_string(s, (uint32_t)at, &len) || len == 0)
			return false;
	}
	return true;
}

/* Is it a string among the names, but neither id nor path? 0 means none. */
static bool check_ref(const struct uni_symtab *s, uint32_t off)
{
	return off == 0 || (off > s->path && off < s->names.len && s->names.s[off - 1] == '\0');
}

static bool parse_span(struct uni_cursor *c, struct uni_symtab *s, uint32_t nr_places)
{
	const struct uni_symtab_span *prev = s->nr_spans != 0 ? &s->spans[s->nr_spans - 1] : NULL;
	struct uni_symtab_span *span = &s->spans[s->nr_spans];

	span->start = uni_cursor_u64(c);
	span->size = uni_cursor_u64(c);
	span->first = uni_cursor_u32(c);
	span->nr = uni_cursor_u32(c);
	if (span->size == 0 || !uni_range_ok(span->start, span->size))
		return false;
	if (prev != NULL && (span->start <= prev->start || span->start - prev->start < prev->size))
		return false;
	return span->nr != 0 && span->nr <= UNI_INLINE_MAX &&
	       uni_range_contains(0, nr_places, span->first, span->nr);
}

static int parse_places(
	struct uni_cursor *c, const struct header *h, struct uni_symtab *s, struct uni_err *err)
{
	if (!check_more_names(s))
		return uni_err_set(
			err, UNI_EFORMAT, "symbol file: its further names are malformed");
	s->spans = calloc((size_t)h->nr_spans + 1, sizeof(*s->spans));
	s->places = calloc((size_t)h->nr_places + 1, sizeof(*s->places));
	if (s->spans == NULL || s->places == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory for a symbol file");
	for (; s->nr_spans < h->nr_spans; s->nr_spans++) {
		if (!parse_span(c, s, h->nr_places))
			return uni_err_set(err, UNI_EFORMAT, "symbol file: span %zu is malformed",
				s->nr_spans);
	}
	for (; s->nr_places < h->nr_places; s->nr_places++) {
		struct uni_symtab_place *p = &s->places[s->nr_places];

		p->function = uni_cursor_u32(c);
		p->file = uni_cursor_u32(c);
		p->line = uni_cursor_u32(c);
		(void)uni_cursor_u32(c);
		if (!check_ref(s, p->function) || !check_ref(s, p->file))
			return uni_err_set(err, UNI_EFORMAT, "symbol file: place %zu is malformed",
				s->nr_places);
	}
	return 0;
}

int uni_symtab_parse(const void *data, size_t size, struct uni_symtab **ret, struct uni_err *err)
{
	_cleanup_(destroy_p) struct uni_symtab *s = NULL;
	struct uni_cursor c = uni_cursor_make(data, size);
	struct header h = { 0 };
	const char *names;
	int rc = parse_header(&c, data, &h, err);

	if (rc != 0)
		return rc;
	names = (const char *)data + (size - h.names_size);
	if (h.names_size == 0 || names[h.names_size - 1] != '\0')
		return uni_err_set(err, UNI_EFORMAT, "symbol file without names");
	s = uni_symtab_new(h.nr);
	if (s != NULL)
		uni_strbuf_add(&s->names, names, h.names_size);
	if (s == NULL || uni_strbuf_failed(&s->names))
		return uni_err_set(err, UNI_ENOMEM, "out of memory for a symbol file");
	s->path = h.path;
	s->machine = h.machine;
	if (!check_id_and_path(s))
		return uni_err_set(err, UNI_EFORMAT, "symbol file with a bad id or path");
	for (; s->nr < h.nr; s->nr++) {
		if (!parse_symbol(&c, s))
			return uni_err_set(
				err, UNI_EFORMAT, "symbol file: symbol %zu is malformed", s->nr);
	}
	rc = parse_places(&c, &h, s, err);
	if (rc != 0)
		return rc;
	if (!uni_ranges_build(s->v, s->nr, &s->ranges))
		return uni_err_set(err, UNI_ENOMEM, "out of memory for a symbol file");
	*ret = uni_take(s);
	return 0;
}

int uni_symtab_load(const char *path, struct uni_symtab **ret, struct uni_err *err)
{
	_cleanup_free_ char *data = NULL;
	size_t size;
	int rc = uni_read_regular(path, USYM_FILE_MAX, &data, &size, err);

	if (rc != 0)
		return rc;
	rc = uni_symtab_parse(data, size, ret, err);
	if (rc != 0)
		(void)uni_err_prefix(err, "%s", path);
	return rc;
}
