/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces as function_graph and function text, and as JSON lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "../support/trace_make.h"
#include "base/checked.h"
#include "trace/lines.h"

#define A 0x1000u
#define B 0x2000u
#define C 0x3000u
#define D 0x4000u

/* Names of one letter. */
static struct uni_funcs *letters(void)
{
	struct uni_funcs *f = uni_funcs_create(NULL);

	assert_non_null(f);
	return f;
}

/* --- text ------------------------------------------------------------------------------------- */

static const char *name(const void *ctx, uint32_t thread, uint64_t *number_ret)
{
	(void)ctx;
	*number_ret = thread + 40;
	return thread == 1 ? "worker" : "tid";
}

/* Its number of words, and the first. */
static void values(void *ctx, const struct uni_call_event *e, char *buf, size_t size)
{
	struct uni_calls **c = ctx;

	(void)snprintf(buf, size, e->cls == UNI_TRACE_CLASS_EXIT_VALUE ? "ret=%u" : "a=%u",
		(unsigned)uni_calls_words(*c, e)[0]);
}

/* Its first word, none for 0. */
static void note(void *ctx, const struct uni_call_event *e, char *buf, size_t size)
{
	unsigned first = (unsigned)uni_calls_words(*(struct uni_calls **)ctx, e)[0];

	assert_int_equal(e->cls, UNI_TRACE_CLASS_USER + 1);
	buf[0] = '\0';
	if (first != 0)
		(void)snprintf(buf, size, "note %u", first);
}

static char *text(const struct uni_trace_input *in, enum uni_trace_text_kind kind)
{
	struct uni_calls *c;
	const struct uni_trace_text_opts opts = { .kind = kind,
		.thread_name = name,
		.args = values,
		.args_ctx = &c,
		.note = note,
		.note_ctx = &c };
	struct uni_funcs *funcs = letters();
	const struct uni_call_event *e;
	struct uni_err err = { 0 };
	struct uni_trace_text *t;
	struct uni_strbuf buf;
	struct uni_sink *out;
	size_t nr;

	uni_strbuf_init(&buf);
	assert_int_equal(uni_sink_open_strbuf(&buf, &out), 0);
	assert_int_equal(uni_calls_open(in, NULL, funcs, &c, &err), 0);
	t = uni_trace_text_open(out, funcs, &opts);
	assert_non_null(t);
	while (uni_calls_read(c, &e, &nr) == 1)
		assert_int_equal(uni_trace_text_put(t, e, nr), 0);
	uni_trace_text_close(t);
	uni_calls_close(c);
	uni_funcs_destroy(funcs);
	assert_int_equal(uni_sink_close(out, &err), 0);
	return uni_strbuf_detach(&buf);
}

static void graph_text(void **state)
{
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 1000, A);
	make_enter(&m, 0, 2000, B);
	make_exit(&m, 0, 2071, 0x7f00);
	make_leaf(&m, 0, 2080, C);
	make_enter(&m, 0, 3000, D);
	make_switch(&m, 0, 4000, 1, 2);
	make_enter(&m, 0, 5000, B);
	make_exit(&m, 0, 15234, 0x6000);
	make_switch(&m, 0, 16000, 2, 1);
	make_exit(&m, 0, 210666, 0x7f00);
	make_exit(&m, 0, 1234568890, 0x8000);
	make_enter(&m, 0, 2000000000, A);
	make_enter(&m, 0, 2000000001, B);
	got = text(make_input(&m), UNI_TRACE_TEXT_GRAPH);
	assert_string_equal(got, "# tracer: function_graph\n"
				 "#\n"
				 "# CPU  DURATION                  FUNCTION CALLS\n"
				 "# |     |   |                     |   |   |   |\n"
				 " 0)               |  0xffffffff00001000() {\n"
				 " 0)   0.071 us    |    0xffffffff00002000();\n"
				 " 0)               |    0xffffffff00003000();\n"
				 " 0)               |    0xffffffff00004000() {\n"
				 "------------------------------------------\n"
				 " 0) tid-40  => worker-41\n"
				 "------------------------------------------\n"
				 " 0) + 10.234 us   |  0xffffffff00002000();\n"
				 "------------------------------------------\n"
				 " 0) worker-41  => tid-40\n"
				 "------------------------------------------\n"
				 " 0) ! 207.666 us  |    } /* 0xffffffff00004000 */\n"
				 " 0) @ 1234567. us |  } /* 0xffffffff00001000 */\n"
				 " 0)               |  0xffffffff00001000() {\n"
				 " 0)               |    0xffffffff00002000() {\n");
	free(got);
	make_deinit(&m);
}

/* As Linux has them: once each, at the call and behind its name when it ends. */
static void arguments_and_values(void **state)
{
	const uint64_t one[7] = { 1, 0, 0, 0, 0, 0, A }, two[7] = { 2, 0, 0, 0, 0, 0, B };
	const uint64_t nine[3] = { 9, 0, 0x7f00 }, ten[3] = { 10, 0, 0x8000 };
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 1, 0);
	make_ext(&m, 0, 1000, UNI_TRACE_CLASS_ENTRY_ARGS, one, 7);
	make_ext(&m, 0, 2000, UNI_TRACE_CLASS_ENTRY_ARGS, two, 7);
	make_ext(&m, 0, 2010, UNI_TRACE_CLASS_EXIT_VALUE, nine, 3);
	make_enter(&m, 0, 2020, C);
	make_exit(&m, 0, 2030, 0x7f00);
	make_ext(&m, 0, 2040, UNI_TRACE_CLASS_EXIT_VALUE, ten, 3);
	make_enter(&m, 0, 2050, C);
	make_exit(&m, 0, 2060, 0x8000);
	make_ext(&m, 0, 3000, UNI_TRACE_CLASS_ENTRY_ARGS, two, 7);
	got = text(make_input(&m), UNI_TRACE_TEXT_GRAPH);
	assert_string_equal(strchr(got, '0'), "0)               |  0xffffffff00001000(a=1) {\n"
					      " 0)   0.010 us    |    0xffffffff00002000(a=2); "
					      "/* ret=9 */\n"
					      " 0)   0.010 us    |    0xffffffff00003000();\n"
					      " 0)   1.040 us    |  } /* 0xffffffff00001000 ret=10 "
					      "*/\n"
					      " 0)   0.010 us    |  0xffffffff00003000();\n"
					      " 0)               |  0xffffffff00002000(a=2) {\n");
	free(got);
	make_deinit(&m);
}

/* Within the calls that are open on that thread. */
static void notes(void **state)
{
	const uint64_t one[2] = { 1, 0 }, two[2] = { 2, 0 }, three[2] = { 3, 0 }, none[2] = { 0 };
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 1, 0);
	make_ext(&m, 0, 900, UNI_TRACE_CLASS_USER + 1, one, 2);
	make_enter(&m, 0, 1000, A);
	make_ext(&m, 0, 1010, UNI_TRACE_CLASS_USER + 1, none, 2);
	make_enter(&m, 0, 1020, B);
	make_ext(&m, 0, 1030, UNI_TRACE_CLASS_USER + 1, two, 2);
	make_switch(&m, 0, 1100, 1, 2);
	make_ext(&m, 0, 1110, UNI_TRACE_CLASS_USER + 1, three, 2);
	make_switch(&m, 0, 1200, 2, 1);
	make_exit(&m, 0, 2020, 0x7f00);
	make_ext(&m, 0, 2030, UNI_TRACE_CLASS_USER + 1, three, 2);
	make_exit(&m, 0, 3000, 0x8000);
	got = text(make_input(&m), UNI_TRACE_TEXT_GRAPH);
	assert_string_equal(strchr(got, '0'), "0)               |  /* note 1 */\n"
					      " 0)               |  0xffffffff00001000() {\n"
					      " 0)               |    0xffffffff00002000() {\n"
					      " 0)               |      /* note 2 */\n"
					      "------------------------------------------\n"
					      " 0) tid-40  => worker-41\n"
					      "------------------------------------------\n"
					      " 0)               |  /* note 3 */\n"
					      "------------------------------------------\n"
					      " 0) worker-41  => tid-40\n"
					      "------------------------------------------\n"
					      " 0)   1.000 us    |    } /* 0xffffffff00002000 */\n"
					      " 0)               |    /* note 3 */\n"
					      " 0)   2.000 us    |  } /* 0xffffffff00001000 */\n");
	free(got);
	make_deinit(&m);
}

static void durations(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} want[] = {
		{ 0, "  0.000 us   " },
		{ 9999, "  9.999 us   " },
		{ 10000, "+ 10.000 us  " },
		{ 100000, "! 100.000 us " },
		{ 1000000, "# 1000.000 us" },
		{ 12345678, "* 12345.67 us" },
		{ 123456789, "@ 123456.7 us" },
		{ 1234567890, "@ 1234567. us" },
		{ 12345678901, "@ 12345678 us" },
		{ 123456789012, "@ 123456789 us" },
	};

	(void)state;
	for (size_t i = 0; i < uni_array_len(want); i++) {
		struct make m;
		char *got, *at;

		make_init(&m, 1, 0);
		make_enter(&m, 0, 5, A);
		make_exit(&m, 0, 5 + want[i].ns, 0x8000);
		got = text(make_input(&m), UNI_TRACE_TEXT_GRAPH);
		at = strstr(got, " 0) ");
		assert_non_null(at);
		at[4 + strlen(want[i].text)] = '\0';
		assert_string_equal(at + 4, want[i].text);
		free(got);
		make_deinit(&m);
	}
}

static void function_text(void **state)
{
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 1000, A);
	make_enter(&m, 0, 2000, B);
	make_exit(&m, 0, 2071, 0x7f00);
	make_switch(&m, 0, 4000, 1, 2);
	make_enter(&m, 0, 5000, C);
	got = text(make_input(&m), UNI_TRACE_TEXT_FUNCTION);
	assert_string_equal(got, "# tracer: function\n"
				 "#\n"
				 "#\n"
				 "#           TASK-PID   CPU#     TIMESTAMP  FUNCTION\n"
				 "#              | |       |         |         |\n"
				 "             tid-40    [000]  1000: 0xffffffff00001000 <-<< "
				 "unknown symbol >>\n"
				 "             tid-40    [000]  2000: 0xffffffff00002000 "
				 "<-0xffffffff00001000\n"
				 "          worker-41    [000]  5000: 0xffffffff00003000 <-<< "
				 "unknown symbol >>\n");
	free(got);
	got = text(make_input(&m), UNI_TRACE_TEXT_NOP);
	assert_string_equal(got, "# tracer: nop\n#\n#\n"
				 "#           TASK-PID   CPU#     TIMESTAMP  FUNCTION\n"
				 "#              | |       |         |         |\n");
	free(got);
	make_deinit(&m);
}

/* --- JSON lines ------------------------------------------------------------------------------- */

/* With a sink of text, whose text the caller frees. */
static char *lines(const struct uni_trace_input *in, const struct uni_calls_filter *filter)
{
	struct uni_calls *c;
	const struct uni_trace_text_opts opts = {
		.thread_name = name, .args = values, .args_ctx = &c
	};
	struct uni_funcs *funcs = letters();
	const struct uni_call_event *e;
	struct uni_err err = { 0 };
	struct uni_trace_lines *l;
	struct uni_strbuf buf;
	struct uni_sink *out;
	size_t nr;

	uni_strbuf_init(&buf);
	assert_int_equal(uni_sink_open_strbuf(&buf, &out), 0);
	assert_int_equal(uni_calls_open(in, filter, funcs, &c, &err), 0);
	l = uni_trace_lines_open(out, funcs, &opts);
	assert_non_null(l);
	while (uni_calls_read(c, &e, &nr) == 1)
		assert_int_equal(uni_trace_lines_put(l, e, nr), 0);
	uni_trace_lines_close(l);
	uni_calls_close(c);
	uni_funcs_destroy(funcs);
	assert_int_equal(uni_sink_close(out, &err), 0);
	return uni_strbuf_detach(&buf);
}

#define FIRST "{\"format\":\"uniscope-events\",\"version\":1}\n"

static void events_as_lines(void **state)
{
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 1, 0);
	make_exit(&m, 0, 999, 0x9000);
	make_enter(&m, 0, 1000, A);
	make_leaf(&m, 0, 2080, C);
	make_switch(&m, 0, 4000, 1, 2);
	make_enter(&m, 0, 5000, B);
	make_exit(&m, 0, 15234, 0x6000);
	make_switch(&m, 0, 16000, 2, 1);
	make_exit(&m, 0, 210666, 0x8000);
	make_enter(&m, 0, 210667, D);
	got = lines(make_input(&m), NULL);
	assert_string_equal(got, FIRST
		"{\"type\":\"thread\",\"thread\":0,\"number\":40,\"name\":\"tid\"}\n"
		"{\"type\":\"return\",\"ns\":999,\"cpu\":0,\"thread\":0}\n"
		"{\"type\":\"enter\",\"ns\":1000,\"cpu\":0,\"thread\":0,\"depth\":0,"
		"\"function\":\"0xffffffff00001000\"}\n"
		"{\"type\":\"leaf\",\"ns\":2080,\"cpu\":0,\"thread\":0,\"depth\":1,"
		"\"function\":\"0xffffffff00003000\",\"caller\":\"0xffffffff00001000\"}\n"
		"{\"type\":\"thread\",\"thread\":1,\"number\":41,\"name\":\"worker\"}\n"
		"{\"type\":\"switch\",\"ns\":4000,\"cpu\":0,\"thread\":0,\"next\":1}\n"
		"{\"type\":\"enter\",\"ns\":5000,\"cpu\":0,\"thread\":1,\"depth\":0,"
		"\"function\":\"0xffffffff00002000\"}\n"
		"{\"type\":\"leave\",\"ns\":15234,\"cpu\":0,\"thread\":1,\"depth\":0,"
		"\"function\":\"0xffffffff00002000\",\"duration_ns\":10234,\"self_ns\":10234}\n"
		"{\"type\":\"switch\",\"ns\":16000,\"cpu\":0,\"thread\":1,\"next\":0}\n"
		"{\"type\":\"leave\",\"ns\":210666,\"cpu\":0,\"thread\":0,\"depth\":0,"
		"\"function\":\"0xffffffff00001000\",\"duration_ns\":209666,\"self_ns\":197666,"
		"\"off_ns\":12000}\n"
		"{\"type\":\"enter\",\"ns\":210667,\"cpu\":0,\"thread\":0,\"depth\":0,"
		"\"function\":\"0xffffffff00004000\"}\n"
		"{\"type\":\"leave\",\"ns\":210667,\"cpu\":0,\"thread\":0,\"depth\":0,"
		"\"function\":\"0xffffffff00004000\",\"duration_ns\":0,\"self_ns\":0,"
		"\"end\":\"open\"}\n");
	free(got);
	make_deinit(&m);
}

/* Values stand in their call's line, once. A call from before the window says so. */
static void values_and_windows_as_lines(void **state)
{
	const uint64_t one[7] = { 1, 0, 0, 0, 0, 0, A }, nine[3] = { 9, 0, 0x7f00 };
	struct uni_calls_filter late = { 0 };
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 500, D);
	make_ext(&m, 0, 1000, UNI_TRACE_CLASS_ENTRY_ARGS, one, 7);
	make_ext(&m, 0, 2010, UNI_TRACE_CLASS_EXIT_VALUE, nine, 3);
	make_enter(&m, 0, 2020, C);
	make_exit(&m, 0, 2030, 0x7f00);
	late.from_ns = 900;
	late.to_ns = 2025;
	got = lines(make_input(&m), &late);
	assert_string_equal(got,
		FIRST "{\"type\":\"thread\",\"thread\":0,\"number\":40,\"name\":\"tid\"}\n"
		      "{\"type\":\"enter\",\"ns\":1000,\"cpu\":0,\"thread\":0,\"depth\":0,"
		      "\"function\":\"0xffffffff00004000\",\"began\":true}\n"
		      "{\"type\":\"enter\",\"ns\":1000,\"cpu\":0,\"thread\":0,\"depth\":1,"
		      "\"function\":\"0xffffffff00001000\",\"caller\":\"0xffffffff00004000\","
		      "\"args\":\"a=1\"}\n"
		      "{\"type\":\"leave\",\"ns\":2010,\"cpu\":0,\"thread\":0,\"depth\":1,"
		      "\"function\":\"0xffffffff00001000\",\"duration_ns\":1010,\"self_ns\":1010,"
		      "\"value\":\"ret=9\"}\n"
		      "{\"type\":\"enter\",\"ns\":2020,\"cpu\":0,\"thread\":0,\"depth\":1,"
		      "\"function\":\"0xffffffff00003000\",\"caller\":\"0xffffffff00004000\"}\n"
		      "{\"type\":\"leave\",\"ns\":2025,\"cpu\":0,\"thread\":0,\"depth\":1,"
		      "\"function\":\"0xffffffff00003000\",\"duration_ns\":5,\"self_ns\":5,"
		      "\"end\":\"open\"}\n"
		      "{\"type\":\"leave\",\"ns\":2025,\"cpu\":0,\"thread\":0,\"depth\":0,"
		      "\"function\":\"0xffffffff00004000\",\"duration_ns\":1125,\"self_ns\":110,"
		      "\"end\":\"open\",\"began\":true}\n");
	free(got);
	make_deinit(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graph_text),
		cmocka_unit_test(arguments_and_values),
		cmocka_unit_test(notes),
		cmocka_unit_test(durations),
		cmocka_unit_test(function_text),
		cmocka_unit_test(events_as_lines),
		cmocka_unit_test(values_and_windows_as_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
