/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Shared and never written: every writer reserves memory of its own first. */
static char empty[1];

void uni_strbuf_init(struct uni_strbuf *b)
{
	*b = (struct uni_strbuf){ .s = empty };
}

void uni_strbuf_deinit(struct uni_strbuf *b)
{
	if (b->cap != 0)
		free(b->s);
	uni_strbuf_init(b);
}

void uni_strbuf_reset(struct uni_strbuf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->cap != 0)
		b->s[0] = '\0';
}

bool uni_strbuf_reserve(struct uni_strbuf *b, size_t extra)
{
	size_t want, cap;
	char *s;

	if (b->failed)
		return false;
	if (__builtin_add_overflow(b->len, extra, &want) || __builtin_add_overflow(want, 1, &want))
		goto fail;
	if (want <= b->cap)
		return true;
	cap = b->cap < 64 ? 64 : b->cap;
	while (cap < want) {
		if (__builtin_mul_overflow(cap, (size_t)2, &cap))
			goto fail;
	}
	s = realloc(b->cap != 0 ? b->s : NULL, cap);
	if (s == NULL)
		goto fail;
	if (b->cap == 0)
		s[0] = '\0';
	b->s = s;
	b->cap = cap;
	return true;
fail:
	b->failed = true;
	return false;
}

void uni_strbuf_add(struct uni_strbuf *b, const void *data, size_t len)
{
	if (len == 0 || !uni_strbuf_reserve(b, len))
		return;
	memcpy(b->s + b->len, data, len);
	b->len += len;
	b->s[b->len] = '\0';
}

void uni_strbuf_adds(struct uni_strbuf *b, const char *s)
{
	uni_strbuf_add(b, s, strlen(s));
}

void uni_strbuf_addc(struct uni_strbuf *b, char c)
{
	uni_strbuf_add(b, &c, 1);
}

void uni_strbuf_addf(struct uni_strbuf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		b->failed = true;
	else if (uni_strbuf_reserve(b, (size_t)n)) {
		(void)vsnprintf(b->s + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

void uni_strbuf_quote(struct uni_strbuf *b, const void *text, size_t len, size_t max)
{
	static const char named[] = "\a\b\t\n\v\f\r\"\\", letters[] = "abtnvfr\"\\";
	const uint8_t *s = text;
	size_t n = len < max ? len : max;

	uni_strbuf_addc(b, '"');
	for (size_t i = 0; i < n; i++) {
		const char *at = s[i] != '\0' ? strchr(named, s[i]) : NULL;
		bool digit = i + 1 < n && s[i + 1] >= '0' && s[i + 1] <= '7';

		if (at != NULL)
			uni_strbuf_addf(b, "\\%c", letters[at - named]);
		else if (s[i] >= ' ' && s[i] < 0x7f)
			uni_strbuf_addc(b, (char)s[i]);
		else
			uni_strbuf_addf(b, digit ? "\\%03o" : "\\%o", s[i]);
	}
	uni_strbuf_addc(b, '"');
	if (len > max)
		uni_strbuf_adds(b, "...");
}

char *uni_strbuf_detach(struct uni_strbuf *b)
{
	char *s = NULL;

	if (!b->failed && uni_strbuf_reserve(b, 0)) {
		s = b->s;
		uni_strbuf_init(b);
	} else {
		uni_strbuf_deinit(b);
	}
	return s;
}
