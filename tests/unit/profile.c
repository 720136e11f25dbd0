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
#include "profile/copy.h"
#include "profile/focus.h"
#include "profile/profile.h"
#include "profile/text.h"

/* "a;b;c" */
static void add(struct uni_profile *p, const char *stack, double value, double value2)
{
	uint32_t frames[64];
	size_t nr = 0;

	while (*stack != '\0') {
		size_t len = strcspn(stack, ";");

		frames[nr] = uni_profile_frame_named(p, stack, len, UNI_FK_GUEST);
		assert_int_not_equal(frames[nr++], UNI_NODE_NONE);
		stack += len + (stack[len] == ';');
	}
	assert_int_equal(uni_profile_add(p, frames, nr, value, value2), 0);
}

/* The node of a path; fails if it is not there. */
static uint32_t at(const struct uni_profile *p, const char *path)
{
	uint32_t node = UNI_NODE_ROOT;

	while (*path != '\0') {
		size_t len = strcspn(path, ";");

		for (node = uni_profile_node(p, node)->child; node != UNI_NODE_NONE;
			node = uni_profile_node(p, node)->next) {
			const char *name = uni_profile_node_name(p, node);

			if (strlen(name) == len && memcmp(name, path, len) == 0)
				break;
		}
		assert_int_not_equal(node, UNI_NODE_NONE);
		path += len + (path[len] == ';');
	}
	return node;
}

static double total_at(const struct uni_profile *p, const char *path)
{
	return uni_profile_node(p, at(p, path))->total;
}

static void stacks_merge(void **state)
{
	struct uni_profile *p = uni_profile_create();
	uint32_t node;

	add(p, "main;b", 2, 0);
	add(p, "main;a;x", 3, 0);
	add(p, "main", 1, 0);
	add(p, "main;b;a", 4, 0);
	add(p, "main;a;x", 5, 0);
	add(p, "", 7, 0);
	assert_int_equal(uni_profile_finish(p), 0);
	assert_int_equal(uni_profile_nr_nodes(p), 6);
	assert_int_equal(uni_profile_nr_frames(p), 4);
	assert_true(uni_profile_total(p) == 22);
	assert_true(uni_profile_node(p, UNI_NODE_ROOT)->self == 7);
	assert_true(total_at(p, "main") == 15);
	assert_true(total_at(p, "main;a") == 8);
	assert_true(total_at(p, "main;b") == 6);
	assert_true(uni_profile_node(p, at(p, "main;b"))->self == 2);
	assert_int_equal(uni_profile_depth(p, at(p, "main;a;x")), 3);
	assert_string_equal(uni_profile_node_name(p, UNI_NODE_ROOT), "all");
	/* Children by name. */
	node = uni_profile_node(p, at(p, "main"))->child;
	assert_string_equal(uni_profile_node_name(p, node), "a");
	assert_false(uni_profile_has_second(p));
	assert_true(uni_profile_total2(p, UNI_NODE_ROOT) == 0);
	uni_profile_destroy(p);
}

static void frames_differ_by_all_members(void **state)
{
	struct uni_profile *p = uni_profile_create();
	struct uni_strtab *t = uni_profile_strings(p);
	struct uni_frame f = { .name = uni_strtab_add(t, "f", 1) }, g = f;
	uint32_t plain = uni_profile_frame(p, &f);

	assert_int_equal(plain, uni_profile_frame_named(p, "f", 1, UNI_FK_GUEST));
	g.image = uni_strtab_add(t, "app", 3);
	assert_int_not_equal(plain, uni_profile_frame(p, &g));
	g = f;
	g.addr = 0x1000;
	assert_int_not_equal(plain, uni_profile_frame(p, &g));
	g = f;
	g.line = 3;
	assert_int_not_equal(plain, uni_profile_frame(p, &g));
	assert_int_not_equal(plain, uni_profile_frame_named(p, "f", 1, UNI_FK_INLINED));
	assert_int_equal(uni_profile_nr_frames(p), 5);
	assert_int_equal(uni_frame_kind_of("[truncated]"), UNI_FK_SYNTHETIC);
	assert_int_equal(uni_frame_kind_of("[]"), UNI_FK_GUEST);
	assert_int_equal(uni_frame_kind_of("operator[]"), UNI_FK_GUEST);
	uni_profile_destroy(p);
}

#define NR_NAMES 50
#define NR_PATHS 20000

/* Random stacks against a plain table of their prefixes, hashed children and long lists included.
 */
static void tree_is_what_was_added(void **state)
{
	struct uni_profile *p = uni_profile_create();
	uint32_t frames[NR_NAMES], seed = 1, stack[3];
	double *sum = calloc(NR_NAMES * NR_NAMES * NR_NAMES, sizeof(*sum)), all = 0;
	char name[16];
	int n;

	assert_non_null(sum);
	for (size_t i = 0; i < NR_NAMES; i++) {
		n = snprintf(name, sizeof(name), "f%02zu", i);
		frames[i] = uni_profile_frame_named(p, name, (size_t)n, UNI_FK_GUEST);
	}
	for (size_t i = 0; i < NR_PATHS; i++) {
		size_t slot = 0;

		for (size_t k = 0; k < 3; k++) {
			seed = seed * 1103515245u + 12345u;
			slot = slot * NR_NAMES + (seed >> 16) % NR_NAMES;
			stack[k] = frames[(seed >> 16) % NR_NAMES];
		}
		sum[slot] += (double)(i % 7);
		all += (double)(i % 7);
		assert_int_equal(uni_profile_add(p, stack, 3, (double)(i % 7), 0), 0);
	}
	assert_int_equal(uni_profile_finish(p), 0);
	assert_true(uni_profile_total(p) == all);
	for (size_t i = 0; i < NR_NAMES * NR_NAMES * NR_NAMES; i++) {
		char path[64];

		if (sum[i] == 0)
			continue;
		(void)snprintf(path, sizeof(path), "f%02zu;f%02zu;f%02zu", i / NR_NAMES / NR_NAMES,
			i / NR_NAMES % NR_NAMES, i % NR_NAMES);
		assert_true(total_at(p, path) == sum[i]);
	}
	/* Every list is in order, and no child is there twice. */
	for (uint32_t i = 0; i < uni_profile_nr_nodes(p); i++) {
		uint32_t next = uni_profile_node(p, i)->next;

		if (next != UNI_NODE_NONE)
			assert_true(strcmp(uni_profile_node_name(p, i),
					    uni_profile_node_name(p, next)) < 0);
	}
	free(sum);
	uni_profile_destroy(p);
}

static void two_columns(void **state)
{
	struct uni_profile *p = uni_profile_create();

	add(p, "a;b", 3, 0);
	assert_false(uni_profile_has_second(p));
	add(p, "a;c", 1, 5);
	add(p, "a;b", 1, 2);
	assert_int_equal(uni_profile_finish(p), 0);
	assert_true(uni_profile_has_second(p));
	assert_true(uni_profile_total(p) == 5);
	assert_true(uni_profile_total2(p, UNI_NODE_ROOT) == 7);
	assert_true(uni_profile_self2(p, at(p, "a;b")) == 2);
	assert_true(uni_profile_total2(p, at(p, "a")) == 7);
	uni_profile_destroy(p);
}

static const struct uni_func_row *row(
	const struct uni_profile *p, const struct uni_func_row *rows, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++) {
		if (strcmp(uni_profile_str(p, uni_profile_get_frame(p, rows[i].frame)->name),
			    name) == 0)
			return &rows[i];
	}
	return NULL;
}

static void recursion_counts_once(void **state)
{
	struct uni_profile *p = uni_profile_create();
	struct uni_func_row *rows;
	size_t nr;

	add(p, "main;f;f;g;f", 10, 1);
	add(p, "main;f", 5, 1);
	add(p, "main;g", 2, 1);
	assert_int_equal(uni_profile_finish(p), 0);
	assert_int_equal(uni_profile_functions(p, &rows, &nr), 0);
	assert_int_equal(nr, 3);
	assert_ptr_equal(row(p, rows, nr, "f"), &rows[0]);
	assert_true(rows[0].self == 15 && rows[0].total == 15);
	assert_true(rows[0].self2 == 2 && rows[0].total2 == 2);
	assert_true(row(p, rows, nr, "g")->total == 12);
	assert_true(row(p, rows, nr, "main")->total == 17);
	assert_true(row(p, rows, nr, "main")->self == 0);
	free(rows);
	assert_int_equal(uni_profile_functions_below(p, at(p, "main;f"), &rows, &nr), 0);
	assert_true(row(p, rows, nr, "f")->total == 15);
	assert_true(row(p, rows, nr, "g")->total == 10);
	assert_null(row(p, rows, nr, "main"));
	free(rows);
	uni_profile_destroy(p);
}

static void reversed_keeps_sums(void **state)
{
	struct uni_profile *p = uni_profile_create(), *r;

	uni_profile_set_unit(p, "us");
	add(p, "a;b;c", 4, 1);
	add(p, "x;b;c", 6, 2);
	add(p, "a;b", 1, 0);
	assert_int_equal(uni_profile_finish(p), 0);
	assert_int_equal(uni_profile_reversed(p, &r), 0);
	assert_string_equal(uni_profile_unit(r), "us");
	assert_true(uni_profile_total(r) == 11);
	assert_true(total_at(r, "c;b") == 10);
	assert_true(total_at(r, "c;b;x") == 6);
	assert_true(uni_profile_total2(r, at(r, "c")) == 3);
	assert_true(total_at(r, "b;a") == 1);
	uni_profile_destroy(r);
	uni_profile_destroy(p);
}

/* "c" calls itself below "b": once in a stack. */
static struct uni_profile *recursive(void)
{
	struct uni_profile *p = uni_profile_create();

	add(p, "main;a;c", 1, 0);
	add(p, "main;c;b;c;d", 2, 0);
	add(p, "main;b", 4, 0);
	assert_int_equal(uni_profile_finish(p), 0);
	return p;
}

static void focus_is_of_one_function(void **state)
{
	struct uni_profile *p = recursive(), *callees, *callers;
	uint32_t c = uni_profile_node(p, at(p, "main;c"))->frame;

	assert_int_equal(uni_profile_focus(p, c, false, &callees), 0);
	assert_int_equal(uni_profile_focus(p, c, true, &callers), 0);
	assert_true(uni_profile_total(callees) == 3 && uni_profile_total(callers) == 3);
	/* From the outermost call down, from the innermost one up. */
	assert_true(total_at(callees, "c") == 3);
	assert_true(total_at(callees, "c;b;c;d") == 2);
	assert_true(total_at(callers, "c;a;main") == 1);
	assert_true(total_at(callers, "c;b;c;main") == 2);
	uni_profile_destroy(callees);
	uni_profile_destroy(callers);
	uni_profile_destroy(p);
}

static void hidden_by_any_glob(void **state)
{
	static const char *const globs[] = { "[x-z]", "d*", "b" };
	struct uni_profile *p = recursive(), *left;
	for (size_t nr = 1; nr <= uni_array_len(globs); nr++) {
		const double want[] = { 0, 2, 6 };

		assert_int_equal(uni_profile_hide(p, globs, nr, &left), 0);
		assert_true(uni_profile_hidden(left) == want[nr - 1]);
		assert_true(uni_profile_total(left) == 7 - want[nr - 1]);
		assert_true(total_at(left, "main;a;c") == 1);
		uni_profile_destroy(left);
	}
	uni_profile_destroy(p);
}

static void numbers_have_commas(void **state)
{
	static const struct {
		double v;
		const char *want;
	} t[] = { { 0, "0" }, { 999, "999" }, { 1000, "1,000" }, { 1234567.6, "1,234,568" },
		{ -100, "-100" }, { -1000, "-1,000" }, { 1e30, "1e+30" } };
	char buf[UNI_NUMBER_MAX];

	for (size_t i = 0; i < uni_array_len(t); i++) {
		uni_text_number(buf, t[i].v);
		assert_string_equal(buf, t[i].want);
	}
}

typedef int text_fn(
	const struct uni_profile *p, const struct uni_text_opts *opts, struct uni_sink *out);

static void prints(const struct uni_profile *p, text_fn *fn, const struct uni_text_opts *opts,
	const char *want)
{
	struct uni_strbuf b;
	struct uni_sink *out;

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(fn(p, opts, out), 0);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	assert_string_equal(b.s, want);
	uni_strbuf_deinit(&b);
}

static struct uni_profile *two_vcpus(void)
{
	struct uni_profile *p = uni_profile_create();
	uint32_t f[4] = { uni_profile_frame_named(p, "vcpu 0", 6, UNI_FK_SYNTHETIC),
		uni_profile_frame_named(p, "main", 4, UNI_FK_GUEST),
		uni_profile_frame_named(p, "a_function_with_a_long_name", 27, UNI_FK_GUEST),
		uni_profile_frame_named(p, "leaf", 4, UNI_FK_GUEST) };

	assert_int_equal(uni_profile_add(p, f, 3, 5000, 0), 0);
	assert_int_equal(uni_profile_add(p, f, 4, 3000, 0), 0);
	f[0] = uni_profile_frame_named(p, "vcpu 1", 6, UNI_FK_SYNTHETIC);
	f[2] = f[3];
	assert_int_equal(uni_profile_add(p, f, 3, 1990, 0), 0);
	assert_int_equal(uni_profile_add(p, f, 2, 10, 0), 0);
	assert_int_equal(uni_profile_finish(p), 0);
	return p;
}

static void text_reports(void **state)
{
	struct uni_profile *p = two_vcpus();
	struct uni_text_opts opts = { .width = 60, .min_percent = 1, .max_rows = 2 };

	prints(p, uni_text_functions, &opts,
		"        SELF                     TOTAL            FUNCTION\n"
		"       5,000    50.00%          8,000    80.00%  a_function..\n"
		"       4,990    49.90%          4,990    49.90%  leaf\n"
		"         and 1 more function\n");
	opts.max_rows = 0;
	prints(p, uni_text_tree, &opts,
		"   TOTAL      SELF   FUNCTION\n"
		"  100.00%     0.00%  all\n"
		"   80.00%     0.00%  |- vcpu 0\n"
		"   80.00%     0.00%  |  main\n"
		"   80.00%    50.00%  |  a_function_with_a_long_name\n"
		"   30.00%    30.00%  |  leaf\n"
		"   20.00%     0.00%  |- vcpu 1\n"
		"   20.00%     0.10%  |  main\n"
		"   19.90%    19.90%  |  leaf\n");
	opts.max_depth = 1;
	prints(p, uni_text_tree, &opts,
		"   TOTAL      SELF   FUNCTION\n"
		"  100.00%     0.00%  all\n"
		"   80.00%     0.00%  |- vcpu 0\n"
		"   20.00%     0.00%  |- vcpu 1\n"
		"      and 2 more branches\n");
	opts.width = 0;
	prints(p, uni_text_vcpus, &opts,
		"VCPU              SAMPLES               HOTTEST FUNCTION\n"
		"vcpu 0              8,000    80.00%     62.50%  a_function_with_a_long_name\n"
		"vcpu 1              2,000    20.00%     99.50%  leaf\n");
	uni_profile_destroy(p);
}

static void text_of_a_differential(void **state)
{
	struct uni_profile *p = uni_profile_create();
	struct uni_text_opts opts = { .colour = true };

	add(p, "a;b", 50, 25);
	add(p, "a", 50, 75);
	assert_int_equal(uni_profile_finish(p), 0);
	prints(p, uni_text_functions, &opts,
		"\x1b[2m        SELF                     TOTAL           D-SELF   D-TOTAL  "
		"FUNCTION\x1b[0m\n"
		"\x1b[1;31m          50    50.00%\x1b[0m            100   100.00%     +25.00     "
		"+0.00  a\n"
		"\x1b[1;31m          50    50.00%\x1b[0m             50    50.00%     -25.00    "
		"-25.00  b\n");
	uni_profile_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_merge),
		cmocka_unit_test(frames_differ_by_all_members),
		cmocka_unit_test(tree_is_what_was_added),
		cmocka_unit_test(two_columns),
		cmocka_unit_test(recursion_counts_once),
		cmocka_unit_test(reversed_keeps_sums),
		cmocka_unit_test(focus_is_of_one_function),
		cmocka_unit_test(hidden_by_any_glob),
		cmocka_unit_test(numbers_have_commas),
		cmocka_unit_test(text_reports),
		cmocka_unit_test(text_of_a_differential),
	};

	return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
