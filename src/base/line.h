/* SPDX-License-Identifier: BSD-2-Clause */
/* Text line by line, without copying it. */
#ifndef UNI_BASE_LINE_H
#define UNI_BASE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct uni_line {
	const char *s; /* borrowed; no newline, no carriage return before it */
	size_t len;
};

/* The next line at *pos; false at the end. */
static inline bool uni_line_next(const char *data, size_t size, size_t *pos, struct uni_line *ret)
{
	const char *s = data + *pos, *end;
	size_t left = size - *pos;

	if (left == 0)
		return false;
	end = memchr(s, '\n', left);
	ret->s = s;
	ret->len = end != NULL ? (size_t)(end - s) : left;
	*pos += end != NULL ? ret->len + 1 : left;
	if (ret->len != 0 && s[ret->len - 1] == '\r')
		ret->len--;
	return true;
}

#endif
