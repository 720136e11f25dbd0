/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/svg/files.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/door.h"
#include "base/io.h"
#include "base/line.h"
#include "base/strtab.h"
#include "base/vec.h"

#define FILE_MAX_BYTES ((size_t)256 << 20)

struct uni_palette_map {
	struct uni_strtab *names; /* number n has the colour n - 1 */
	UNI_VEC(struct uni_rgb) colours;
	bool failed;
};

static void set_colour(
	struct uni_palette_map *m, const char *name, size_t len, struct uni_rgb colour)
{
	uint32_t id = uni_strtab_add(m->names, name, len);

	if (id == UNI_STR_NONE || id == 0) /* out of memory; "" has no colour to keep */
		m->failed = m->failed || id != 0;
	else if (id <= m->colours.nr)
		m->colours.v[id - 1] = colour;
	else if (!uni_vec_push(&m->colours, colour))
		m->failed = true;
}

/* "255,": a number up to 255 and what ends it are taken off. */
static bool take_byte(struct uni_line *l, char end, uint8_t *ret)
{
	unsigned v = 0;
	size_t n = 0;

	for (; n < l->len && n < 3 && l->s[n] >= '0' && l->s[n] <= '9'; n++)
		v = v * 10 + (unsigned)(l->s[n] - '0');
	if (n == 0 || v > 255 || n == l->len || l->s[n] != end)
		return false;
	l->s += n + 1;
	l->len -= n + 1;
	*ret = (uint8_t)v;
	return true;
}

static bool parse_rgb(struct uni_line l, struct uni_rgb *ret)
{
	static const char prefix[] = "rgb(";
	const size_t n = sizeof(prefix) - 1;

	if (l.len < n || memcmp(l.s, prefix, n) != 0)
		return false;
	l.s += n;
	l.len -= n;
	return take_byte(&l, ',', &ret->r) && take_byte(&l, ',', &ret->g) &&
	       take_byte(&l, ')', &ret->b) && l.len == 0;
}

/* The name may itself hold "->": the last one counts. */
static bool parse_line(struct uni_palette_map *m, struct uni_line l)
{
	for (size_t i = l.len; i-- > 1;) {
		struct uni_line rest = { l.s + i + 1, l.len - i - 1 };
		struct uni_rgb colour;

		if (l.s[i - 1] != '-' || l.s[i] != '>')
			continue;
		if (!parse_rgb(rest, &colour))
			return false;
		set_colour(m, l.s, i - 1, colour);
		return true;
	}
	return false;
}

static int read_map(struct uni_palette_map *m, const char *path, struct uni_err *err)
{
	_cleanup_free_ char *data = NULL;
	size_t size, pos = 0, nr = 0;
	struct uni_line l;
	int rc;

	if (uni_door_access(path, F_OK) != 0)
		return 0;
	rc = uni_read_file(path, FILE_MAX_BYTES, &data, &size, err);
	while (rc == 0 && uni_line_next(data, size, &pos, &l)) {
		nr++;
		if (l.len != 0 && !parse_line(m, l))
			rc = uni_err_set(err, UNI_EFORMAT,
				"%s: line %zu is not FUNCTION->rgb(RED,GREEN,BLUE)", path, nr);
	}
	return rc;
}

int uni_palette_map_open(const char *path, struct uni_palette_map **ret, struct uni_err *err)
{
	struct uni_palette_map *m = calloc(1, sizeof(*m));
	int rc = 0;

	if (m != NULL)
		m->names = uni_strtab_create();
	if (m == NULL || m->names == NULL)
		rc = uni_err_nomem(err);
	if (rc == 0)
		rc = read_map(m, path, err);
	if (rc != 0) {
		uni_palette_map_close(m);
		return rc;
	}
	*ret = m;
	return 0;
}

struct uni_rgb uni_palette_map_colour(
	struct uni_palette_map *m, const char *name, struct uni_rgb otherwise)
{
	uint32_t id = uni_strtab_find(m->names, name, strlen(name));

	if (id != UNI_STR_NONE && id != 0 && id <= m->colours.nr)
		return m->colours.v[id - 1];
	set_colour(m, name, strlen(name), otherwise);
	return otherwise;
}

static int name_order(const void *a, const void *b, void *names)
{
	return strcmp(uni_strtab_get(names, *(const uint32_t *)a),
		uni_strtab_get(names, *(const uint32_t *)b));
}

int uni_palette_map_save(struct uni_palette_map *m, const char *path, struct uni_err *err)
{
	_cleanup_free_ uint32_t *order = calloc(m->colours.nr + 1, sizeof(*order));
	struct uni_sink *out;
	int rc;

	if (order == NULL || m->failed)
		return uni_err_nomem(err);
	for (size_t i = 0; i < m->colours.nr; i++)
		order[i] = (uint32_t)i + 1;
	qsort_r(order, m->colours.nr, sizeof(*order), name_order, m->names);
	rc = uni_sink_open_file(path, &out, err);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < m->colours.nr; i++) {
		struct uni_rgb c = m->colours.v[order[i] - 1];

		uni_sink_puts(out, uni_strtab_get(m->names, order[i]));
		uni_sink_printf(out, "->rgb(%u,%u,%u)\n", c.r, c.g, c.b);
	}
	return uni_sink_close(out, err);
}

void uni_palette_map_close(struct uni_palette_map *m)
{
	if (m == NULL)
		return;
	uni_strtab_destroy(m->names);
	uni_vec_free(&m->colours);
	free(m);
}

struct uni_name_attrs {
	struct uni_strtab *text; /* "FUNCTION\tNAME" and values */
	UNI_VEC(uint32_t) value; /* by the key's number */
	uint64_t refused;	 /* values that would run a script */
};

static const char *const attr_names[] = { "title", "href", "target", "id", "class", "g_extra",
	"a_extra" };

/* A link that would make a browser run a script, or show content in this page's name. */
static bool is_script_url(const char *url, size_t len)
{
	static const char *const schemes[] = { "javascript:", "data:", "vbscript:" };
	char head[sizeof("javascript:")];
	size_t n = 0;

	/* Browsers take blanks and controls for nothing: before the scheme, and breaks in it. */
	for (size_t i = 0; i < len && n < sizeof(head) - 1; i++) {
		if ((unsigned char)url[i] > ' ')
			head[n++] = url[i];
	}
	head[n] = '\0';
	for (size_t i = 0; i < uni_array_len(schemes); i++) {
		if (strncasecmp(head, schemes[i], strlen(schemes[i])) == 0)
			return true;
	}
	return false;
}

static bool is_word(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && strncasecmp(s, word, len) == 0;
}

/* NAME="VALUE" ... as the file has it: one that is a handler, or a link by another way. */
static bool extra_runs(const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t begin = i;

		while (i < len && strchr(" =\"'/", s[i]) == NULL)
			i++;
		if (i - begin > 2 && strncasecmp(s + begin, "on", 2) == 0)
			return true;
		if (is_word(s + begin, i - begin, "href") ||
			is_word(s + begin, i - begin, "xlink:href"))
			return true;
		if (i < len && (s[i] == '"' || s[i] == '\'')) {
			const char *end = memchr(s + i + 1, s[i], len - i - 1);

			if (end == NULL)
				return true; /* it would swallow the text after it */
			i = (size_t)(end - s);
		}
		i++;
	}
	return false;
}

static bool is_refused(const char *word, size_t name_len, const char *value, size_t len)
{
	if (is_word(word, name_len, "href"))
		return is_script_url(value, len);
	return (is_word(word, name_len, "g_extra") || is_word(word, name_len, "a_extra")) &&
	       extra_runs(value, len);
}

static int add_attr(
	struct uni_name_attrs *a, struct uni_line function, const char *word, size_t len)
{
	const char *eq = memchr(word, '=', len);
	_cleanup_strbuf_ struct uni_strbuf key;
	size_t name = eq != NULL ? (size_t)(eq - word) : 0;
	uint32_t id, value;

	uni_strbuf_init(&key);
	if (eq == NULL)
		return 0;
	if (is_refused(word, name, eq + 1, len - name - 1)) {
		a->refused++;
		return 0;
	}
	uni_strbuf_add(&key, function.s, function.len);
	uni_strbuf_addc(&key, '\t');
	uni_strbuf_add(&key, word, name);
	id = uni_strtab_add(a->text, key.s, key.len);
	value = uni_strtab_add(a->text, eq + 1, len - name - 1);
	if (uni_strbuf_failed(&key) || id == UNI_STR_NONE || value == UNI_STR_NONE)
		return -UNI_ENOMEM;
	while (a->value.nr <= id) {
		if (!uni_vec_push(&a->value, UNI_STR_NONE))
			return -UNI_ENOMEM;
	}
	a->value.v[id] = value;
	return 0;
}

static int add_attrs(struct uni_name_attrs *a, struct uni_line l)
{
	const char *tab = memchr(l.s, '\t', l.len);
	struct uni_line function = { l.s, tab != NULL ? (size_t)(tab - l.s) : 0 };
	int rc = 0;

	for (size_t pos = function.len + 1; tab != NULL && rc == 0 && pos <= l.len;) {
		const char *end = memchr(l.s + pos, '\t', l.len - pos);
		size_t len = end != NULL ? (size_t)(end - (l.s + pos)) : l.len - pos;

		rc = add_attr(a, function, l.s + pos, len);
		pos += len + 1;
	}
	return rc;
}

int uni_name_attrs_open(const char *path, struct uni_name_attrs **ret, struct uni_err *err)
{
	struct uni_name_attrs *a = calloc(1, sizeof(*a));
	_cleanup_free_ char *data = NULL;
	size_t size = 0, pos = 0;
	struct uni_line l;
	int rc = uni_read_file(path, FILE_MAX_BYTES, &data, &size, err);

	if (rc == 0 && a != NULL)
		a->text = uni_strtab_create();
	if (rc == 0 && (a == NULL || a->text == NULL))
		rc = uni_err_nomem(err);
	while (rc == 0 && uni_line_next(data, size, &pos, &l)) {
		if (add_attrs(a, l) != 0)
			rc = uni_err_nomem(err);
	}
	if (rc != 0) {
		uni_name_attrs_close(a);
		return rc;
	}
	*ret = a;
	return 0;
}

const char *uni_name_attr(const struct uni_name_attrs *a, const char *function, const char *name)
{
	_cleanup_strbuf_ struct uni_strbuf key;
	bool known = false;
	uint32_t id;

	uni_strbuf_init(&key);
	if (a == NULL)
		return NULL;
	for (size_t i = 0; i < uni_array_len(attr_names); i++)
		known = known || strcmp(attr_names[i], name) == 0;
	uni_strbuf_addf(&key, "%s\t%s", function, name);
	id = uni_strtab_find(a->text, key.s, key.len);
	if (!known || id == UNI_STR_NONE || id >= a->value.nr || a->value.v[id] == UNI_STR_NONE)
		return NULL;
	return uni_strtab_get(a->text, a->value.v[id]);
}

uint64_t uni_name_attrs_refused(const struct uni_name_attrs *a)
{
	return a->refused;
}

void uni_name_attrs_close(struct uni_name_attrs *a)
{
	if (a == NULL)
		return;
	uni_strtab_destroy(a->text);
	uni_vec_free(&a->value);
	free(a);
}
