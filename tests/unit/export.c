/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "format/export.h"
#include "format/svg/colour.h"
#include "format/xml.h"

static void add(struct uni_profile *p, const char *stack, double value, double value2)
{
	uint32_t frames[64];
	size_t nr = 0;

	while (*stack != '\0') {
		size_t len = strcspn(stack, "|");

		frames[nr++] = uni_profile_frame_named(p, stack, len, UNI_FK_GUEST);
		stack += len + (stack[len] == '|');
	}
	assert_int_equal(uni_profile_add(p, frames, nr, value, value2), 0);
}

/* The text; the caller frees. Fails the test unless rc is what the exporter gives. */
static char *export_rc(const struct uni_profile *p, const char *format,
	const struct uni_export_opt *opts, size_t nr, int rc, struct uni_err *err)
{
	struct uni_view v = { .profile = p };
	struct uni_strbuf b;
	struct uni_sink *out;

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_exporter_by_name(format)->write(&v, opts, nr, out, err), rc);
	if (rc != 0)
		assert_int_equal(uni_sink_bytes(out), 0);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	uni_strbuf_addc(&b, '\n');
	return uni_strbuf_detach(&b);
}

static char *export_to(
	const struct uni_profile *p, const char *format, const char *name, const char *value)
{
	struct uni_export_opt opt = { name, value };
	struct uni_err err = { 0 };

	return export_rc(p, format, &opt, name != NULL, 0, &err);
}

static void has(const char *text, const char *part)
{
	if (text == NULL || strstr(text, part) == NULL)
		fail_msg("no \"%s\" in:\n%s", part, text != NULL ? text : "(nothing)");
}

static void has_not(const char *text, const char *part)
{
	assert_non_null(text);
	if (text != NULL && strstr(text, part) != NULL)
		fail_msg("\"%s\" in:\n%s", part, text);
}

static void every_exporter_is_complete(void **state)
{
	for (size_t i = 0; uni_exporters[i] != NULL; i++) {
		const struct uni_exporter *e = uni_exporters[i];

		assert_ptr_equal(uni_exporter_by_name(e->name), e);
		/* Into a file, or a folder. */
		assert_true((e->write == NULL) != (e->write_folder == NULL));
		assert_true(e->ext != NULL && e->mime != NULL && e->summary != NULL);
		assert_true(e->needs != 0);
		for (const struct uni_export_optdef *o = e->options; o != NULL && o->name != NULL;
			o++)
			assert_non_null(o->help);
	}
	assert_null(uni_exporter_by_name("nonsense"));
}

static void folded_escapes(void **state)
{
	struct uni_profile *p = uni_profile_create();
	char *s;

	add(p, "a;b|c 3", 7, 0); /* one frame "a;b", a leaf that ends in a number */
	add(p, "c 3|x", 1.25, 0);
	add(p, "new\nline", 2, 0);
	add(p, "v 1.5", 2, 0);
	add(p, "3", 1, 0);
	add(p, "", 4, 0);
	assert_int_equal(uni_profile_finish(p), 0);
	s = export_to(p, "folded", NULL, NULL);
	assert_string_equal(s, "[empty] 4\n3 1\na:b;c_3 7\nc 3;x 1.25\nnew line 2\nv_1.5 2\n\n");
	free(s);
	uni_profile_destroy(p);
}

static void folded_of_a_differential(void **state)
{
	struct uni_profile *p = uni_profile_create();
	char *s;

	add(p, "a|b", 7, 3);
	add(p, "a|c", 0, 2);
	assert_int_equal(uni_profile_finish(p), 0);
	s = export_to(p, "folded", NULL, NULL);
	assert_string_equal(s, "a;b 7 3\na;c 0 2\n\n");
	free(s);
	uni_profile_destroy(p);
}

static char *xml(const char *s, size_t len, bool ascii)
{
	struct uni_strbuf b;
	struct uni_sink *out;

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	uni_xml_text(out, s, len, ascii);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	uni_strbuf_addc(&b, '.');
	return uni_strbuf_detach(&b);
}

static void xml_text(void **state)
{
	static const struct {
		const char *in, *want;
		bool ascii;
	} t[] = {
		{ "<a href=\"x\" b='&'>]]>",
			"&lt;a href=&quot;x&quot; b=&#39;&amp;&#39;&gt;]]&gt;" },
		{ "\x01\x1b[", "\xef\xbf\xbd\xef\xbf\xbd[" },
		{ "\xef\xbf\xbf", "\xef\xbf\xbd" }, /* U+FFFF is no XML character */
		{ "\xc3\xa9\xe2\x98\x83", "\xc3\xa9\xe2\x98\x83" },
		{ "\xc3\xa9\xf0\x9f\x94\xa5", "&#xe9;&#x1f525;", true },
		{ "\xff\xc3", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* a surrogate */
		{ "\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd" },
	};

	for (size_t i = 0; i < uni_array_len(t); i++) {
		char *s = xml(t[i].in, strlen(t[i].in), t[i].ascii);

		s[strlen(s) - 1] = '\0';
		assert_string_equal(s, t[i].want);
		free(s);
	}
}

/* The C library's drand48 is the oracle: flamegraph.pl's srand and rand are the same function. */
static void default_colours_are_drand48(void **state)
{
	static const char *const names[] = { "main", "tcp_output", "_[k]", "f_[i]", "a", "" };
	struct uni_colours c = { .palette = uni_palette_by_name("hot") };

	for (size_t i = 0; i < uni_array_len(names); i++) {
		struct uni_rgb got = uni_colour_name(&c, names[i]);
		long sum = 0;
		double v;

		for (const char *s = names[i]; *s != '\0'; s++)
			sum += *s;
		srand48(sum);
		v = drand48();
		assert_int_equal(got.r, 205 + (int)(50 * v));
		assert_int_equal(got.g, (int)(230 * v));
		assert_int_equal(got.b, (int)(55 * v));
	}
}

static void palettes(void **state)
{
	/* The last: srand(233) of Perl, because a name is summed by code points and not by bytes.
	 */
	static const struct {
		const char *palette, *name;
		int r, g, b;
	} t[] = {
		{ "hot", "-", 200, 200, 200 },
		{ "hot", "--", 160, 160, 160 },
		{ "hot", "\xc3\xa9", 208, 15, 3 },
	};
	static const struct {
		const char *palette, *name, *same;
	} chosen[] = { { "java", "std::map", "yellow" }, { "java", "Lorg/x:::y", "green" },
		{ "java", "f_[k]", "orange" }, { "java", "f_[i]", "aqua" }, { "java", "f", "red" },
		{ "perl", "x.pl", "green" }, { "js", "/a/b.js:1", "green" },
		{ "js", "Builtin:x", "aqua" }, { "wakeup", "f", "aqua" }, { "chain", "f", "blue" },
		{ "chain", "f_[w]", "aqua" } };

	for (size_t i = 0; i < uni_array_len(t); i++) {
		struct uni_colours c = { .palette = uni_palette_by_name(t[i].palette) };
		struct uni_rgb got = uni_colour_name(&c, t[i].name);

		assert_int_equal(got.r, t[i].r);
		assert_int_equal(got.g, t[i].g);
		assert_int_equal(got.b, t[i].b);
	}
	for (size_t i = 0; i < uni_array_len(chosen); i++) {
		struct uni_colours a = { .palette = uni_palette_by_name(chosen[i].palette) };
		struct uni_colours b = { .palette = uni_palette_by_name(chosen[i].same) };
		struct uni_rgb x = uni_colour_name(&a, chosen[i].name);
		struct uni_rgb y = uni_colour_name(&b, chosen[i].name);

		assert_memory_equal(&x, &y, sizeof(x));
	}
	for (const char *s = uni_palette_names(); *s != '\0';) {
		char name[16] = "";
		size_t len = strcspn(s, " ");

		memcpy(name, s, len);
		assert_non_null(uni_palette_by_name(name));
		s += len + (s[len] == ' ');
	}
	assert_null(uni_palette_by_name("beige"));
}

static void delta_colours(void **state)
{
	struct uni_rgb up = uni_colour_delta(10, 10, false), half = uni_colour_delta(-5, 10, false);
	struct uni_rgb none = uni_colour_delta(0, 10, false);

	assert_true(up.r == 255 && up.g == 0 && up.b == 0);
	assert_true(half.r == 105 && half.g == 105 && half.b == 255);
	assert_true(none.r == 255 && none.g == 255 && none.b == 255);
}

static struct uni_profile *small(void)
{
	struct uni_profile *p = uni_profile_create();

	add(p, "main|work|<leaf>_[k]", 1234, 0);
	add(p, "main|work", 500, 0);
	add(p, "main|a long name that will not fit anywhere", 20, 0);
	add(p, "tiny", 1, 0);
	assert_int_equal(uni_profile_finish(p), 0);
	return p;
}

static void svg_frames(void **state)
{
	struct uni_profile *p = small();
	char *s = export_to(p, "svg", NULL, NULL);

	has(s, "<title>all (1,755 samples, 100%)</title><rect x=\"0%\" y=\"85\" width=\"100%\"");
	has(s, "<title>main (1,754 samples, 99.94%)</title>");
	/* The suffix is not shown, and markup is text. */
	has(s, "<title>&lt;leaf&gt; (1,234 samples, 70.31%)</title>");
	has(s, ">&lt;leaf&gt;</text>");
	has_not(s, "<leaf>");
	has(s, "fg:x=\"520\" fg:w=\"1234\"");
	has(s, "height=\"134\"");
	has(s, ">Flame Graph</text>");
	has_not(s, "anywhere</text>"); /* 13 pixels are too few for three characters */
	free(s);
	s = export_to(p, "svg", "minwidth", "2%");
	has_not(s, "<title>tiny");
	has_not(s, "a long name");
	has(s, "<title>work");
	free(s);
	s = export_to(p, "svg", "inverted", NULL);
	has(s, ">Icicle Graph</text>");
	has(s, "<title>all (1,755 samples, 100%)</title><rect x=\"0%\" y=\"36\"");
	free(s);
	s = export_to(p, "svg", "reverse", "yes");
	has(s, "<title>work (500 samples, 28.49%)</title>");
	free(s);
	s = export_to(p, "svg", "factor", "2.5");
	has(s, "<title>tiny (2 samples, 0.06%)</title>");
	free(s);
	s = export_to(p, "svg", "encoding", "us-ascii");
	has(s, "<?xml version=\"1.0\" encoding=\"us-ascii\"?>");
	free(s);
	uni_profile_destroy(p);
}

/* As sorted lines of folded stacks: "a;c" is before "ab", which "ac" would not be. */
static void svg_order(void **state)
{
	struct uni_profile *p = uni_profile_create();
	char *s;

	add(p, "ab", 5, 0);
	add(p, "a|c", 10, 0);
	assert_int_equal(uni_profile_finish(p), 0);
	s = export_to(p, "svg", "compat", "yes");
	has(s, "fg:x=\"0\" fg:w=\"10\"");
	has(s, "fg:x=\"10\" fg:w=\"5\"");
	free(s);
	uni_profile_destroy(p);
}

/* Texts of the command line are as hostile as names: they may come from a VM's name. */
static void svg_texts_are_escaped(void **state)
{
	static const char *const options[] = { "title", "subtitle", "notes", "countname",
		"nametype", "fonttype" };
	struct uni_profile *p = small();

	for (size_t i = 0; i < uni_array_len(options); i++) {
		char *s = export_to(p, "svg", options[i], "</svg>\"'--><script>alert(1)</script>");

		has(s, "&lt;/svg&gt;&quot;&#39;--&gt;&lt;script&gt;alert(1)&lt;/script&gt;");
		has_not(s, "<script>alert");
		free(s);
	}
	uni_profile_destroy(p);
}

static void svg_of_a_differential(void **state)
{
	struct uni_profile *p = uni_profile_create();
	char *s;

	add(p, "a|b", 10, 30);
	add(p, "a|c", 40, 20);
	assert_int_equal(uni_profile_finish(p), 0);
	s = export_to(p, "svg", NULL, NULL);
	has(s, "<title>b (30 samples, 60.00%; +40.00%)</title>");
	has(s, "<title>c (20 samples, 40.00%; -40.00%)</title>");
	has(s, "<title>a (50 samples, 100.00%; 0.00%)</title>");
	has(s, "fill=\"rgb(255,0,0)\" fg:x=\"0\" fg:w=\"30\"");
	has(s, "fill=\"rgb(0,0,255)\" fg:x=\"30\" fg:w=\"20\"");
	free(s);
	s = export_to(p, "svg", "negate", "1");
	has(s, "<title>b (30 samples, 60.00%; -40.00%)</title>");
	has(s, "fill=\"rgb(0,0,255)\" fg:x=\"0\" fg:w=\"30\"");
	free(s);
	uni_profile_destroy(p);
}

static void options_are_checked(void **state)
{
	static const struct {
		const char *format, *name, *value, *says;
	} t[] = { { "svg", "colour", "hot", "it has: title" },
		{ "svg", "colors", "beige", "hot mem" }, { "svg", "width", "-5", "PIXELS" },
		{ "svg", "width", "1e9", "PIXELS" }, { "svg", "width", "5", "100 to" },
		{ "svg", "height", "0", "PIXELS" }, { "svg", "inverted", "maybe", "yes or no" },
		{ "svg", "minwidth", "x%", "percentage" },
		{ "svg", "bgcolors", "#12345g", "#rrggbb" },
		{ "svg", "encoding", "\"?><x", "utf-8" }, { "svg", "total", "5", "less than" },
		{ "svg", "f", "1", "no option f" }, { "folded", "x", "1", "it has none" },
		{ "json", "pretty", "2", "yes or no" } };
	struct uni_profile *p = small();

	for (size_t i = 0; i < uni_array_len(t); i++) {
		struct uni_export_opt opt = { t[i].name, t[i].value };
		struct uni_err err = { 0 };

		free(export_rc(p, t[i].format, &opt, 1, -UNI_EUSAGE, &err));
		has(err.msg, t[i].says);
	}
	uni_profile_destroy(p);
}

static void nothing_to_draw(void **state)
{
	struct uni_profile *p = uni_profile_create();
	struct uni_err err = { 0 };
	char *s;

	assert_int_equal(uni_profile_finish(p), 0);
	free(export_rc(p, "svg", NULL, 0, -UNI_EINVAL, &err));
	has(err.msg, "no samples");
	err = (struct uni_err){ 0 };
	free(export_rc(NULL, "svg", NULL, 0, -UNI_EUSAGE, &err));
	err = (struct uni_err){ 0 };
	free(export_rc(p, "uniprof", NULL, 0, -UNI_EUSAGE, &err));
	s = export_to(p, "folded", NULL, NULL);
	assert_string_equal(s, "\n");
	free(s);
	uni_profile_destroy(p);
}

static void json_members(void **state)
{
	struct uni_profile *p = uni_profile_create();
	char *s;

	add(p, "main|</script>", 5, 0);
	add(p, "main", 0.5, 0);
	assert_int_equal(uni_profile_finish(p), 0);
	s = export_to(p, "json", NULL, NULL);
	assert_string_equal(s,
		"{\"format\":\"uniscope-profile\",\"version\":1,\"unit\":\"samples\",\"total\":5.5,"
		"\"functions\":[{\"name\":\"\\u003c/script>\",\"kind\":\"guest\",\"self\":5,"
		"\"total\":5},{\"name\":\"main\",\"kind\":\"guest\",\"self\":0.5,\"total\":5.5}],"
		"\"stacks\":[{\"frames\":[1],\"value\":0.5},{\"frames\":[1,0],\"value\":5}]}\n\n");
	free(s);
	s = export_to(p, "json", "stacks", "no");
	has_not(s, "stacks");
	free(s);
	uni_profile_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_exporter_is_complete),
		cmocka_unit_test(folded_escapes),
		cmocka_unit_test(folded_of_a_differential),
		cmocka_unit_test(xml_text),
		cmocka_unit_test(default_colours_are_drand48),
		cmocka_unit_test(palettes),
		cmocka_unit_test(delta_colours),
		cmocka_unit_test(svg_frames),
		cmocka_unit_test(svg_order),
		cmocka_unit_test(svg_texts_are_escaped),
		cmocka_unit_test(svg_of_a_differential),
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(nothing_to_draw),
		cmocka_unit_test(json_members),
	};

	return cmocka_run_group_tests_name("export", tests, NULL, NULL);
}
