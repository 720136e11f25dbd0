/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/xml.h"

uint32_t uni_utf8_next(const char **s, const char *end)
{
	static const uint32_t min[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	const uint8_t *p = (const uint8_t *)*s;
	size_t left = (size_t)(end - *s), n;
	uint32_t cp;

	if (left == 0)
		return 0;
	*s += 1;
	if (p[0] < 0x80)
		return p[0] != 0 ? p[0] : 0xfffd;
	n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	cp = p[0] & (0xffu >> (n + 1));
	if (p[0] < 0xc2 || p[0] > 0xf4 || n > left)
		return 0xfffd;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0xfffd;
		cp = cp << 6 | (p[i] & 0x3f);
	}
	if (cp < min[n] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0xfffd;
	*s += n - 1;
	return cp;
}

static bool xml_char(uint32_t cp)
{
	if (cp < 0x20)
		return cp == '\t' || cp == '\n' || cp == '\r';
	return cp != 0xfffe && cp != 0xffff;
}

static void put_other(
	struct uni_sink *out, uint32_t cp, const char *from, const char *to, bool ascii)
{
	if (ascii)
		uni_sink_printf(out, "&#x%x;", (unsigned)cp);
	else if (cp == 0xfffd)
		uni_sink_puts(out, "\xef\xbf\xbd");
	else
		uni_sink_write(out, from, (size_t)(to - from));
}

void uni_xml_text(struct uni_sink *out, const char *s, size_t len, bool ascii)
{
	const char *end = s + len;

	while (s < end) {
		const char *from = s;
		uint32_t cp = uni_utf8_next(&s, end);

		if (!xml_char(cp))
			cp = 0xfffd;
		if (cp == '&')
			uni_sink_puts(out, "&amp;");
		else if (cp == '<')
			uni_sink_puts(out, "&lt;");
		else if (cp == '>')
			uni_sink_puts(out, "&gt;");
		else if (cp == '"')
			uni_sink_puts(out, "&quot;");
		else if (cp == '\'')
			uni_sink_puts(out, "&#39;");
		else if (cp < 0x80)
			uni_sink_putc(out, (char)cp);
		else
			put_other(out, cp, from, s, ascii);
	}
}
