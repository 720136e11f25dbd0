/* SPDX-License-Identifier: BSD-2-Clause */
/* The store of a trace that goes on: what is taken by time, of packets that grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "calls_tell.h"
#include "serve/store.h"

/* As a guest's ring gives it: what the open sub-buffer of this CPU holds by now. */
static void put(struct uni_tstore *s, struct make *m, unsigned cpu)
{
	struct make_cpu *c = &m->cpu[cpu];

	assert_int_equal(uni_tstore_put(s, cpu, make_head(c), (c->nr - c->packet) * 8), 0);
}

/* Takes from the store until *until, and prints the events as if the trace ended there. */
static void expect_taken(
	struct uni_tstore *s, const struct make *m, const uint64_t *until, const char *want)
{
	struct uni_trace_input in = m->in;
	struct uni_tstore_copy copy;
	char *got;

	assert_int_equal(uni_tstore_take(s, until, &copy), 0);
	in.cpu = copy.cpu;
	got = tell(&in, NULL, NULL);
	assert_string_equal(got, want);
	free(got);
	uni_tstore_copy_free(&copy);
}

static void by_time(void **state)
{
	const uint64_t until[] = { 115, 115 }, none[] = { 50, 50 }, later[] = { 210, 190 };
	struct uni_tstore *s;
	struct make m;

	make_init(&m, 2, 0);
	m.in.mode = UNI_TRACE_MODE_GRAPH;
	assert_int_equal(uni_tstore_create(&m.in.info, 1 << 20, &s, NULL), 0);
	make_enter(&m, 0, 100, A);
	make_leaf(&m, 0, 110, B);
	put(s, &m, 0);
	make_leaf(&m, 0, 120, C);
	put(s, &m, 0);
	make_leaf(&m, 1, 105, D);
	put(s, &m, 1);
	assert_int_equal(uni_tstore_newest(s, 0).time, 120);
	assert_int_equal(uni_tstore_newest(s, 0).words, 3);
	assert_int_equal(uni_tstore_newest(s, 1).words, 1);
	expect_taken(s, &m, none, "");
	expect_taken(s, &m, until, "0A( 1D. 0B. 0A?)10:10 ");
	/* A piece that was begun goes on; nothing comes twice. */
	make_leaf(&m, 0, 200, D);
	make_leaf(&m, 0, 220, B);
	put(s, &m, 0);
	make_leaf(&m, 1, 180, A);
	make_leaf(&m, 1, 195, B);
	put(s, &m, 1);
	expect_taken(s, &m, later, "0C. 1A. 0D. ");
	expect_taken(s, &m, NULL, "1B. 0B. ");
	expect_taken(s, &m, NULL, "");
	assert_int_equal(uni_tstore_newest(s, 0).held, 0);
	assert_int_equal(uni_tstore_newest(s, 0).words, 5);
	uni_tstore_destroy(s);
	make_deinit(&m);
	(void)state;
}

/* A record of several words goes whole, and what is damaged does not stay for ever. */
static void whole_records(void **state)
{
	const uint64_t words[] = { 1, 2, 3 }, until[] = { 100 };
	struct uni_tstore *s;
	struct make m;

	make_init(&m, 1, 0);
	m.in.mode = UNI_TRACE_MODE_GRAPH;
	assert_int_equal(uni_tstore_create(&m.in.info, 1 << 20, &s, NULL), 0);
	make_ext(&m, 0, 100, 80, words, 3);
	make_ext(&m, 0, 101, 81, words, 2);
	put(s, &m, 0);
	expect_taken(s, &m, until, "x80:3 ");
	expect_taken(s, &m, until, "");
	make_word(&m.cpu[0], 15ull << 32 | 102); /* no kind has this number */
	make_word(&m.cpu[0], 0);
	put(s, &m, 0);
	expect_taken(s, &m, NULL, "x81:2 lost2 ");
	assert_int_equal(uni_tstore_newest(s, 0).held, 0);
	uni_tstore_destroy(s);
	make_deinit(&m);
	(void)state;
}

/* Another session begins in the middle of a sub-buffer. Its part is shorter than what was put of
 * it, and the bytes left out between them are not missing. */
static void another_session(void **state)
{
	struct uni_tstore *s;
	struct make m, next;
	const uint64_t all[] = { 1000 };

	make_init(&m, 1, 0);
	m.in.mode = UNI_TRACE_MODE_GRAPH;
	assert_int_equal(uni_tstore_create(&m.in.info, 1 << 20, &s, NULL), 0);
	make_leaf(&m, 0, 100, A);
	make_leaf(&m, 0, 110, B);
	make_leaf(&m, 0, 120, B);
	put(s, &m, 0);
	uni_tstore_restart(s);
	make_init(&next, 1, 0);
	next.cpu[0].words = 7; /* four that were not given */
	make_leaf(&next, 0, 200, C);
	make_leaf(&next, 0, 210, D);
	put(s, &next, 0);
	make_leaf(&next, 0, 220, A);
	put(s, &next, 0);
	expect_taken(s, &m, all, "A. B. B. C. D. A. ");
	uni_tstore_destroy(s);
	make_deinit(&m);
	make_deinit(&next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_time),
		cmocka_unit_test(whole_records),
		cmocka_unit_test(another_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
