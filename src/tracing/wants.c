/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/wants.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

#define HOW "write FUNCTION, or FUNCTION(ARGUMENT:s) for the text behind an argument"

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " ");
}

/* The digits at *at, which then stands behind them. */
static bool take_number(const char **at, unsigned most, unsigned *ret)
{
	unsigned v = 0;
	const char *s = *at;

	for (; isdigit((unsigned char)*s); s++) {
		v = v * 10 + (unsigned)(*s - '0');
		if (v > most)
			return false;
	}
	if (s == *at)
		return false;
	*at = s;
	*ret = v;
	return true;
}

/* ARGUMENT in front of the colon. */
static bool take_argument(const char **at, struct uni_trace_want_text *ret)
{
	size_t len = strcspn(*at, ":,) ");
	unsigned number;

	if (isdigit((unsigned char)**at)) {
		if (!take_number(at, UNI_TRACE_ARGS, &number) || number == 0)
			return false;
		ret->arg = (uint8_t)(number - 1);
		return true;
	}
	if (len == 0 || len >= sizeof(ret->param))
		return false;
	memcpy(ret->param, *at, len);
	ret->param[len] = '\0';
	*at += len;
	return true;
}

/* "path:s", "1:s200", "buf:b" */
static bool take_text(const char **at, struct uni_trace_want_text *ret)
{
	unsigned bytes = UNI_TRACE_WANT_BYTES;

	*ret = (struct uni_trace_want_text){ 0 };
	if (!take_argument(at, ret))
		return false;
	if ((*at)[0] != ':' || ((*at)[1] != 's' && (*at)[1] != 'b'))
		return false;
	ret->is_buffer = (*at)[1] == 'b';
	*at += 2;
	if (isdigit((unsigned char)**at) &&
		(!take_number(at, UNI_TRACE_TEXT_MAX, &bytes) || bytes == 0))
		return false;
	ret->bytes = (uint16_t)bytes;
	*at = skip_blanks(*at);
	return true;
}

int uni_trace_want_parse(const char *text, struct uni_trace_want *ret, struct uni_err *err)
{
	size_t len = strcspn(text, "(");
	const char *at = text + len;

	*ret = (struct uni_trace_want){ 0 };
	if (len == 0 || len >= sizeof(ret->function))
		return uni_err_set(err, UNI_EUSAGE, "--args %s: " HOW, text);
	memcpy(ret->function, text, len);
	if (*at == '\0')
		return 0;
	do {
		at = skip_blanks(at + 1);
		if (ret->nr == UNI_TRACE_ARGS || !take_text(&at, &ret->text[ret->nr]))
			return uni_err_set(err, UNI_EUSAGE,
				"--args %s: " HOW " (by its name, or its number from 1 to %d; s: "
				"text, b: bytes; then at most %d bytes)",
				text, UNI_TRACE_ARGS, UNI_TRACE_TEXT_MAX);
		ret->nr++;
	} while (*at == ',');
	if (strcmp(at, ")") != 0)
		return uni_err_set(err, UNI_EUSAGE, "--args %s: " HOW, text);
	return 0;
}

bool uni_trace_wants_match(const struct uni_trace_want *want, size_t nr, const char *function)
{
	for (size_t i = 0; i < nr; i++) {
		if (uni_glob_match(want[i].function, function))
			return true;
	}
	return false;
}

bool uni_trace_wants_name(const struct uni_trace_want *want, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		for (unsigned k = 0; k < want[i].nr; k++) {
			if (want[i].text[k].param[0] != '\0')
				return true;
		}
	}
	return false;
}

bool uni_trace_wants_text(const struct uni_trace_want *want, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (want[i].nr != 0)
			return true;
	}
	return false;
}

/* Its register; -1: it has none, or there is no such parameter. */
static int register_of(const struct uni_trace_want_text *t, const struct uni_params *p)
{
	if (t->param[0] == '\0')
		return t->arg;
	for (size_t i = 0; p != NULL && i < p->nr; i++) {
		if (strcmp(p->param[i].name, t->param) == 0)
			return p->param[i].reg < UNI_TRACE_ARGS ? p->param[i].reg : -1;
	}
	return -1;
}

static int add_texts(const struct uni_trace_want *w, const char *function,
	const struct uni_params *p, struct uni_trace_text_rule *ret, struct uni_err *err)
{
	bool is_exact = strpbrk(w->function, "*?") == NULL;

	for (unsigned i = 0; i < w->nr; i++) {
		const struct uni_trace_want_text *t = &w->text[i];
		int reg = register_of(t, p);

		if (reg < 0 && is_exact)
			return uni_err_set(err, UNI_ENOENT,
				"--args: %s has no parameter '%s' in a general register, as far "
				"as the image's debug data tells; give its number: %s(1:s)",
				function, t->param, function);
		if (reg < 0)
			continue;
		*(t->is_buffer ? &ret->buffers : &ret->arguments) |= (uint8_t)(1u << reg);
		ret->bytes = uni_max(ret->bytes, t->bytes);
	}
	return 0;
}

int uni_trace_wants_rule(const struct uni_trace_want *want, size_t nr, const char *function,
	struct uni_debug *debug, uint64_t svma, struct uni_trace_text_rule *ret,
	struct uni_err *err)
{
	struct uni_params params;
	bool is_known = debug != NULL && uni_debug_params(debug, svma, &params) == 0;
	int rc = 0;

	*ret = (struct uni_trace_text_rule){ 0 };
	for (size_t i = 0; rc == 0 && i < nr; i++) {
		if (uni_glob_match(want[i].function, function))
			rc = add_texts(&want[i], function, is_known ? &params : NULL, ret, err);
	}
	ret->arguments &= (uint8_t)~ret->buffers;
	return rc;
}

static int by_function(const void *a, const void *b)
{
	const struct uni_trace_text_rule *p = a, *q = b;

	return p->function < q->function ? -1 : p->function > q->function;
}

void uni_trace_rules_sort(struct uni_trace_rules *rules)
{
	if (rules->all.nr != 0)
		qsort(rules->all.v, rules->all.nr, sizeof(*rules->all.v), by_function);
}
