/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout is in docs/formats/usym.md. */
#include "obj/usym.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/io.h"
#include "base/sink.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "obj/ranges.h"

#define USYM_MAGIC	  "uniusym"
#define USYM_VERSION	  1
#define USYM_HEADER_SIZE  64
#define USYM_RECORD_SIZE  24
#define USYM_CHECKSUM_AT  56
#define USYM_FILE_MAX	  ((size_t)256 << 20)
#define USYM_FLAG_GUESSED 1u
#define FNV_BASIS	  0xcbf29ce484222325ull
#define FNV_PRIME	  0x100000001b3ull

struct uni_symtab {
	struct uni_symbol *v;
	size_t nr;
	struct uni_strbuf names; /* id, path, then a name a symbol, in the symbols' order */
	uint32_t path;		 /* offset; the id is at 0 */
	unsigned machine;
	struct uni_ranges ranges;
};

static struct uni_symtab *symtab_new(size_t nr)
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
	return s->nr;
}

bool uni_symtab_lookup(
	const struct uni_symtab *s, uint64_t svma, const char **name_ret, uint64_t *offset_ret)
{
	uint32_t i = uni_ranges_find(&s->ranges, svma);

	if (i == UNI_RANGE_GAP)
		return false;
	*name_ret = s->names.s + s->v[i].name;
	*offset_ret = svma - s->v[i].addr;
	return true;
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
	_cleanup_(destroy_p) struct uni_symtab *s = symtab_new(uni_image_nr_symbols(img));

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
		h *= FNV_PRIME; /* the end of a name counts too */
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
	_cleanup_(destroy_p) struct uni_symtab *s = symtab_new(nr);

	if (s == NULL || !copy_names(path, names, nr, s))
		return uni_err_set(err, UNI_ENOMEM, "out of memory for the names of %s", path);
	*ret = uni_take(s);
	return 0;
}

/* FNV-1a, 64 bit, of the file with zeros where the checksum stands. */
static uint64_t checksum(const uint8_t *data, size_t size)
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

/* All but the checksum, which stays 0. */
static void encode(const struct uni_symtab *s, struct uni_strbuf *b)
{
	uint64_t size = USYM_HEADER_SIZE + (uint64_t)s->nr * USYM_RECORD_SIZE + s->names.len;

	uni_strbuf_add(b, USYM_MAGIC, 8);
	put_u32(b, USYM_VERSION);
	put_u32(b, USYM_HEADER_SIZE);
	put_u64(b, size);
	put_u32(b, (uint32_t)s->nr);
	put_u32(b, (uint32_t)s->names.len);
	put_u32(b, s->path);
	put_u32(b, s->machine);
	put_u64(b, 0);
	put_u64(b, 0);
	put_u64(b, 0);
	for (size_t i = 0; i < s->nr; i++) {
		put_u64(b, s->v[i].addr);
		put_u64(b, s->v[i].size);
		put_u32(b, s->v[i].name);
		put_u32(b, s->v[i].guessed_size ? USYM_FLAG_GUESSED : 0);
	}
	uni_strbuf_add(b, s->names.s, s->names.len);
}

int uni_usym_write(const struct uni_image *img, const char *path, struct uni_err *err)
{
	_cleanup_(destroy_p) struct uni_symtab *s = NULL;
	int rc = uni_symtab_of_image(img, &s, err);

	return rc == 0 ? uni_symtab_write(s, path, err) : rc;
}

int uni_symtab_write(const struct uni_symtab *s, const char *path, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf b;
	struct uni_sink *out;
	uint64_t sum;
	int rc;

	uni_strbuf_init(&b);
	encode(s, &b);
	if (uni_strbuf_failed(&b))
		return uni_err_set(err, UNI_ENOMEM, "out of memory writing %s", path);
	if (b.len > USYM_FILE_MAX)
		return uni_err_set(err, UNI_ERANGE, "%s has too many symbols to write to %s",
			uni_symtab_path(s), path);
	sum = checksum((const uint8_t *)b.s, b.len);
	for (unsigned i = 0; i < 8; i++)
		b.s[USYM_CHECKSUM_AT + i] = (char)(sum >> 8 * i);
	rc = uni_sink_open_file(path, &out, err);
	if (rc != 0)
		return rc;
	uni_sink_write(out, b.s, b.len);
	return uni_sink_close(out, err);
}

struct header {
	uint32_t nr, names_size, path, machine;
};

static int parse_header(
	struct uni_cursor *c, const uint8_t *data, struct header *h, struct uni_err *err)
{
	uint64_t file_size, sum;
	const uint8_t *magic = uni_cursor_take(c, 8);
	uint32_t version = uni_cursor_u32(c), header_size = uni_cursor_u32(c);

	if (c->size < USYM_HEADER_SIZE || memcmp(magic, USYM_MAGIC, 8) != 0)
		return uni_err_set(err, UNI_EFORMAT, "not a symbol file (.usym)");
	if (version != USYM_VERSION)
		return uni_err_set(err, UNI_ENOTSUP,
			"symbol file of version %u: this program reads version %u", version,
			USYM_VERSION);
	file_size = uni_cursor_u64(c);
	h->nr = uni_cursor_u32(c);
	h->names_size = uni_cursor_u32(c);
	h->path = uni_cursor_u32(c);
	h->machine = uni_cursor_u32(c);
	(void)uni_cursor_take(c, 16);
	sum = uni_cursor_u64(c);
	if (c->failed || header_size != USYM_HEADER_SIZE || file_size != c->size ||
		USYM_HEADER_SIZE + (uint64_t)h->nr * USYM_RECORD_SIZE + h->names_size != c->size)
		return uni_err_set(err, UNI_EFORMAT, "symbol file with wrong lengths: cut short?");
	if (sum != checksum(data, c->size))
		return uni_err_set(err, UNI_EFORMAT, "symbol file with a wrong checksum");
	return 0;
}

/*
 * A string at off is accepted if it is clean text and starts right behind another one. Offsets rise
 * from symbol to symbol, so the time to check them all grows with the file's size only.
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
	s = symtab_new(h.nr);
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
