/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "format/uniprof/symbolize.h"
#include "obj/symtext.h"

#define HEAD                                                             \
	"#unikernel stack tracer using libxencall hypercall interface\n" \
	"#tracing domid 5 on 2017-02-11 10:00:00 CET (+0100)\n"          \
	"\n"

static const char table[] = "                 U undef\n"
			    "0000000000000007 a number\n"
			    "0000000000001000 T foo\n"
			    "0000000000001100 T bar\n"
			    "0000000000001100 T bar_alias\n"
			    "0000000000001200 T baz\n"
			    "0000000000001800 T 42\n";

static struct uni_symbolize_stats translate(bool as_is, const char *text, const char *want)
{
	struct uni_symbolize_stats stats;
	struct uni_symtab *symtab = NULL;
	struct uni_strbuf b;
	struct uni_sink *out;

	assert_int_equal(uni_symtab_of_nm("t", table, strlen(table), &symtab, NULL), 0);
	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	uni_symbolize(symtab, as_is, text, strlen(text), out, &stats);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	assert_string_equal(b.s, want);
	uni_strbuf_deinit(&b);
	uni_symtab_destroy(symtab);
	return stats;
}

/* The same bytes as the old program, if that was right. */
static void as_before(void **state)
{
	struct uni_symbolize_stats st = translate(false,
		HEAD "0x1100\n0x1210\n0x1005\n1\n\n"
		     "0x1000\n1\n\n"
		     "1\n\n"
		     "1fff\n1\n\n",
		HEAD "bar_alias\nbaz+0x10\nfoo+0x5\n1\n\n"
		     "foo\n1\n\n"
		     "1\n\n"
		     "42+0x7ff\n1\n\n");

	assert_int_equal(st.traces, 4);
	assert_int_equal(st.broken, 0);
	assert_int_equal(st.unknown, 0);
	assert_int_equal(st.missed, 0);
}

/* It gave what is below, or beyond, to the nearest symbol, with offsets such as 0xffffffedff. */
static void unknown(void **state)
{
	struct uni_symbolize_stats st =
		translate(false, "0xffffffffff\n0xfff\n0x0\n0\n0x1005\n1\n\n",
			"[unknown]+0xffffffffff\n[unknown]+0xfff\n[unknown]+0x0\n[unknown]+"
			"0x0\nfoo+0x5\n1\n"
			"\n");

	assert_int_equal(st.unknown, 4);
	assert_int_equal(st.traces, 1);
}

/* It took "0" for an address, and glued the broken trace to the next one. */
static void broken(void **state)
{
	struct uni_symbolize_stats st = translate(false,
		"0x1005\n0\n\n1\n\n0x1100\n0x1005\n\n0x1000\n1\n\n0x1010",
		"foo+0x5\n[truncated]\n1\n\n1\n\nbar_alias\nfoo+0x5\n[truncated]\n1\n\nfoo\n1\n\n"
		"foo+0x10\n[truncated]\n1\n");

	assert_int_equal(st.traces, 5);
	assert_int_equal(st.broken, 3);
}

/* A call that ends a function returns to the next one's first byte. */
static void callers(void **state)
{
	static const char text[] = "0x1100\n0x1100\n0x1200\n1\n\n";

	(void)translate(false, text, "bar_alias\nfoo+0x100\nbar_alias+0x100\n1\n\n");
	(void)translate(true, text, "bar_alias\nbar_alias\nbaz\n1\n\n");
}

/* It made frames of what is no part of a trace. */
static void other_lines(void **state)
{
	struct uni_symbolize_stats st = translate(false,
		HEAD "0x1005\r\n 1 \n\n"
		     "Failed to get context for VCPU 1, skipping trace. (ret=-3)\n\n"
		     "baz+0x10\nname\n12\n\n"
		     "Missed 17 deadlines\n",
		HEAD "foo+0x5\n1\n\n\nbaz+0x10\nname\n12\n\n");

	assert_int_equal(st.missed, 17);
	assert_int_equal(st.failed, 1);
	assert_int_equal(st.traces, 2);
}

/* Characters that are not ours to print stay out; a name of digits is not taken for a count. */
static void hostile(void **state)
{
	(void)translate(false, "evil\x1b[2J\n0x1801\n1\n", "evil\xef\xbf\xbd[2J\n42+0x1\n1\n");
	(void)translate(false, "0x1800\n1\n", "42+0x0\n1\n");
	(void)translate(false, "", "");
	(void)translate(false, "\n", "\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_before),
		cmocka_unit_test(unknown),
		cmocka_unit_test(broken),
		cmocka_unit_test(callers),
		cmocka_unit_test(other_lines),
		cmocka_unit_test(hostile),
	};

	return cmocka_run_group_tests_name("symbolize", tests, NULL, NULL);
}
