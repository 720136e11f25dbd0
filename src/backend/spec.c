/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/spec.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const char example[] = "a target looks like kvm:pid=4121 or gdb:unix=/run/q.sock";

/*
 * Cuts one value off in place at its ',', and turns ",," into ','. Returns the rest, or NULL at the
 * end.
 */
static char *cut_value(char *s)
{
	char *out = s;

	for (; *s != '\0'; s++) {
		if (*s == ',' && s[1] != ',') {
			*out = '\0';
			return s + 1;
		}
		if (*s == ',')
			s++;
		*out++ = *s;
	}
	*out = '\0';
	return NULL;
}

static int add_pair(struct uni_spec *ret, char *key, struct uni_err *err)
{
	char *eq = strchr(key, '=');

	if (eq == NULL || eq == key)
		return uni_err_set(
			err, UNI_EUSAGE, "target %s: expected key=value; %s", ret->text, example);
	*eq = '\0';
	if (uni_spec_get(ret, key) != NULL)
		return uni_err_set(err, UNI_EUSAGE, "target %s: %s is given twice", ret->text, key);
	if (ret->nr == UNI_SPEC_KEYS)
		return uni_err_set(err, UNI_EUSAGE, "target %s: too many keys", ret->text);
	ret->kv[ret->nr].key = key;
	ret->kv[ret->nr++].value = eq + 1;
	return 0;
}

int uni_spec_parse(const char *text, struct uni_spec *ret, struct uni_err *err)
{
	size_t len = strlen(text);
	char *colon, *rest;

	memset(ret, 0, sizeof(*ret));
	(void)uni_text_clean(ret->text, sizeof(ret->text), text, len);
	if (len >= sizeof(ret->buf))
		return uni_err_set(err, UNI_EUSAGE, "the target is too long; %s", example);
	memcpy(ret->buf, text, len + 1);
	colon = strchr(ret->buf, ':');
	if (colon == NULL || colon == ret->buf)
		return uni_err_set(
			err, UNI_EUSAGE, "target %s has no scheme; %s", ret->text, example);
	*colon = '\0';
	ret->scheme = ret->buf;
	for (rest = colon + 1; rest != NULL && *rest != '\0';) {
		char *pair = rest;
		int rc;

		rest = cut_value(pair);
		rc = add_pair(ret, pair, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

const char *uni_spec_get(const struct uni_spec *s, const char *key)
{
	for (size_t i = 0; i < s->nr; i++) {
		if (strcmp(s->kv[i].key, key) == 0)
			return s->kv[i].value;
	}
	return NULL;
}

int uni_spec_get_u64(const struct uni_spec *s, const char *key, uint64_t *ret, struct uni_err *err)
{
	const char *v = uni_spec_get(s, key);

	if (v == NULL)
		return -UNI_ENOENT;
	if (!uni_parse_u64(v, ret))
		return uni_err_set(err, UNI_EUSAGE, "target %s: %s is not a number", s->text, key);
	return 0;
}

int uni_spec_check_keys(const struct uni_spec *s, const char *allowed, struct uni_err *err)
{
	for (size_t i = 0; i < s->nr; i++) {
		size_t len = strlen(s->kv[i].key);
		const char *p = allowed;
		bool ok = false;

		while (*p != '\0' && !ok) {
			size_t n = strcspn(p, " ");

			ok = n == len && memcmp(p, s->kv[i].key, n) == 0;
			p += n;
			p += strspn(p, " ");
		}
		if (!ok)
			return uni_err_set(err, UNI_EUSAGE,
				"target %s: unknown key %s; %s: takes: %s", s->text, s->kv[i].key,
				s->scheme, allowed);
	}
	return 0;
}

int uni_spec_add(struct uni_spec *s, const char *key, const char *value, struct uni_err *err)
{
	char text[sizeof(s->text)];
	int n = snprintf(text, sizeof(text), "%s,%s=%s", s->text, key, value);

	if (n < 0 || (size_t)n >= sizeof(text))
		return uni_err_set(err, UNI_EUSAGE, "the target is too long");
	return uni_spec_parse(text, s, err);
}
