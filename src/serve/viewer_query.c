/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/text.h"
#include "serve/viewer.h"

#define DIGITS_MAX 20 /* of 64 bits */

/* Parses "123" and the '/' after it, or the end; plain decimal. */
static bool parse_number(const char **text, uint64_t *ret)
{
	size_t len = strcspn(*text, "/");
	char digits[DIGITS_MAX + 1];

	if (len == 0 || len > DIGITS_MAX || strspn(*text, "0123456789") != len)
		return false;
	memcpy(digits, *text, len);
	digits[len] = '\0';
	*text += len;
	if (**text == '/')
		++*text;
	return uni_parse_u64(digits, ret);
}

/* Parses so many numbers with one '/' between them. */
static bool parse_numbers(const char *text, uint64_t *ret, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (!parse_number(&text, &ret[i]) || (text[0] == '\0') != (i + 1 == nr))
			return false;
	}
	return text[-1] != '/';
}

bool uni_viewer_parse_rows(const char *text, struct uni_viewer_rows *ret)
{
	uint64_t v[5];

	if (!parse_numbers(text, v, 5) || v[0] >= v[1] || v[2] == 0 || v[2] > UNI_VIEWER_PX_MAX ||
		v[3] > UINT32_MAX || v[4] > UNI_VIEWER_ROWS_MAX)
		return false;
	*ret = (struct uni_viewer_rows){ v[0], v[1], (uint32_t)v[2], (uint32_t)v[3],
		(uint32_t)v[4] };
	return true;
}

/* Parses a number, or "all". */
static bool one_or_all(const char **text, uint64_t max, int64_t *ret)
{
	uint64_t v;

	if (strncmp(*text, "all", 3) == 0 && ((*text)[3] == '/' || (*text)[3] == '\0')) {
		*text += (*text)[3] == '/' ? 4 : 3;
		*ret = -1;
		return true;
	}
	if (!parse_number(text, &v) || v > max)
		return false;
	*ret = (int64_t)v;
	return true;
}

bool uni_viewer_parse_sums(const char *text, struct uni_viewer_sums *ret)
{
	uint64_t t0, t1;
	int64_t thread, cpu;

	if (!parse_number(&text, &t0) || !parse_number(&text, &t1) ||
		!one_or_all(&text, UINT32_MAX, &thread) || text[-1] != '/' ||
		!one_or_all(&text, UINT16_MAX, &cpu) || text[0] != '\0' || text[-1] == '/' ||
		(t0 >= t1 && t1 != 0) || (t1 == 0 && t0 != 0))
		return false;
	*ret = (struct uni_viewer_sums){ t0, t1, thread, cpu };
	return true;
}
