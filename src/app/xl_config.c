/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/xl_config.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"

#define CONFIG_MAX ((size_t)1 << 20)

/* The rest of the text. */
struct text {
	const char *s;
	size_t len;
};

static void skip_text(struct text *t, size_t n)
{
	t->s += n;
	t->len -= n;
}

static void skip_blanks(struct text *t)
{
	while (t->len != 0 && (*t->s == ' ' || *t->s == '\t' || *t->s == '\r'))
		skip_text(t, 1);
}

static struct text take_word(struct text *t)
{
	struct text word = { t->s, 0 };

	while (t->len != 0 && (isalnum((unsigned char)*t->s) || *t->s == '_')) {
		skip_text(t, 1);
		word.len++;
	}
	return word;
}

/* "..." or '...', on one line; returns the text inside, unchanged. */
static bool take_string(struct text *t, struct text *ret)
{
	char quote;

	if (t->len == 0 || (*t->s != '"' && *t->s != '\''))
		return false;
	quote = *t->s;
	skip_text(t, 1);
	*ret = (struct text){ t->s, 0 };
	while (t->len != 0 && *t->s != '\n') {
		if (*t->s == quote) {
			skip_text(t, 1);
			return true;
		}
		skip_text(t, 1);
		ret->len++;
	}
	return false;
}

/* Skips to after the end of the statement; strings and comments may contain characters that end
 * one. */
static void skip_statement(struct text *t)
{
	struct text ignored;

	while (t->len != 0 && *t->s != '\n' && *t->s != ';') {
		if (*t->s == '#') {
			while (t->len != 0 && *t->s != '\n')
				skip_text(t, 1);
			break;
		}
		if (!take_string(t, &ignored) && t->len != 0 && *t->s != '\n')
			skip_text(t, 1);
	}
	if (t->len != 0)
		skip_text(t, 1);
}

static bool word_is(struct text word, const char *name)
{
	return word.len == strlen(name) && memcmp(word.s, name, word.len) == 0;
}

void uni_xl_config_parse(const char *data, size_t size, struct uni_xl_config *ret)
{
	struct text t = { data, size }, key, value;

	memset(ret, 0, sizeof(*ret));
	while (t.len != 0) {
		skip_blanks(&t);
		key = take_word(&t);
		skip_blanks(&t);
		if (t.len != 0 && *t.s == '=') {
			skip_text(&t, 1);
			skip_blanks(&t);
			if (word_is(key, "name") && take_string(&t, &value))
				(void)uni_text_clean(
					ret->name, sizeof(ret->name), value.s, value.len);
			else if (word_is(key, "kernel") && take_string(&t, &value))
				(void)uni_text_clean(
					ret->kernel, sizeof(ret->kernel), value.s, value.len);
		}
		skip_statement(&t);
	}
}

int uni_xl_config_load(const char *path, struct uni_xl_config *ret, struct uni_err *err)
{
	_cleanup_free_ char *data = NULL;
	size_t size;
	int rc = uni_read_regular(path, CONFIG_MAX, &data, &size, err);

	if (rc != 0)
		return rc;
	uni_xl_config_parse(data, size, ret);
	if (ret->name[0] == '\0')
		return uni_err_set(err, UNI_EFORMAT,
			"%s has no line such as name = \"app\": this is no configuration of a "
			"domain",
			path);
	return 0;
}

static void write_string(const char *key, const char *value, struct uni_strbuf *ret)
{
	uni_strbuf_addf(ret, "%s = \"", key);
	for (; *value != '\0'; value++) {
		if (*value == '"' || *value == '\\')
			uni_strbuf_addc(ret, '\\');
		uni_strbuf_addc(ret, *value == '\n' ? ' ' : *value);
	}
	uni_strbuf_adds(ret, "\"\n");
}

void uni_xl_config_write(
	const struct uni_xl_config *c, const char *extra, uint64_t mem_mib, struct uni_strbuf *ret)
{
	write_string("name", c->name, ret);
	write_string("kernel", c->kernel, ret);
	uni_strbuf_addf(ret, "type = \"pvh\"\nmemory = %" PRIu64 "\nvcpus = 1\n", mem_mib);
	if (extra != NULL)
		write_string("extra", extra, ret);
	uni_strbuf_adds(ret, "on_reboot = \"destroy\"\n");
}
