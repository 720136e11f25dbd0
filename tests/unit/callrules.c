/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules for the calls of single functions: how they are written, and what they leave out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "calls_tell.h"
#include "trace/breakdown.h"
#include "trace/rules.h"
#include "trace/stats.h"
#include "trace/tree.h"

#define RULES 4

/* Functions have no names here: their addresses end in 1000 (A) to 4000 (D). */
static const struct uni_params *params_of(void *ctx, uint32_t func, uint64_t address)
{
	static const struct uni_params params = { .nr = 2,
		.param = {
			{ "path", UNI_PARAM_POINTER, 8, 0 }, { "len", UNI_PARAM_SIGNED, 4, 1 } } };

	(void)func;
	assert_int_not_equal(address, 0);
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

static void parse(const char *const *texts, void *ctx, struct uni_call_rule rule[RULES],
	struct uni_calls_rules *ret)
{
	struct uni_err err = { 0 };
	size_t n = 0;

	for (; texts[n] != NULL; n++) {
		if (uni_call_rule_parse(texts[n], &rule[n], &err) != 0)
			fail_msg("%s", err.msg);
	}
	*ret = (struct uni_calls_rules){ .rule = rule, .nr = n, .params = params_of, .ctx = ctx };
}

/* The trace after these rules, as a line. ctx not NULL: no parameter is known. */
static char *pick(struct make *m, const char *const *texts, void *ctx, uint64_t *unknown_ret)
{
	const struct uni_trace_input *in = make_input(m);
	struct uni_funcs *funcs = letters();
	struct uni_calls_rules rules;
	const struct uni_calls_filter filter = { .rules = &rules };
	struct uni_call_rule rule[RULES];
	const struct uni_call_event *e;
	struct uni_strbuf out;
	struct uni_calls *c;
	size_t nr;

	parse(texts, ctx, rule, &rules);
	uni_strbuf_init(&out);
	assert_int_equal(uni_calls_open(in, &filter, funcs, &c, NULL), 0);
	while (uni_calls_read(c, &e, &nr) == 1) {
		assert_int_not_equal(nr, 0);
		for (size_t i = 0; i < nr; i++)
			put_picked(&out, funcs, &e[i]);
	}
	uni_calls_close(c);
	*unknown_ret = rules.unknown;
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

/* --- what adds calls up ------------------------------------------------------------------------
 */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "ABC calls*total/self" of each call path, in the order of paths. */
static void put_tree(struct uni_strbuf *out, const struct uni_trace_input *in,
	const struct uni_calls_filter *filter)
{
	struct uni_funcs *funcs = letters();
	struct uni_call_tree t;
	char *line[64];
	size_t nr = 0;

	assert_int_equal(uni_call_tree_make(in, filter, funcs, &t, NULL), 0);
	for (size_t i = 1; i < t.node.nr; i++) {
		const struct uni_call_node *n = &t.node.v[i];
		char path[16] = "", *at = path + sizeof(path) - 1;

		if (n->calls == 0)
			continue;
		for (uint32_t up = (uint32_t)i; up != 0; up = t.node.v[up].parent)
			*--at = letter(funcs, t.node.v[up].func);
		assert_true(nr < 64);
		assert_true(asprintf(&line[nr++], "%s %d*%d/%d ", at, (int)n->calls, (int)n->total,
				    (int)n->self) > 0);
	}
	qsort(line, nr, sizeof(line[0]), by_text);
	for (size_t i = 0; i < nr; i++) {
		uni_strbuf_adds(out, line[i]);
		free(line[i]);
	}
	uni_call_tree_deinit(&t);
	uni_funcs_destroy(funcs);
}

static void put_report(struct uni_strbuf *out, const struct uni_trace_input *in,
	const struct uni_calls_filter *filter)
{
	struct uni_funcs *funcs = letters();
	struct uni_trace_report r;

	assert_int_equal(uni_trace_report_make(in, filter, funcs, &r, NULL), 0);
	uni_vec_foreach (f, &r.func)
		uni_strbuf_addf(out, "%c%d/%d/%d/%d %d*%d ", letter(funcs, f->func), (int)f->calls,
			(int)f->cut, (int)f->sum, (int)f->total, (int)f->self, (int)f->p50);
	uni_strbuf_addf(out, "%d %d ", (int)r.stats.events, (int)r.stats.cut);
	uni_trace_report_deinit(&r);
	uni_funcs_destroy(funcs);
}

static void put_breakdown(struct uni_strbuf *out, const struct uni_trace_input *in,
	const struct uni_calls_filter *filter, bool threads)
{
	struct uni_funcs *funcs = letters();
	struct uni_breakdown b;

	assert_int_equal(uni_breakdown_make(in, filter, funcs, threads, &b, NULL), 0);
	uni_vec_foreach (c, &b.cell)
		uni_strbuf_addf(out, "%d%c %d %d ", (int)c->group, letter(funcs, c->func),
			(int)c->calls, (int)c->self);
	uni_breakdown_deinit(&b);
	uni_funcs_destroy(funcs);
}

static char *added_up(const struct uni_trace_input *in, const struct uni_calls_filter *filter)
{
	struct uni_strbuf out;

	uni_strbuf_init(&out);
	put_tree(&out, in, filter);
	put_report(&out, in, filter);
	put_breakdown(&out, in, filter, false);
	put_breakdown(&out, in, filter, true);
	return uni_strbuf_detach(&out);
}

/* A rule that leaves nothing out changes nothing. */
static void same_as_without(
	const struct uni_trace_input *in, uint64_t from_ns, uint64_t to_ns, const uint64_t *thread)
{
	struct uni_calls_filter filter = {
		.from_ns = from_ns, .to_ns = to_ns, .thread = thread, .nr_thread = thread != NULL
	};
	char *without = added_up(in, &filter), *with;
	struct uni_call_rule rule[RULES];
	struct uni_calls_rules rules;

	parse((const char *const[]){ "nothing:skip", NULL }, NULL, rule, &rules);
	filter.rules = &rules;
	with = added_up(in, &filter);
	if (strcmp(with, without) != 0)
		fail_msg("from %d to %d%s: with a rule\n%s, without\n%s", (int)from_ns, (int)to_ns,
			thread != NULL ? ", one thread" : "", with, without);
	free(with);
	free(without);
}

/* Two threads on two CPUs, a loss, calls that are open at each end, a leaf. */
static void make_two_cpus(struct make *m)
{
	make_init(m, 2, 1000000000);
	make_enter(m, 0, 100, A);
	make_enter(m, 0, 110, B);
	make_enter(m, 1, 112, C);
	make_leaf(m, 1, 113, D);
	make_switch(m, 0, 115, 7, 9);
	make_enter(m, 0, 120, B);
	make_enter(m, 0, 124, B);
	make_exit(m, 0, 128, 0x6f00);
	make_switch(m, 0, 130, 9, 7);
	make_exit(m, 1, 133, 0x5000);
	make_enter(m, 1, 134, D);
	make_exit(m, 0, 140, 0x7f00);
	make_enter(m, 0, 142, C);
	make_exit(m, 0, 150, 0x7f00);
	make_exit(m, 1, 152, 0x5000);
	make_switch(m, 1, 155, 4, 9);
	make_exit(m, 1, 160, 0x7000);
	make_enter(m, 1, 164, A);
	make_exit(m, 0, 170, 0x8000);
	make_enter(m, 0, 172, D);
	make_enter(m, 0, 175, C);
}

static void adds_up_as_without(void **state)
{
	static const uint64_t seven = 7;
	const struct uni_trace_input *in;
	struct make m;

	(void)state;
	make_two_cpus(&m);
	in = make_input(&m);
	for (uint64_t from = 0; from < 190; from += 7) {
		same_as_without(in, from, 0, NULL);
		same_as_without(in, from, 0, &seven);
		for (uint64_t to = from + 1; to < 190; to += 13)
			same_as_without(in, from, to, NULL);
	}
	make_deinit(&m);
}

static int count_long(const struct uni_trace_input *in, const struct uni_calls_filter *filter)
{
	struct uni_funcs *funcs = letters();
	const struct uni_call_event *e;
	struct uni_calls *c;
	int ret = 0;
	size_t nr;

	assert_int_equal(uni_calls_open(in, filter, funcs, &c, NULL), 0);
	while (uni_calls_read(c, &e, &nr) == 1) {
		for (size_t i = 0; i < nr; i++)
			ret += e[i].type == UNI_CALL_LEAVE && letter(funcs, e[i].func) == 'B' &&
			       e[i].duration >= 15;
	}
	uni_calls_close(c);
	uni_funcs_destroy(funcs);
	return ret;
}

/* In each window, the calls that took so long in it. */
static void times_of_a_window(void **state)
{
	const struct uni_trace_input *in;
	struct uni_call_rule rule[RULES];
	struct uni_calls_rules rules;
	struct make m;

	(void)state;
	make_two_cpus(&m);
	in = make_input(&m);
	parse((const char *const[]){ "*2000:min=15ns", NULL }, NULL, rule, &rules);
	for (uint64_t from = 0; from < 190; from += 5) {
		for (uint64_t to = from + 1; to < 190; to += 9) {
			struct uni_calls_filter filter = { .from_ns = from, .to_ns = to };
			struct uni_funcs *funcs = letters();
			int want = count_long(in, &filter), got = 0;
			struct uni_call_tree t;

			filter.rules = &rules;
			assert_int_equal(count_long(in, &filter), want);
			assert_int_equal(uni_call_tree_make(in, &filter, funcs, &t, NULL), 0);
			uni_vec_foreach (n, &t.node)
				got += letter(funcs, n->func) == 'B' ? (int)n->calls : 0;
			if (got != want)
				fail_msg("%d to %d: %d, not %d", (int)from, (int)to, got, want);
			uni_call_tree_deinit(&t);
			uni_funcs_destroy(funcs);
		}
	}
	make_deinit(&m);
}

/* The time of what is left out is its caller's own, in each of them alike. */
static void adds_up_what_is_left(void **state)
{
	struct uni_call_rule rule[RULES];
	struct uni_calls_rules rules;
	const struct uni_calls_filter filter = { .rules = &rules };
	const struct uni_call_event *e;
	struct uni_funcs *funcs;
	struct uni_strbuf out;
	struct uni_calls *c;
	struct make m;
	char *got;
	size_t nr;

	(void)state;
	make_calls(&m);
	parse((const char *const[]){ "*3000:skip", "*2000:min=10ns", NULL }, NULL, rule, &rules);
	uni_strbuf_init(&out);
	put_tree(&out, make_input(&m), &filter);
	put_report(&out, make_input(&m), &filter);
	put_breakdown(&out, make_input(&m), &filter, false);
	got = uni_strbuf_detach(&out);
	assert_string_equal(got, "A 1*50/30 AB 1*20/20 D 1*1/1 "
				 "A1/0/50/50 30*50 B1/0/20/20 20*20 D1/0/1/1 1*1 13 0 "
				 "0A 1 30 0B 1 20 0- 0 10 0D 1 1 ");
	free(got);
	uni_strbuf_init(&out);
	funcs = letters();
	assert_int_equal(uni_calls_open(make_input(&m), &filter, funcs, &c, NULL), 0);
	while (uni_calls_read(c, &e, &nr) == 1) {
		for (size_t i = 0; i < nr; i++) {
			if (e[i].type == UNI_CALL_LEAVE)
				uni_strbuf_addf(
					&out, "%c%d ", letter(funcs, e[i].func), (int)e[i].self);
		}
	}
	uni_calls_close(c);
	uni_funcs_destroy(funcs);
	got = uni_strbuf_detach(&out);
	assert_string_equal(got, "B20 A30 D1 ");
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
		cmocka_unit_test(adds_up_as_without),
		cmocka_unit_test(times_of_a_window),
		cmocka_unit_test(adds_up_what_is_left),
		cmocka_unit_test(mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
