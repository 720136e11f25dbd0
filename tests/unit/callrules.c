/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules for the calls of single functions: how they are written, and what they leave out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "calls_tell.h"
#include "trace/rules.h"

#define RULES 4

/* Functions have no names here: their addresses end in 1000 (A) to 4000 (D). */
static const struct uni_params *params_of(void *ctx, uint32_t func)
{
	static const struct uni_params params = { .nr = 2,
		.param = {
			{ "path", UNI_PARAM_POINTER, 8, 0 }, { "len", UNI_PARAM_SIGNED, 4, 1 } } };

	(void)func;
	return ctx != NULL ? NULL : &params;
}

static void put_picked(
	struct uni_strbuf *out, const struct uni_funcs *funcs, const struct uni_call_event *e)
{
	char f = letter(funcs, e->func);

	if (e->type == UNI_CALL_ENTER || e->type == UNI_CALL_LEAVE)
		uni_strbuf_addf(out, "%c%u%c ", f, e->depth, e->type == UNI_CALL_ENTER ? '(' : ')');
	else if (e->type == UNI_CALL_LEAF)
		uni_strbuf_addf(out, "%c%u. ", f, e->depth);
	else if (e->type == UNI_CALL_EXT)
		uni_strbuf_adds(out, e->cls == UNI_TRACE_CLASS_EXIT_VALUE ? "v" : "a");
	else
		uni_strbuf_addf(out, "t%d ", e->type);
}

static void look_first(
	struct uni_call_picker *p, const struct uni_trace_input *in, struct uni_funcs *funcs)
{
	const struct uni_call_event *e;
	struct uni_calls *c;
	size_t nr;

	if (!uni_call_picker_looks_first(p))
		return;
	assert_int_equal(uni_calls_open(in, NULL, funcs, &c, NULL), 0);
	while (uni_calls_read(c, &e, &nr) == 1)
		assert_int_equal(uni_call_picker_look(p, e, nr), 0);
	uni_calls_close(c);
}

/* The trace after these rules, as a line. ctx not NULL: no parameter is known. */
static char *pick(struct make *m, const char *const *texts, void *ctx, uint64_t *unknown_ret)
{
	const struct uni_trace_input *in = make_input(m);
	struct uni_funcs *funcs = letters();
	struct uni_call_rule rule[RULES];
	const struct uni_call_event *e;
	struct uni_call_picker *p;
	struct uni_err err = { 0 };
	struct uni_strbuf out;
	struct uni_calls *c;
	size_t n = 0, nr;

	for (; texts[n] != NULL; n++) {
		if (uni_call_rule_parse(texts[n], &rule[n], &err) != 0)
			fail_msg("%s", err.msg);
	}
	p = uni_call_picker_create(rule, n, funcs, params_of, ctx);
	assert_non_null(p);
	look_first(p, in, funcs);
	uni_strbuf_init(&out);
	assert_int_equal(uni_calls_open(in, NULL, funcs, &c, NULL), 0);
	while (uni_calls_read(c, &e, &nr) == 1) {
		assert_int_equal(uni_call_picker_pick(p, c, e, nr, &e, &nr), 0);
		for (size_t i = 0; i < nr; i++)
			put_picked(&out, funcs, &e[i]);
	}
	uni_calls_close(c);
	*unknown_ret = uni_call_picker_unknown(p);
	uni_call_picker_destroy(p);
	uni_funcs_destroy(funcs);
	return uni_strbuf_detach(&out);
}

static void leaves(struct make *m, const char *rule, const char *want)
{
	const char *const texts[] = { rule, NULL };
	uint64_t unknown;
	char *got = pick(m, texts, NULL, &unknown);

	if (strcmp(got, want) != 0)
		fail_msg("%s leaves %s, not %s", rule, got, want);
	assert_int_equal(unknown, 0);
	free(got);
}

static void enter_with(struct make *m, uint64_t time, uint32_t func, const char *text, uint64_t len,
	unsigned flags)
{
	uint64_t words[9] = { 0x7000, len };

	words[6] = (uint64_t)strlen(text) << 16 | flags << 8;
	memcpy(&words[7], text, strlen(text));
	words[8] = func;
	make_ext(m, 0, time, UNI_TRACE_CLASS_ENTRY_ARGS, words, 9);
}

static void exit_with(struct make *m, uint64_t time, uint32_t sp)
{
	const uint64_t words[3] = { 1, 0, sp };

	make_ext(m, 0, time, UNI_TRACE_CLASS_EXIT_VALUE, words, 3);
}

/* A calls B (twice: of 5 and of 20), B calls C, which calls D and a leaf D; then D by itself. */
static void make_calls(struct make *m)
{
	make_init(m, 1, 1000000000);
	make_enter(m, 0, 100, A);
	make_enter(m, 0, 110, B);
	make_exit(m, 0, 115, 0x7f00);
	make_enter(m, 0, 120, B);
	make_enter(m, 0, 125, C);
	make_enter(m, 0, 130, D);
	make_exit(m, 0, 131, 0x7d00);
	make_leaf(m, 0, 132, D);
	make_exit(m, 0, 135, 0x7e00);
	make_exit(m, 0, 140, 0x7f00);
	make_exit(m, 0, 150, 0x8000);
	make_enter(m, 0, 160, D);
	make_exit(m, 0, 161, 0x8000);
}

static void options_of_a_function(void **state)
{
	struct make m;

	(void)state;
	make_calls(&m);
	leaves(&m, "nothing:skip", "A0( B1( B1) B1( C2( D3( D3) D3. C2) B1) A0) D0( D0) ");
	leaves(&m, "*2000:skip", "A0( A0) D0( D0) ");
	leaves(&m, "*2000:depth=1", "A0( B1( B1) B1( B1) A0) D0( D0) ");
	leaves(&m, "*2000:depth=2", "A0( B1( B1) B1( C2( C2) B1) A0) D0( D0) ");
	leaves(&m, "*2000:min=20ns", "A0( B1( C2( D3( D3) D3. C2) B1) A0) D0( D0) ");
	leaves(&m, "*2000:min=21ns", "A0( A0) D0( D0) ");
	leaves(&m, "*4000:below=*3000", "A0( B1( B1) B1( C2( D3( D3) D3. C2) B1) A0) ");
	leaves(&m, "*4000:below=*1000,depth=1", "A0( B1( B1) B1( C2( D3( D3) D3. C2) B1) A0) ");
	/* Times of a leaf are not known. */
	leaves(&m, "*4000:min=1ns", "A0( B1( B1) B1( C2( D3( D3) C2) B1) A0) D0( D0) ");
	make_deinit(&m);
}

/* Each thread has its own stack. */
static void threads(void **state)
{
	struct make m;

	(void)state;
	make_init(&m, 1, 1000000000);
	make_enter(&m, 0, 100, B);
	make_switch(&m, 0, 110, 7, 9);
	make_enter(&m, 0, 120, A);
	make_enter(&m, 0, 130, D);
	make_switch(&m, 0, 140, 9, 7);
	make_enter(&m, 0, 150, D);
	make_exit(&m, 0, 160, 0x7f00);
	make_exit(&m, 0, 170, 0x8000);
	make_switch(&m, 0, 180, 7, 9);
	make_exit(&m, 0, 190, 0x6f00);
	make_exit(&m, 0, 200, 0x7000);
	leaves(&m, "*4000:below=*2000", "B0( t5 A0( t5 D1( D1) B0) t5 A0) ");
	leaves(&m, "*2000:skip", "t5 A0( D1( t5 t5 D1) A0) ");
	leaves(&m, "*4000:min=50ns", "B0( t5 A0( D1( t5 B0) t5 D1) A0) ");
	make_deinit(&m);
}

static void make_arguments(struct make *m)
{
	make_init(m, 1, 1000000000);
	enter_with(m, 100, A, "/etc/a", 0xffffffff, 0);
	make_enter(m, 0, 110, B);
	make_exit(m, 0, 115, 0x7f00);
	exit_with(m, 120, 0x8000);
	enter_with(m, 130, A, "/tmp/b", 1001, 0);
	exit_with(m, 140, 0x8000);
	enter_with(m, 150, A, "/tmp/c", 1000, 0);
	exit_with(m, 160, 0x8000);
}

#define FIRST  "aA0( B1( B1) vA0) "
#define SECOND "aA0( vA0) "

static void conditions(void **state)
{
	struct make m;

	(void)state;
	make_arguments(&m);
	leaves(&m, "*1000(len>1000)", SECOND);
	leaves(&m, "*1000(len>=1000)", SECOND SECOND);
	leaves(&m, "*1000(len<0)", FIRST);
	leaves(&m, "*1000(2=-1)", FIRST);
	leaves(&m, "*1000(len<=0x3e8)", FIRST SECOND);
	leaves(&m, "*1000(len!=1000)", FIRST SECOND);
	leaves(&m, "*1000(len==1000)", SECOND);
	leaves(&m, "*1000(path~/etc/*)", FIRST);
	leaves(&m, "*1000(1!~*b)", FIRST SECOND);
	leaves(&m, "*1000( path ~ /tmp/* , len > 1000 )", SECOND);
	leaves(&m, "*1000(path~/etc/*):depth=1", "aA0( vA0) ");
	make_deinit(&m);
}

static void unknown_arguments(void **state)
{
	const char *const named[] = { "*1000(len>5)", NULL }, *const text[] = { "*1000(2~x)",
		NULL };
	const char *const plain[] = { "*2000(1>=0)", NULL }, *const number[] = { "*1000(2>1000)",
		NULL };
	uint64_t unknown;
	struct make m;
	char *got;

	(void)state;
	make_arguments(&m);
	got = pick(&m, named, &m, &unknown);
	assert_string_equal(got, "");
	assert_int_equal(unknown, 3);
	free(got);
	got = pick(&m, text, NULL, &unknown); /* the second argument is no text */
	assert_string_equal(got, "");
	assert_int_equal(unknown, 3);
	free(got);
	got = pick(&m, plain, NULL, &unknown); /* B has no arguments */
	assert_string_equal(got, "aA0( vA0) " SECOND SECOND);
	assert_int_equal(unknown, 1);
	free(got);
	got = pick(&m, number, &m, &unknown); /* without a type there is no sign */
	assert_string_equal(got, FIRST SECOND);
	assert_int_equal(unknown, 0);
	free(got);
	make_deinit(&m);
	make_init(&m, 1, 1000000000);
	m.in.mode = UNI_TRACE_MODE_GRAPH;
	enter_with(&m, 100, A, "x", 1, UNI_TRACE_TEXT_BAD);
	exit_with(&m, 110, 0x8000);
	got = pick(&m, (const char *const[]){ "*1000(1~x)", NULL }, NULL, &unknown);
	assert_string_equal(got, "");
	assert_int_equal(unknown, 1);
	free(got);
	make_deinit(&m);
}

/* All rules of a function have to hold. */
static void several(void **state)
{
	const char *const texts[] = { "*1000(len>0)", "*1000(path~*c)", "*2000:skip", NULL };
	uint64_t unknown;
	struct make m;
	char *got;

	(void)state;
	make_arguments(&m);
	got = pick(&m, texts, NULL, &unknown);
	assert_string_equal(got, SECOND);
	free(got);
	make_deinit(&m);
}

static void mistakes(void **state)
{
	static const char *const wrong[] = { "", "f", ":skip", "f:", "f:skip=1", "f:skip,",
		"f:depth", "f:depth=0", "f:depth=x", "f:min=5", "f:min=us", "f:min=0us",
		"f:min=99999999999999s", "f:below=", "f:frob", "f()", "f(a)", "f(a>)", "f(>1)",
		"f(a>1", "f(a>x)", "f(a<>1)", "f(0>1)", "f(7>1)", "f(a>1)x", "f(a>1,)", "f(a>--1)",
		"f(1>1,1>1,1>1,1>1,1>1,1>1,1>1)" };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct uni_call_rule rule;
		struct uni_err err = { 0 };

		if (uni_call_rule_parse(wrong[i], &rule, &err) != -UNI_EUSAGE)
			fail_msg("'%s' is taken", wrong[i]);
		assert_non_null(strstr(err.msg, "--rule"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_of_a_function),
		cmocka_unit_test(threads),
		cmocka_unit_test(conditions),
		cmocka_unit_test(unknown_arguments),
		cmocka_unit_test(several),
		cmocka_unit_test(mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
