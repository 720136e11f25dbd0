/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* Length of the valid UTF-8 sequence at p (RFC 3629), with its code point, or 0. */
static size_t utf8_decode(const uint8_t *p, size_t len, uint32_t *cp_ret)
{
	size_t n;
	uint32_t cp, min;

	if (p[0] < 0x80) {
		*cp_ret = p[0];
		return 1;
	}
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		n = 2;
		cp = p[0] & 0x1f;
		min = 0x80;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		n = 3;
		cp = p[0] & 0x0f;
		min = 0x800;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		n = 4;
		cp = p[0] & 0x07;
		min = 0x10000;
	} else {
		return 0;
	}
	if (n > len)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (p[i] & 0x3f);
	}
	if (cp < min || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	*cp_ret = cp;
	return n;
}

static bool is_allowed(uint32_t cp)
{
	if (cp < 0x20 || (cp >= 0x7f && cp <= 0x9f))
		return false;
	/* Bidirectional controls and line separators can make a name read as another. */
	if ((cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069))
		return false;
	return cp != 0x2028 && cp != 0x2029 && cp != 0x200e && cp != 0x200f && cp != 0xfeff;
}

size_t uni_text_clean(char *out, size_t cap, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t o = 0, i = 0;

	while (i < len && p[i] != 0) {
		uint32_t cp = 0;
		size_t n = utf8_decode(p + i, len - i, &cp);

		if (n != 0 && is_allowed(cp)) {
			if (n > cap - 1 - o)
				break;
			memcpy(out + o, p + i, n);
			o += n;
			i += n;
			continue;
		}
		if (cap - 1 - o < 1)
			break;
		if (cap - 1 - o >= 3) {
			memcpy(out + o, "\xef\xbf\xbd", 3);
			o += 3;
		} else {
			out[o++] = '?';
		}
		i += n != 0 ? n : 1;
	}
	out[o] = '\0';
	return o;
}

bool uni_parse_u64(const char *s, uint64_t *ret)
{
	bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	const char *digits = hex ? s + 2 : s;
	unsigned long long v;
	char *end;

	if (!(hex ? isxdigit((unsigned char)digits[0]) : isdigit((unsigned char)digits[0])))
		return false;
	errno = 0;
	v = strtoull(digits, &end, hex ? 16 : 10);
	if (errno != 0 || *end != '\0')
		return false;
	*ret = v;
	return true;
}

bool uni_parse_double(const char *s, double *ret)
{
	char *end;
	double v;

	/* No sign, no blanks, no "inf", "nan" or hexadecimal: digits and one point only. */
	if (s[0] == '\0' || strspn(s, "0123456789.") != strlen(s))
		return false;
	errno = 0;
	v = strtod(s, &end);
	if (errno != 0 || *end != '\0' || end == s)
		return false;
	*ret = v;
	return true;
}

bool uni_parse_time(const char *s, double bare_ns, uint64_t *ret_ns)
{
	static const struct {
		char name[3];
		double ns;
	} unit[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	const size_t len = strspn(s, "0123456789.");
	double n, ns = s[len] == '\0' ? bare_ns : 0;
	char number[32];

	if (len >= sizeof(number))
		return false;
	memcpy(number, s, len);
	number[len] = '\0';
	for (size_t i = 0; i < uni_array_len(unit); i++) {
		if (strcmp(s + len, unit[i].name) == 0)
			ns = unit[i].ns;
	}
	if (!uni_parse_double(number, &n) || !(n * ns >= 1) || n * ns > 1e18)
		return false;
	*ret_ns = (uint64_t)(n * ns);
	return true;
}

bool uni_parse_size(const char *s, uint64_t *ret)
{
	char digits[32];
	size_t n = strlen(s);
	uint64_t v, mul = 1;

	if (n == 0 || n >= sizeof(digits))
		return false;
	memcpy(digits, s, n + 1);
	switch (digits[n - 1]) {
	case 'K':
	case 'k':
		mul = 1024;
		break;
	case 'M':
	case 'm':
		mul = 1024 * 1024;
		break;
	case 'G':
	case 'g':
		mul = 1024 * 1024 * 1024;
		break;
	default:
		break;
	}
	if (mul != 1)
		digits[n - 1] = '\0';
	return uni_parse_u64(digits, &v) && !__builtin_mul_overflow(v, mul, ret);
}

/* One [set] of a glob; *p points behind '['. */
static bool glob_set(const char **p, char c)
{
	bool negate = **p == '!' || **p == '^', hit = false;
	const char *s = negate ? *p + 1 : *p;

	for (bool first = true; *s != '\0' && (first || *s != ']'); first = false) {
		char lo = *s++, hi = lo;

		if (s[0] == '-' && s[1] != ']' && s[1] != '\0') {
			hi = s[1];
			s += 2;
		}
		if (c >= lo && c <= hi)
			hit = true;
	}
	if (*s == ']')
		s++;
	*p = s;
	return hit != negate;
}

bool uni_glob_match(const char *glob, const char *name)
{
	const char *star = NULL, *star_name = NULL;

	/* Backtracks to the last '*' only: enough for globs, and never exponential. */
	for (;;) {
		if (*glob == '*') {
			star = ++glob;
			star_name = name;
			continue;
		}
		if (*name == '\0' && *glob == '\0')
			return true;
		if (*name != '\0' && *glob != '\0') {
			const char *g = glob + 1;
			bool hit = *glob == '?' || *glob == *name;

			if (*glob == '[')
				hit = glob_set(&g, *name);
			if (hit) {
				glob = g;
				name++;
				continue;
			}
		}
		if (star == NULL || *star_name == '\0')
			return false;
		glob = star;
		name = ++star_name;
	}
}
