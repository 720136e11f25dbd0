/* SPDX-License-Identifier: BSD-2-Clause */
/* A trace says which parts it lacks: its silent end, lost events, the holders of locks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "promise/record.h"
#include "promise_events.h"

/* Nothing says that it is a thread. */
static void kind_is_not_known(void **state)
{
	const struct uni_promise_model *m;
	char buf[64];

	(void)state;
	ev(UNI_PE_SWITCH, 0xffff80001234, NOBODY);
	ev(UNI_PE_READ_LATER, 0xffff80001234, 0xffff80005678);
	ev(UNI_PE_READ_LATER, 0xffff80001234, 5);
	m = uni_promise_builder_finish(b);
	assert_string_equal(
		uni_promise_name(m, uni_promise_find(b, 0xffff80001234), buf, sizeof(buf)),
		"thread 0xffff80001234");
	assert_string_equal(
		uni_promise_name(m, uni_promise_find(b, 0xffff80005678), buf, sizeof(buf)),
		"unknown 0xffff80005678");
	assert_string_equal(
		uni_promise_name(m, uni_promise_find(b, 5), buf, sizeof(buf)), "unknown 5");
}

static void variable_at(void *ctx, uint64_t id, char *ret, size_t cap)
{
	(void)ctx;
	(void)snprintf(
		ret, cap, "%s", id == 0xffff80001234 || id == 0xffff80005678 ? "logged" : "");
}

/* The image may have a name for what is waited for. */
static void things_are_variables(void **state)
{
	const struct uni_promise_model *m;
	char buf[64];

	(void)state;
	ev(UNI_PE_SWITCH, 0xffff80001234, NOBODY);
	ev(UNI_PE_READ_LATER, 0xffff80001234, 0xffff80005678);
	ev(UNI_PE_READ_LATER, 0xffff80001234, 5);
	assert_int_equal(uni_promise_builder_name_things(b, variable_at, NULL), 0);
	m = uni_promise_builder_finish(b);
	assert_string_equal(
		uni_promise_name(m, uni_promise_find(b, 0xffff80005678), buf, sizeof(buf)),
		"logged");
	assert_string_equal(
		uni_promise_name(m, uni_promise_find(b, 5), buf, sizeof(buf)), "unknown 5");
	assert_string_equal(
		uni_promise_name(m, uni_promise_find(b, 0xffff80001234), buf, sizeof(buf)),
		"thread 0xffff80001234");
}

/* The guest's list was read later than the first records: one thread, which begins with its
 * creation. */
static void listed_before_it_is_made(void **state)
{
	const struct uni_promise_model *m;

	(void)state;
	put((struct uni_promise_event){
		.kind = UNI_PE_OPEN_NOW, .thread = NOBODY, .other = 7, .type = 19 });
	put((struct uni_promise_event){
		.kind = UNI_PE_OPEN_NOW, .thread = NOBODY, .other = 8, .type = 19 });
	create(NOBODY, 7, 19, "main");
	ev(UNI_PE_SWITCH, 7, NOBODY);
	ev(UNI_PE_SWITCH, 8, NOBODY);
	create(7, 8, 19, "the next at this address");
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->all.nr, 3);
	assert_false(m->all.v[0].told);
	assert_true(m->all.v[0].created);
	assert_true(m->all.v[0].begin > m->begin);
	assert_true(m->all.v[1].told);
}

/* 2 missed the signal of 3; nothing happened for 12 s then. */
static void a_silent_end(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	uint64_t stopped;
	char *text;

	(void)state;
	create(NOBODY, 1, 19, "netif");
	create(NOBODY, 2, 19, "tcp");
	create(NOBODY, 3, 22, "reply");
	ev(UNI_PE_SHOULD_RESOLVE, 2, NOBODY);
	ev(UNI_PE_SWITCH, 1, NOBODY);
	ev(UNI_PE_NOTIFY, NOBODY, 3);
	ev(UNI_PE_SWITCH, 2, NOBODY);
	ev(UNI_PE_TRY_READ, 2, 3);
	put((struct uni_promise_event){ .kind = UNI_PE_HIATUS, .thread = NOBODY, .other = NOBODY });
	stopped = now + UINT64_C(12000000000);
	uni_promise_builder_end(b, now - 500); /* what was heard later was recorded */
	uni_promise_builder_end(b, stopped);
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->end, stopped);
	assert_int_equal(of(m, 2)->wait_ns, UINT64_C(12000001000));
	assert_int_equal(m->pauses.v[m->pauses.nr - 1].end, stopped);
	assert_int_equal(m->runs.v[m->runs.nr - 1].end, now);
	assert_int_equal(uni_promise_findings(m, 100000000, &f), 0);
	text = said(m, &f, 0);
	expect_text(text, "nothing has signalled it since (12.000 s)");
	free(text);
	uni_findings_deinit(&f);
}

/* 5 of these 7 were told by an event, or all. */
static void lost_before(void **state)
{
	const struct uni_promise_model *m;

	(void)state;
	ev(UNI_PE_SWITCH, 1, NOBODY);
	put((struct uni_promise_event){ .kind = UNI_PE_LOST, .thread = NOBODY, .value = 5 });
	uni_promise_builder_lost(b, 5, false);
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->lost, 5);
	assert_int_equal(m->gaps, 1);
	assert_false(m->lost_at_most);
	uni_promise_builder_lost(b, 7, true);
	assert_int_equal(m->lost, 7);
	assert_int_equal(m->gaps, 2);
	assert_true(m->lost_at_most);
}

/* Events that the trace has lost. */
static void lost_events_are_counted(void **state)
{
	const struct uni_timeline tl = { 0 };
	const struct uni_call_event lost[] = { { .type = UNI_CALL_LOST, .ns = 1000, .count = 5 },
		{ .type = UNI_CALL_LOST, .ns = 2000, .cpu = 1, .count = 7 } };
	const struct uni_call_event entry = { .type = UNI_CALL_ENTRY, .ns = 3000 };
	struct uni_promise_event e;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_true(uni_promise_of_call(&tl, &lost[i], &e));
		assert_int_equal(e.time, lost[i].ns);
		assert_int_equal(e.cpu, lost[i].cpu);
		assert_int_equal(uni_promise_builder_add(b, &e), 0);
	}
	assert_false(uni_promise_of_call(&tl, &entry, &e));
	assert_int_equal(uni_promise_builder_finish(b)->lost, 12);
}

static void nothing_has_no_end(void **state)
{
	const struct uni_promise_model *m;

	(void)state;
	uni_promise_builder_end(b, 12345);
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->begin, 0);
	assert_int_equal(m->end, 0);
}

/* A guest that tells of no waits may hang unseen. */
static void no_waits(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	char *text;

	(void)state;
	create(NOBODY, 1, 19, "a");
	create(NOBODY, 2, 19, "b");
	ev(UNI_PE_SWITCH, 1, NOBODY);
	ev(UNI_PE_SWITCH, 2, NOBODY);
	ev(UNI_PE_SWITCH, NOBODY, NOBODY);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	text = said(m, &f, 0);
	assert_int_equal(strncmp(text, "no finding in what is known\n", 28), 0);
	expect_text(text, "    not known: what waits at the end: the trace tells of no waits\n");
	free(text);
	uni_findings_deinit(&f);
}

/* Each holds the lock for which the other waits, and nothing tells that: both are named. */
static void locks_of_each_other(void **state)
{
	struct uni_findings f = { 0 };
	const struct uni_promise_model *m;
	char *text;

	(void)state;
	create(NOBODY, 1, 19, "a");
	create(NOBODY, 2, 19, "b");
	create(NOBODY, 3, 16, "lock of a");
	create(NOBODY, 4, 16, "lock of b");
	create(NOBODY, 5, 19, "served");
	ev(UNI_PE_TRY_READ, 5, 3);
	ev(UNI_PE_SWITCH, 2, NOBODY);
	ev(UNI_PE_SIGNAL, 5, 3);
	ev(UNI_PE_TRY_READ, 1, 4);
	ev(UNI_PE_TRY_READ, 2, 3);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000000u, &f), 0);
	assert_int_equal(f.all.nr, 0);
	text = said(m, &f, 0);
	expect_text(text, "still waiting when the trace ended");
	expect_text(text, " a waits for lock of b\n");
	expect_text(text, " b waits for lock of a\n");
	assert_null(strstr(text, "served waits"));
	free(text);
	uni_findings_deinit(&f);
}

static void waits_at_end(uint64_t thread, uint64_t on, const char *text)
{
	put((struct uni_promise_event){ .kind = UNI_PE_WAITS_NOW,
		.thread = thread,
		.other = on,
		.text = text,
		.text_len = (uint32_t)strlen(text) });
}

/* Without events of waits, the list of threads at the end tells who waits. */
static void what_the_list_tells_at_the_end(void **state)
{
	struct uni_findings f = { 0 };
	const struct uni_promise_model *m;
	uint64_t left;
	char *text;

	(void)state;
	create(NOBODY, 1, 19, "a");
	create(NOBODY, 2, 19, "b");
	create(NOBODY, 3, 19, "told");
	create(NOBODY, 4, 16, "of an event");
	ev(UNI_PE_SWITCH, 1, NOBODY);
	ev(UNI_PE_SWITCH, 2, NOBODY);
	left = now;
	ev(UNI_PE_READ_LATER, 3, 4);
	waits_at_end(1, 9, "never");
	waits_at_end(3, 9, "never"); /* its own event knows better */
	waits_at_end(7, 9, "never"); /* nothing tells since when, and it has no name */
	waits_at_end(2, 9, "never"); /* it has the CPU, as far as events tell */
	put((struct uni_promise_event){ .kind = UNI_PE_ALL_WAIT, .value = 2 });
	m = uni_promise_builder_finish(b);
	assert_int_equal(of(m, 1)->nr_open, 1);
	assert_int_equal(m->waits.v[of(m, 1)->first_wait].begin, left);
	assert_false(m->waits.v[of(m, 1)->first_wait].undated);
	assert_int_equal(of(m, 3)->nr_waits, 1);
	assert_true(m->waits.v[of(m, 2)->first_wait].undated);
	assert_int_equal(uni_promise_findings(m, 10000000000u, &f), 0);
	assert_int_equal(f.all.nr, 0);
	text = said(m, &f, 0);
	expect_text(text, "no finding in what is known\n");
	expect_text(text, "not known: what 2 threads wait for at the end of the trace\n");
	expect_text(text, " s  a waits for never\n");
	expect_text(text, " s  told waits for of an event\n");
	expect_text(text, "    not known   b waits for never\n");
	assert_null(strstr(text, "told waits for never"));
	assert_null(strstr(text, "the trace tells of no waits"));
	free(text);
	uni_findings_deinit(&f);
}

/* A trace that tells of switches alone is no proof. */
static void nothing_is_told_of_waits(void **state)
{
	struct uni_findings f = { 0 };
	const struct uni_promise_model *m;
	char *text;

	(void)state;
	create(NOBODY, 1, 19, "a");
	ev(UNI_PE_SWITCH, 1, NOBODY);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000000u, &f), 0);
	text = said(m, &f, 0);
	expect_text(text, "not known: what waits at the end: the trace tells of no waits\n");
	free(text);
	uni_findings_deinit(&f);
}

static bool is_in_list(const struct uni_promise_model *m, bool every, uint64_t id)
{
	const struct uni_promise_list_opts opts = { .all = every };
	struct uni_promise_rows rows = { 0 };
	bool found = false;

	assert_int_equal(uni_promise_list(m, &opts, &rows), 0);
	uni_vec_foreach (i, &rows.all)
		found |= m->all.v[*i].id == id;
	assert_int_equal(rows.all.nr + rows.nameless + rows.alike, m->all.nr);
	uni_vec_free(&rows.all);
	return found;
}

static void create_nameless(uint64_t by, uint64_t id, uint8_t type)
{
	put((struct uni_promise_event){
		.kind = UNI_PE_CREATE, .thread = by, .other = id, .type = type });
}

/* A promise of each step of a program is no thread. */
static void list_of_threads(void **state)
{
	const struct uni_promise_list_opts like = { .like = "bind*" };
	struct uni_promise_rows rows = { 0 };
	const struct uni_promise_model *m;

	(void)state;
	ev(UNI_PE_SWITCH, 50, NOBODY); /* from before the trace */
	create_nameless(NOBODY, 1, UNI_PROMISE_TYPE_THREAD);
	create_nameless(1, 2, 2);
	create(1, 3, 2, "reply");
	create_nameless(1, 4, 2);
	create_nameless(1, 5, 2);
	create_nameless(1, 6, UNI_PROMISE_TYPE_ASYNC);
	ev(UNI_PE_SWITCH, 4, NOBODY);
	ev(UNI_PE_TRY_READ, 4, 5);
	ev(UNI_PE_SHOULD_RESOLVE, 2, NOBODY);
	create_nameless(1, 70, 2);
	create(1, 8, 0, "a promise");
	m = uni_promise_builder_finish(b);
	for (unsigned i = 0; i < 9; i++) {
		uint64_t id = (const uint64_t[]){ 50, 1, 2, 3, 4, 5, 6, 70, 8 }[i];

		assert_true(is_in_list(m, true, id));
		assert_int_equal(is_in_list(m, false, id), id != 4 && id != 70 && id != 8);
	}
	/* Whoever asks for one by its name or type gets it. */
	assert_int_equal(uni_promise_list(m, &like, &rows), 0);
	assert_int_equal(rows.all.nr, 5);
	uni_vec_free(&rows.all);
}

/* A loop that sleeps: each name is one row, the longest. One that is open or failed is another. */
static void list_of_sleeps(void **state)
{
	const struct uni_promise_list_opts shown = { 0 }, every = { .all = true },
					   like = { .like = "sleep*" };
	struct uni_promise_rows rows = { 0 };
	const struct uni_promise_model *m;

	(void)state;
	create(NOBODY, 1, UNI_PROMISE_TYPE_THREAD, "a");
	for (uint64_t i = 2; i < 12; i++) {
		create(1, i, UNI_PROMISE_TYPE_WAIT, i % 2 == 0 ? "sleep 3 us" : "sleep 5 us");
		if (i == 6)
			ev(UNI_PE_SWITCH, 1, NOBODY);
		ev(i == 8 ? UNI_PE_FAIL : UNI_PE_RESOLVE, 1, i);
	}
	create(1, 12, UNI_PROMISE_TYPE_WAIT, "sleep 3 us");
	create(1, 13, UNI_PROMISE_TYPE_THREAD, "handler");
	ev(UNI_PE_RESOLVE, 1, 13);
	create(1, 14, UNI_PROMISE_TYPE_THREAD, "handler");
	ev(UNI_PE_RESOLVE, 1, 14);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_list(m, &shown, &rows), 0);
	assert_int_equal(rows.all.nr, 7);
	assert_int_equal(rows.alike, 7);
	uni_vec_free(&rows.all);
	assert_true(is_in_list(m, false, 6) && is_in_list(m, false, 8) && is_in_list(m, false, 12));
	assert_true(is_in_list(m, false, 13) && is_in_list(m, false, 14));
	assert_false(is_in_list(m, false, 2));
	assert_true(is_in_list(m, true, 2));
	assert_int_equal(uni_promise_list(m, &every, &rows), 0);
	assert_int_equal(rows.alike, 0);
	uni_vec_free(&rows.all);
	assert_int_equal(uni_promise_list(m, &like, &rows), 0);
	assert_int_equal(rows.all.nr, 11);
	uni_vec_free(&rows.all);
}

/* The main loop ends a sleep, in no thread: then there is nobody to name. */
static void over_by_the_main_loop(void **state)
{
	const struct uni_promise_list_opts all = { .all = true };
	const struct uni_promise_model *m;
	struct uni_strbuf s;
	struct uni_sink *out = NULL;
	struct uni_err err = { 0 };
	char *why;

	(void)state;
	create(NOBODY, 1, 19, "sleeper");
	create(1, 2, 0, "nap");
	ev(UNI_PE_SWITCH, 1, NOBODY);
	ev(UNI_PE_TRY_READ, 1, 2);
	ev(UNI_PE_SWITCH, NOBODY, NOBODY);
	ev(UNI_PE_RESOLVE, NOBODY, 2);
	ev(UNI_PE_SWITCH, 1, NOBODY);
	ev(UNI_PE_SIGNAL, 1, 2);
	ev(UNI_PE_RESOLVE, 1, 1);
	m = uni_promise_builder_finish(b);
	why = said(m, NULL, 1);
	expect_text(why, "nap was resolved\n");
	expect_text(why, "sleeper was resolved by sleeper\n");
	free(why);
	uni_strbuf_init(&s);
	assert_int_equal(uni_sink_open_strbuf(&s, &out), 0);
	assert_int_equal(uni_promise_text_threads(out, m, &all), 0);
	assert_int_equal(uni_sink_close(out, &err), 0);
	why = uni_strbuf_detach(&s);
	expect_text(why, "  nap\n");
	expect_text(why, "  sleeper (by sleeper)\n");
	free(why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(over_by_the_main_loop, begin, end),
		cmocka_unit_test_setup_teardown(list_of_sleeps, begin, end),
		cmocka_unit_test_setup_teardown(list_of_threads, begin, end),
		cmocka_unit_test_setup_teardown(a_silent_end, begin, end),
		cmocka_unit_test_setup_teardown(lost_before, begin, end),
		cmocka_unit_test_setup_teardown(lost_events_are_counted, begin, end),
		cmocka_unit_test_setup_teardown(nothing_has_no_end, begin, end),
		cmocka_unit_test_setup_teardown(no_waits, begin, end),
		cmocka_unit_test_setup_teardown(locks_of_each_other, begin, end),
		cmocka_unit_test_setup_teardown(what_the_list_tells_at_the_end, begin, end),
		cmocka_unit_test_setup_teardown(nothing_is_told_of_waits, begin, end),
		cmocka_unit_test_setup_teardown(kind_is_not_known, begin, end),
		cmocka_unit_test_setup_teardown(things_are_variables, begin, end),
		cmocka_unit_test_setup_teardown(listed_before_it_is_made, begin, end),
	};

	return cmocka_run_group_tests_name("promise_gaps", tests, NULL, NULL);
}
