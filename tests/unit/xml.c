/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes into code points (Unicode, table 3-7) and into XML 1.0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/checked.h"
#include "base/strbuf.h"
#include "format/xml.h"

#define BAD 0xfffdu

static uint32_t first_of(const char *s, size_t *used_ret)
{
	const char *at = s;
	uint32_t cp = uni_utf8_next(&at, s + strlen(s));

	*used_ret = (size_t)(at - s);
	return cp;
}

/* The first and the last of each length, and their neighbours that are none. */
static void code_points(void **state)
{
	static const struct {
		const char *bytes;
		uint32_t cp;
		size_t used;
	} row[] = {
		{ "\x7f", 0x7f, 1 },
		{ "\xc2\x80", 0x80, 2 },
		{ "\xdf\xbf", 0x7ff, 2 },
		{ "\xe0\xa0\x80", 0x800, 3 },
		{ "\xed\x9f\xbf", 0xd7ff, 3 },
		{ "\xee\x80\x80", 0xe000, 3 },
		{ "\xef\xbf\xbf", 0xffff, 3 },
		{ "\xf0\x90\x80\x80", 0x10000, 4 },
		{ "\xf4\x8f\xbf\xbf", 0x10ffff, 4 },
		{ "\x80", BAD, 1 },	    /* no first byte */
		{ "\xc1\xbf", BAD, 1 },	    /* too long for U+007F */
		{ "\xe0\x9f\xbf", BAD, 1 }, /* for U+07FF */
		{ "\xed\xa0\x80", BAD, 1 }, /* a half of a pair */
		{ "\xed\xbf\xbf", BAD, 1 },
		{ "\xf0\x8f\xbf\xbf", BAD, 1 }, /* for U+FFFF */
		{ "\xf4\x90\x80\x80", BAD, 1 }, /* above U+10FFFF */
		{ "\xf5\x80\x80\x80", BAD, 1 },
		{ "\xe2\x82", BAD, 1 }, /* cut short */
		{ "\xe2\x82q", BAD, 1 },
	};

	for (size_t i = 0; i < uni_array_len(row); i++) {
		size_t used;

		assert_int_equal(first_of(row[i].bytes, &used), row[i].cp);
		assert_int_equal(used, row[i].used);
	}
}

static void expect_text(const char *in, bool ascii, const char *want)
{
	struct uni_strbuf text;
	struct uni_sink *out;

	uni_strbuf_init(&text);
	assert_int_equal(uni_sink_open_strbuf(&text, &out), 0);
	uni_xml_text(out, in, strlen(in), ascii);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	assert_string_equal(text.s, want);
	uni_strbuf_deinit(&text);
}

static void text_is_no_markup(void **state)
{
	expect_text("a<b>&\"c'", false, "a&lt;b&gt;&amp;&quot;c&#39;");
	expect_text("\t\n\r ~\x7f", false, "\t\n\r ~\x7f");
	expect_text("\x1f\x0b\xff", false, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	expect_text("\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd", true, "&#xfffd;&#xfffd;&#xfffd;");
	expect_text("\xc2\x80\xf0\x90\x80\x80", false, "\xc2\x80\xf0\x90\x80\x80");
	expect_text("\x7f\xc2\x80\xf0\x90\x80\x80", true, "\x7f&#x80;&#x10000;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_points),
		cmocka_unit_test(text_is_no_markup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
