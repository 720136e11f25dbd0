/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles made of others: in the order of time, and two as one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "format/export.h"
#include "profile/copy.h"
#include "profile/pile.h"
#include "profile/profile.h"

static void add(struct uni_profile *p, const char *stack, double value)
{
	uint32_t frames[16];
	size_t nr = 0;

	while (*stack != '\0') {
		size_t len = strcspn(stack, ";");

		frames[nr++] = uni_profile_frame_named(p, stack, len, UNI_FK_GUEST);
		stack += len + (stack[len] == ';');
	}
	assert_int_equal(uni_profile_add(p, frames, nr, value, 0.0), 0);
}

/* "name self/self2 (" children ")", left to right. */
static void dump(const struct uni_profile *p, uint32_t node, struct uni_strbuf *b)
{
	const struct uni_node *n = uni_profile_node(p, node);

	uni_strbuf_addf(b, "%s:%g", uni_profile_node_name(p, node), n->self);
	if (uni_profile_has_second(p))
		uni_strbuf_addf(b, "/%g", uni_profile_self2(p, node));
	if (n->child == UNI_NODE_NONE)
		return;
	uni_strbuf_addc(b, '(');
	for (uint32_t at = n->child; at != UNI_NODE_NONE; at = uni_profile_node(p, at)->next) {
		dump(p, at, b);
		if (uni_profile_node(p, at)->next != UNI_NODE_NONE)
			uni_strbuf_addc(b, ' ');
	}
	uni_strbuf_addc(b, ')');
}

static void is(const struct uni_profile *p, const char *want)
{
	struct uni_strbuf b;

	uni_strbuf_init(&b);
	dump(p, UNI_NODE_ROOT, &b);
	assert_string_equal(b.s, want);
	uni_strbuf_deinit(&b);
}

static void a_chart_keeps_the_order(void **state)
{
	struct uni_profile *p = uni_profile_create(), *chart = NULL;
	const struct uni_profile_entry *log;
	size_t nr;

	uni_profile_keep_log(p);
	add(p, "z;b", 1);
	add(p, "z;b;c", 2);
	add(p, "z", 4);
	add(p, "z", 8);
	add(p, "z;b", 16);
	add(p, "a", 32);
	add(p, "z", 64);
	assert_int_equal(uni_profile_finish(p), 0);
	is(p, "all:0(a:32 z:76(b:17(c:2)))");
	log = uni_profile_log(p, &nr);
	assert_int_equal(nr, 7);
	assert_int_equal(uni_profile_chart(p, log, nr, &chart), 0);
	/* z's own time stands between its calls: a child without a name. */
	is(chart, "all:0(z:0(b:1(c:2) :12 b:16) a:32 z:64)");
	assert_true(uni_profile_total(chart) == 127.0);
	uni_profile_destroy(chart);
	uni_profile_destroy(p);
}

static void without_a_log_there_is_none(void **state)
{
	struct uni_profile *p = uni_profile_create();
	size_t nr = 1;

	add(p, "a", 1);
	assert_int_equal(uni_profile_finish(p), 0);
	(void)uni_profile_log(p, &nr);
	assert_int_equal(nr, 0);
	uni_profile_destroy(p);
}

static void two_become_one(void **state)
{
	struct uni_profile *before = uni_profile_create(), *after = uni_profile_create();
	struct uni_profile *diff = NULL;

	add(before, "main;a", 10);
	add(before, "main;gone", 10);
	add(after, "new", 20);
	add(after, "main;a", 20);
	uni_profile_set_unit(after, "us");
	assert_int_equal(uni_profile_finish(before), 0);
	assert_int_equal(uni_profile_finish(after), 0);
	assert_int_equal(uni_profile_diff(before, after, false, &diff), 0);
	is(diff, "all:0/0(main:0/0(a:10/20 gone:10/0) new:0/20)");
	assert_string_equal(uni_profile_unit(diff), "us");
	uni_profile_destroy(diff);
	assert_int_equal(uni_profile_diff(before, after, true, &diff), 0);
	is(diff, "all:0/0(main:0/0(a:20/20 gone:20/0) new:0/20)");
	uni_profile_destroy(diff);
	uni_profile_destroy(before);
	uni_profile_destroy(after);
}

/* The same function of two builds has two addresses. */
static void functions_are_the_same_by_name(void **state)
{
	struct uni_profile *p[2], *diff = NULL;

	for (size_t i = 0; i < 2; i++) {
		struct uni_frame f = { .addr = 0x1000 * (i + 1), .kind = UNI_FK_GUEST };
		uint32_t frame;

		p[i] = uni_profile_create();
		f.name = uni_strtab_add(uni_profile_strings(p[i]), "work", 4);
		f.image = uni_strtab_add(uni_profile_strings(p[i]), i == 0 ? "v1" : "v2", 2);
		frame = uni_profile_frame(p[i], &f);
		assert_int_equal(uni_profile_add(p[i], &frame, 1, (double)i + 1, 0.0), 0);
		assert_int_equal(uni_profile_finish(p[i]), 0);
	}
	assert_int_equal(uni_profile_diff(p[0], p[1], false, &diff), 0);
	is(diff, "all:0/0(work:1/2)");
	uni_profile_destroy(diff);
	uni_profile_destroy(p[0]);
	uni_profile_destroy(p[1]);
}

/* "name (file.c:1)" has its bare name besides, and a copy has, too. */
static void a_copy_keeps_bare_names(void **state)
{
	struct uni_profile *p = uni_profile_create(), *copy = NULL;
	struct uni_strtab *strings = uni_profile_strings(p);
	struct uni_frame f = { .line = 1, .kind = UNI_FK_GUEST };
	const struct uni_frame *got;

	(void)uni_strtab_add(strings, "something else", 14);
	f.plain = uni_strtab_add(strings, "work", 4);
	f.file = uni_strtab_add(strings, "a.c", 3);
	f.name = uni_strtab_add(strings, "work (a.c:1)", 12);
	assert_int_equal(uni_profile_frame(p, &f), 0);
	assert_int_equal(uni_profile_finish(p), 0);
	assert_int_equal(uni_profile_same_frames(p, &copy), 0);
	got = uni_profile_get_frame(copy, 0);
	assert_string_equal(uni_profile_str(copy, got->plain), "work");
	assert_string_equal(uni_profile_str(copy, got->file), "a.c");
	uni_profile_destroy(copy);
	uni_profile_destroy(p);
}

/* Ten functions, stacks of up to 20 of them, many alike: a tree of either is the same. */
static struct uni_profile *random_stacks(bool pile, uint32_t nr)
{
	struct uni_profile *p = uni_profile_create();
	uint32_t x = 12345, frames[20] = { 0 };

	if (pile)
		uni_profile_pile_up(p);
	for (uint32_t i = 0; i < 10; i++)
		(void)uni_profile_frame_named(p, &"zebra;cowd"[i], 1, UNI_FK_GUEST);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t depth = (x = x * 1103515245 + 12345) >> 16;

		depth %= depth % 7 == 0 ? 20 : 5;
		for (uint32_t d = 0; d < depth; d++)
			frames[d] =
				(x = x * 1103515245 + 12345) >> 16 & 1 ? d % 10 : (x >> 20) % 10;
		assert_int_equal(uni_profile_add(p, frames, depth, i % 7, i % 5), 0);
	}
	assert_int_equal(uni_profile_to_second(p), 0);
	assert_int_equal(uni_profile_add(p, frames, 2, 3.0, 0.0), 0);
	uni_profile_scale_first(p);
	return p;
}

static char *folded_of(const struct uni_profile *p)
{
	const struct uni_view view = { .profile = p };
	struct uni_strbuf b;
	struct uni_sink *out;

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_exporter_by_name("folded")->write(&view, NULL, 0, out, NULL), 0);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	return uni_strbuf_detach(&b);
}

static void a_pile_becomes_the_same_tree(void **state)
{
	for (uint32_t nr = 0; nr < 3000; nr = nr * 3 + 1) {
		struct uni_profile *tree = random_stacks(false, nr);
		struct uni_profile *pile = random_stacks(true, nr);
		struct uni_profile *flat = random_stacks(true, nr);
		char *text[3];

		assert_int_equal(uni_profile_finish(tree), 0);
		assert_int_equal(uni_profile_finish(pile), 0);
		assert_int_equal(uni_profile_finish_pile(flat), 0);
		assert_true(uni_profile_nr_nodes(tree) == uni_profile_nr_nodes(pile));
		assert_true(uni_profile_total(tree) == uni_profile_total(pile));
		assert_true(uni_profile_total(tree) == uni_profile_total(flat));
		assert_true(uni_profile_total2(tree, 0) == uni_profile_total2(pile, 0));
		assert_true(uni_profile_total2(tree, 0) == uni_profile_total2(flat, 0));
		text[0] = folded_of(tree);
		text[1] = folded_of(pile);
		text[2] = folded_of(flat);
		assert_string_equal(text[0], text[1]);
		assert_string_equal(text[0], text[2]);
		for (size_t i = 0; i < 3; i++)
			free(text[i]);
		uni_profile_destroy(tree);
		uni_profile_destroy(pile);
		uni_profile_destroy(flat);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chart_keeps_the_order),
		cmocka_unit_test(without_a_log_there_is_none),
		cmocka_unit_test(two_become_one),
		cmocka_unit_test(functions_are_the_same_by_name),
		cmocka_unit_test(a_copy_keeps_bare_names),
		cmocka_unit_test(a_pile_becomes_the_same_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
