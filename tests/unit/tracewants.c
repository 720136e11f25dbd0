/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of --args, and the rules that come of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/checked.h"
#include "tracing/wants.h"

static void words_are_understood(void **state)
{
	struct uni_trace_want w;
	struct uni_err err = { 0 };

	assert_int_equal(uni_trace_want_parse("tcp_*", &w, &err), 0);
	assert_string_equal(w.function, "tcp_*");
	assert_int_equal(w.nr, 0);
	assert_int_equal(uni_trace_want_parse("open(path:s)", &w, &err), 0);
	assert_string_equal(w.function, "open");
	assert_int_equal(w.nr, 1);
	assert_string_equal(w.text[0].param, "path");
	assert_int_equal(w.text[0].bytes, UNI_TRACE_WANT_BYTES);
	assert_int_equal(uni_trace_want_parse("f?( 1:s200 , buf:b16, 6:b)", &w, &err), 0);
	assert_int_equal(w.nr, 3);
	assert_int_equal(w.text[0].arg, 0);
	assert_int_equal(w.text[0].bytes, 200);
	assert_false(w.text[0].is_buffer);
	assert_string_equal(w.text[1].param, "buf");
	assert_int_equal(w.text[1].bytes, 16);
	assert_true(w.text[1].is_buffer);
	assert_int_equal(w.text[2].arg, 5);
	assert_true(uni_trace_wants_name(&w, 1) && uni_trace_wants_text(&w, 1));
}

static int add_rules(struct uni_trace_rules *rules, const struct uni_trace_want *w, size_t nr,
	const char *name, uint64_t entry, struct uni_err *err)
{
	return uni_trace_rules_add(
		rules, w, nr, &(struct uni_traced_function){ .name = name, .svma = entry }, err);
}

/* The text that is copied of a function; zeroed: none. */
static int rule_of(const struct uni_trace_want *w, size_t nr, const char *name,
	struct uni_trace_text_rule *ret, struct uni_err *err)
{
	struct uni_trace_rules rules = { 0 };
	int rc = add_rules(&rules, w, nr, name, 0x1000, err);

	*ret = rules.text.nr != 0 ? rules.text.v[0] : (struct uni_trace_text_rule){ 0 };
	uni_trace_rules_deinit(&rules);
	return rc;
}

/* Texts and conditions stand in any order. */
static void conditions_are_understood(void **state)
{
	static const char *const bad[] = { "f(1>)", "f(1>x)", "f(>1)", "f(7>1)", "f(1~/etc)",
		"f(a!~x)", "f(1>1,1>1,1>1,1>1,1>1,1>1,1>1)", "f(1>1" };
	struct uni_trace_rules rules = { 0 };
	struct uni_trace_want w[2];
	struct uni_err err = { 0 };

	assert_int_equal(
		uni_trace_want_parse("open(1:s, 2>1000, 3!=0, flags<=-5)", &w[0], &err), 0);
	assert_int_equal(w[0].nr, 1);
	assert_int_equal(w[0].nr_conditions, 3);
	assert_int_equal(w[0].condition[1].arg, 2);
	assert_string_equal(w[0].condition[2].param, "flags");
	assert_true(uni_trace_wants_condition(w, 1) && uni_trace_wants_name(w, 1));
	for (size_t i = 0; i < uni_array_len(bad); i++)
		assert_int_equal(uni_trace_want_parse(bad[i], &w[0], &err), -UNI_EUSAGE);

	assert_int_equal(uni_trace_want_parse("op*(2>1000, 3!=0)", &w[0], &err), 0);
	assert_int_equal(uni_trace_want_parse("open(1<5)", &w[1], &err), 0);
	assert_int_equal(add_rules(&rules, w, 2, "open", 0x7100001000, &err), 0);
	assert_int_equal(add_rules(&rules, w, 2, "opal", 0x7100000000, &err), 0);
	assert_int_equal(rules.condition.nr, 5);
	uni_trace_rules_sort(&rules);
	assert_int_equal(rules.condition.v[0].function, 0);
	assert_int_equal(rules.condition.v[4].function, 0x1000);
	for (size_t i = 0; i < 5; i++) {
		const struct uni_trace_condition *c = &rules.condition.v[i];
		static const uint8_t order[] = { UNI_TRACE_IF_LESS, UNI_TRACE_IF_GREATER,
			UNI_TRACE_IF_LESS | UNI_TRACE_IF_GREATER };
		static const uint64_t value[] = { 5, 1000, 0 };

		assert_int_equal(c->bits, 64);
		assert_int_equal(c->order, order[c->argument]);
		assert_int_equal(c->value, value[c->argument]);
	}
	uni_trace_rules_deinit(&rules);
	/* No register has such a number; a name needs debug data. */
	assert_int_equal(uni_trace_want_parse("open(1<-1)", &w[0], &err), 0);
	assert_int_equal(add_rules(&rules, w, 1, "open", 0, &err), -UNI_EUSAGE);
	err = (struct uni_err){ 0 };
	assert_int_equal(uni_trace_want_parse("open(fd<1)", &w[0], &err), 0);
	assert_int_equal(add_rules(&rules, w, 1, "open", 0, &err), -UNI_ENOENT);
	assert_non_null(strstr(err.msg, "no parameter 'fd'"));
	uni_trace_rules_deinit(&rules);
}

static void others_are_refused(void **state)
{
	static const char *const bad[] = { "", "(1:s)", "f(", "f()", "f(1)", "f(1:x)", "f(0:s)",
		"f(7:s)", "f(1:s0)", "f(1:s257)", "f(1:s99999999999)", "f(1:s", "f(1:s) ",
		"f(1:s)x", "f(1:s,)", "f(:s)", "f(1:s,2:s,3:s,4:s,5:s,6:s,1:s)", "f(1 :s)",
		"f(a23456789012345678901234567890123456789012345:s)" };
	struct uni_trace_want w;

	for (size_t i = 0; i < uni_array_len(bad); i++) {
		struct uni_err err = { 0 };

		assert_int_equal(uni_trace_want_parse(bad[i], &w, &err), -UNI_EUSAGE);
		assert_non_null(strstr(err.msg, "--args"));
	}
}

static void rules_are_added_up(void **state)
{
	struct uni_trace_want w[4];
	struct uni_trace_text_rule r;
	struct uni_err err = { 0 };

	assert_int_equal(uni_trace_want_parse("open*(1:s20)", &w[0], &err), 0);
	assert_int_equal(uni_trace_want_parse("openat(2:s,1:b)", &w[1], &err), 0);
	assert_int_equal(uni_trace_want_parse("other(6:s)", &w[2], &err), 0);
	assert_int_equal(uni_trace_want_parse("open*(path:s)", &w[3], &err), 0);
	assert_int_equal(rule_of(w, 3, "openat", &r, &err), 0);
	assert_int_equal(r.buffers, 1 << 0);
	assert_int_equal(r.arguments, 1 << 1);
	assert_int_equal(r.bytes, 64);
	assert_int_equal(rule_of(w, 3, "open", &r, &err), 0);
	assert_int_equal(r.arguments, 1 << 0);
	assert_int_equal(r.bytes, 20);
	/* A glob's functions need not all have the parameter; one that is named must. */
	assert_int_equal(rule_of(w, 4, "open", &r, &err), 0);
	assert_int_equal(r.arguments, 1 << 0);
	assert_int_equal(uni_trace_want_parse("open(path:s)", &w[3], &err), 0);
	assert_int_equal(rule_of(w, 4, "open", &r, &err), -UNI_ENOENT);
	assert_non_null(strstr(err.msg, "no parameter 'path'"));
	assert_int_equal(rule_of(w, 4, "close", &r, &err), 0);
	assert_int_equal(r.bytes, 0);
}

static void rules_rise(void **state)
{
	struct uni_trace_rules rules = { 0 };

	for (uint32_t i = 0; i < 1000; i++)
		assert_true(uni_vec_push(&rules.text,
			((struct uni_trace_text_rule){ .function = i * 2654435761u })));
	uni_trace_rules_sort(&rules);
	for (size_t i = 1; i < rules.text.nr; i++)
		assert_true(rules.text.v[i - 1].function < rules.text.v[i].function);
	uni_trace_rules_deinit(&rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_understood),
		cmocka_unit_test(conditions_are_understood),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(rules_are_added_up),
		cmocka_unit_test(rules_rise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
