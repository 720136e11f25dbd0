/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of a trace: stacks, threads, losses, windows, statistics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "calls_tell.h"

static void nested_calls(void **state)
{
	struct make m;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 100, A);
	make_enter(&m, 0, 110, B);
	make_exit(&m, 0, 115, 0x7f00);
	make_leaf(&m, 0, 118, C);
	make_enter(&m, 0, 120, B);
	make_enter(&m, 0, 122, D);
	make_exit(&m, 0, 125, 0x7e00);
	make_exit(&m, 0, 130, 0x7f00);
	make_exit(&m, 0, 150, 0x8000);
	expect(&m, NULL, "A( B( B)5:5 C. B( D( D)3:3 B)10:7 A)50:35 ");
	make_deinit(&m);
}

/* The counter's lower half wraps, within a packet and between packets. */
static void long_times(void **state)
{
	struct make m;

	(void)state;
	make_init(&m, 1, 0);
	m.packet_words = 12;
	make_enter(&m, 0, 0xfffffff0, A);
	make_enter(&m, 0, 0x100000010, B);
	make_exit(&m, 0, 0x500000010, 0x7f00);
	make_enter(&m, 0, 0x500000020, B);
	make_exit(&m, 0, 0x500000021, 0x7f00);
	make_exit(&m, 0, 0x500000022, 0x8000);
	{
		char *got = tell(make_input(&m), NULL, NULL);

		assert_string_equal(
			got, "A( B( B)17179869184:17179869184 B( B)1:1 A)17179869234:49 ");
		free(got);
	}
	make_deinit(&m);
}

static void open_and_orphaned_calls(void **state)
{
	struct uni_calls_stats st;
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 1, 0);
	make_exit(&m, 0, 10, 0x7f00);
	make_enter(&m, 0, 20, B);
	make_exit(&m, 0, 25, 0x7f00);
	make_exit(&m, 0, 30, 0x8000);
	make_enter(&m, 0, 40, A);
	make_enter(&m, 0, 50, B);
	got = tell(make_input(&m), NULL, &st);
	assert_string_equal(got, "-) B( B)5:5 -) A( B( B?)0:0 A?)10:10 ");
	assert_int_equal(st.returns, 2);
	assert_int_equal(st.cut, 2);
	assert_int_equal(st.events, 6);
	free(got);
	make_deinit(&m);
}

static void threads_keep_their_stacks(void **state)
{
	struct make m;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 100, A);
	make_enter(&m, 0, 110, B);
	make_switch(&m, 0, 120, 7, 9);
	make_enter(&m, 0, 130, C);
	make_switch(&m, 0, 140, 9, 7);
	make_exit(&m, 0, 150, 0x7f00);
	make_exit(&m, 0, 160, 0x8000);
	make_switch(&m, 0, 170, 7, 9);
	make_exit(&m, 0, 180, 0x9000);
	/* Time on no CPU is in the total of what was open, in no self. */
	expect(&m, NULL, "A( B( 7>9 C( 9>7 B)40:20 A)60:20 7>9 C)50:20 ");
	make_deinit(&m);
}

/* 7 goes on on the other CPU; the counters differ as their clocks say. */
static void threads_move(void **state)
{
	struct make m;

	(void)state;
	make_init(&m, 2, 1000000000);
	m.stream[0].clock = (struct uni_trace_clock){ .tsc = 1000, .ns = 5000 };
	m.stream[1].clock = (struct uni_trace_clock){ .tsc = 3000, .ns = 5000 };
	make_enter(&m, 0, 1000, A);
	make_switch(&m, 0, 1010, 7, 8);
	make_enter(&m, 0, 1015, D);
	make_enter(&m, 1, 3005, B);
	make_exit(&m, 1, 3008, 0x100);
	make_switch(&m, 1, 3012, 9, 7);
	make_enter(&m, 1, 3020, C);
	make_exit(&m, 1, 3025, 0x7f00);
	make_exit(&m, 1, 3030, 0x8000);
	make_exit(&m, 0, 1040, 0x6000);
	expect(&m, NULL, "0A( 1B( 1B)3:3 07>8 19>7 0D( 1C( 1C)5:5 1A)30:23 0D)25:25 ");
	make_deinit(&m);
}

static void losses_cut(void **state)
{
	struct uni_calls_stats st;
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 1, 0);
	make_switch(&m, 0, 90, 6, 7);
	make_enter(&m, 0, 100, A);
	make_switch(&m, 0, 110, 7, 8);
	make_enter(&m, 0, 120, B);
	make_lapped(&m, 0, 1000);
	make_enter(&m, 0, 500, C);
	make_exit(&m, 0, 510, 0x7f00);
	make_switch(&m, 0, 520, 8, 7);
	make_enter(&m, 0, 530, D);
	m.cpu[0].lost += 3; /* no room: the ring stopped here */
	make_close(&m, 0);
	got = tell(make_input(&m), NULL, &st);
	assert_string_equal(
		got, "6>7 A( 7>8 B( B!)0:0 lost1000 C( C)10:10 8>7 A!)420:10 D( D!)0:0 lost3 ");
	assert_int_equal(st.lost, 1003);
	free(got);
	make_deinit(&m);
}

static void damage_is_passed_over(void **state)
{
	struct uni_calls_stats st;
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 100, A);
	make_exit(&m, 0, 110, 0x8000);
	make_close(&m, 0);
	for (unsigned i = 0; i < 5; i++)
		make_word(&m.cpu[0], 0x1234567812345678);
	make_enter(&m, 0, 200, B);
	make_record(&m, 0, 201, 15); /* no record of this id */
	make_enter(&m, 0, 202, C);
	make_close(&m, 0);
	make_enter(&m, 0, 300, D);
	make_exit(&m, 0, 310, 0x8000);
	got = tell(make_input(&m), NULL, &st);
	assert_string_equal(got, "A( A)10:10 B( B!)0:0 lost2 D( D)10:10 ");
	assert_int_equal(st.damaged, 5 * 8 + 2 * 8);
	free(got);
	make_deinit(&m);
}

static void calls_only(void **state)
{
	struct make m;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 100, A);
	make_enter(&m, 0, 110, B);
	make_enter(&m, 0, 120, A);
	expect(&m, NULL, "A' B' A' ");
	make_deinit(&m);
}

/* The ring holds records of several modes. An entry without an exit to come never counts as open. A
 * call whose exit was no longer recorded ends at the first record that shows it. */
static void modes_change(void **state)
{
	const uint64_t odd[1] = { C }, args[7] = { 1, 2, 3, 4, 5, 6, D };
	struct uni_calls_stats st;
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 1, 0);
	m.in.info.kinds[UNI_TRACE_CALL] = UNI_TRACE_KIND_CALL;
	for (int i = 0; i < 10; i++)
		make_record(&m, 0, 100 + (uint64_t)i, A | UNI_TRACE_CALL);
	make_ext(&m, 0, 120, UNI_TRACE_CLASS_CALL, odd, 1);
	make_ext(&m, 0, 130, UNI_TRACE_CLASS_CALL_ARGS, args, 7);
	make_enter(&m, 0, 200, A);
	make_enter(&m, 0, 210, B);
	make_exit(&m, 0, 220, 0x7000);
	make_exit(&m, 0, 230, 0x8000);
	make_exit(&m, 0, 240, 0x9000); /* begun in function mode */
	make_enter(&m, 0, 300, C);
	make_record(&m, 0, 310, D | UNI_TRACE_CALL);
	make_enter(&m, 0, 400, A);
	make_exit(&m, 0, 410, 0x8000);
	got = tell(make_input(&m), NULL, &st);
	assert_string_equal(got,
		"A' A' A' A' A' A' A' A' A' A' C' x3:16384 D' A( B( B)10:10 A)30:20 -) "
		"C( C!)10:10 D' A( A)10:10 ");
	assert_int_equal(st.cut, 1);
	free(got);
	make_deinit(&m);
}

/* A caller is where the call was made, in a function of that name; above 4 it is one. */
static void callers_in_records(void **state)
{
	const uint64_t from_b[1] = { A | (uint64_t)(uint32_t)(B + 6) << 32 }, none[1] = { A },
		       args[7] = { 1, 2, 3, 4, 5, 6, D | (uint64_t)(uint32_t)(C + 2) << 32 },
		       stops[1] = { D | (uint64_t)UNI_TRACE_STOPS << 32 };
	struct make m;

	(void)state;
	make_init(&m, 1, 0);
	m.in.info.kinds[UNI_TRACE_CALL] = UNI_TRACE_KIND_CALL;
	make_ext(&m, 0, 100, UNI_TRACE_CLASS_CALL, from_b, 1);
	make_ext(&m, 0, 110, UNI_TRACE_CLASS_CALL, none, 1);
	make_ext(&m, 0, 120, UNI_TRACE_CLASS_CALL_ARGS, args, 7);
	make_record(&m, 0, 130, B | UNI_TRACE_CALL);
	make_ext(&m, 0, 140, UNI_TRACE_CLASS_CALL, stops, 1);
	expect(&m, NULL, "A'<B A' x3:16384 D'<C B' D' ");
	make_deinit(&m);
}

/* The recording began long before anything was recorded: what is first tells the whole time. */
static void begins_late(void **state)
{
	const uint64_t late = 5ull << 32 | 77;
	struct uni_calls_stats st;
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 1, 0);
	make_room(&m, 0, 100, 8);
	make_enter(&m, 0, late, A);
	make_exit(&m, 0, late + 10, 0x8000);
	got = tell(make_input(&m), NULL, &st);
	assert_string_equal(got, "A( A)10:10 ");
	assert_int_equal(st.begin_ns, late);
	assert_int_equal(st.end_ns, late + 10);
	assert_int_equal(uni_trace_begin_ns(&m.in), late);
	free(got);
	make_deinit(&m);
}

static void extended_records(void **state)
{
	const uint64_t entry[1] = { C }, user[2] = { 5, 6 };
	struct make m;

	(void)state;
	make_init(&m, 1, 0);
	make_ext(&m, 0, 100, UNI_TRACE_CLASS_ENTRY, entry, 1);
	make_ext(&m, 0, 105, UNI_TRACE_CLASS_USER, user, 2);
	make_exit(&m, 0, 110, 0x8000);
	expect(&m, NULL, "C( x64:6 C)10:10 ");
	make_deinit(&m);
}

/* A call with its arguments is a call; they are told before it, and its value before its return. */
static void arguments_and_values(void **state)
{
	const uint64_t args[7] = { 1, 2, 3, 4, 5, 6, B }, value[3] = { 9, 0, 0x7f00 },
		       outer[3] = { 9, 0, 0x8000 };
	struct uni_calls_filter f = { 0 };
	struct make m;

	(void)state;
	make_init(&m, 1, 0);
	make_ext(&m, 0, 90, UNI_TRACE_CLASS_EXIT_VALUE, outer, 3);
	make_enter(&m, 0, 100, A);
	make_ext(&m, 0, 110, UNI_TRACE_CLASS_ENTRY_ARGS, args, 7);
	make_enter(&m, 0, 112, C);
	make_exit(&m, 0, 115, 0x7e00);
	make_ext(&m, 0, 120, UNI_TRACE_CLASS_EXIT_VALUE, value, 3);
	make_exit(&m, 0, 130, 0x8000);
	expect(&m, NULL, "-) A( x3:8192 B( C( C)3:3 x4:32512 B)10:7 A)30:20 ");
	f.function = "*2000";
	expect(&m, &f, "x3:8192 B( C( C)3:3 x4:32512 B)10:7 ");
	f.function = "*3000";
	expect(&m, &f, "C( C)3:3 ");
	make_deinit(&m);
}

static void filters(void **state)
{
	const uint64_t seven[] = { 7 };
	struct uni_calls_filter f = { 0 };
	struct make m;

	(void)state;
	make_init(&m, 1, 0);
	make_switch(&m, 0, 90, 5, 7);
	make_enter(&m, 0, 100, A);
	make_enter(&m, 0, 110, B);
	make_exit(&m, 0, 130, 0x7f00);
	make_switch(&m, 0, 140, 7, 8);
	make_enter(&m, 0, 150, C);
	make_exit(&m, 0, 160, 0x6000);
	make_switch(&m, 0, 170, 8, 7);
	make_enter(&m, 0, 180, D);
	make_exit(&m, 0, 190, 0x7f00);
	make_exit(&m, 0, 200, 0x8000);

	f.thread = seven;
	f.nr_thread = 1;
	expect(&m, &f, "5>7 A( B( B)20:20 7>8 8>7 D( D)10:10 A)100:40 ");
	f = (struct uni_calls_filter){ 0 };
	f.from_ns = 120;
	f.to_ns = 185;
	expect(&m, &f, "A(< B(< B)10:10 7>8 C( C)10:10 8>7 D( D?)5:5 A?)65:20 ");
	f = (struct uni_calls_filter){ 0 };
	f.function = "0xffffffff00002000";
	expect(&m, &f, "5>7 B( B)20:20 7>8 8>7 ");
	f = (struct uni_calls_filter){ 0 };
	f.cpu = uni_only(1);
	expect(&m, &f, "");
	/* A was open when the window began, but is not asked for; C comes to lie where it was. */
	f = (struct uni_calls_filter){ 0 };
	f.from_ns = 195;
	f.function = "0xffffffff00003000";
	make_enter(&m, 0, 210, C);
	make_exit(&m, 0, 220, 0x8000);
	expect(&m, &f, "C( C)10:10 ");
	make_deinit(&m);
}

/* A live trace goes on with what was open. */
static void live(void **state)
{
	struct uni_funcs *funcs = letters();
	const struct uni_call_event *e;
	struct uni_err err = { 0 };
	struct make m, more;
	struct uni_calls *c;
	size_t nr;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 100, A);
	make_input(&m)->live = true;
	m.in.mode = UNI_TRACE_MODE_GRAPH;
	assert_int_equal(uni_calls_open(&m.in, NULL, funcs, &c, &err), 0);
	assert_int_equal(uni_calls_read(c, &e, &nr), 1);
	assert_int_equal(nr, 1);
	assert_int_equal(uni_calls_read(c, &e, &nr), 0);
	assert_int_equal(uni_calls_read(c, &e, &nr), 0);
	make_init(&more, 1, 0);
	more.cpu[0].words = 1;
	make_exit(&more, 0, 150, 0x8000);
	make_enter(&more, 0, 160, B);
	(void)make_input(&more);
	m.stream[0] = more.stream[0];
	uni_calls_more(c);
	assert_int_equal(uni_calls_read(c, &e, &nr), 1);
	assert_int_equal(nr, 2);
	assert_int_equal(e[0].type, UNI_CALL_LEAVE);
	assert_int_equal(e[0].duration, 50);
	assert_int_equal(uni_calls_read(c, &e, &nr), 0);
	m.in.live = false;
	assert_int_equal(uni_calls_read(c, &e, &nr), 1);
	assert_int_equal(e[0].flags, UNI_CALL_CUT | UNI_CALL_OPEN);
	assert_int_equal(uni_calls_read(c, &e, &nr), 0);
	uni_calls_close(c);
	uni_funcs_destroy(funcs);
	make_deinit(&m);
	make_deinit(&more);
}

/* Two threads on stacks of their own, and nobody tells which runs: their calls cannot be told
 * apart, and that is said. Interrupts with a stack of their own, big frames and switches that are
 * told are none such. */
static void woven(void **state)
{
	for (unsigned how = 0; how < 4; how++) {
		bool threads = how < 2, told = how == 1, handler = how == 2;
		struct uni_calls_stats st;
		struct make m;
		uint64_t now = 100;

		(void)state;
		make_init(&m, 1, 1000000000);
		for (unsigned i = 0; i < 40; i++) {
			/* A's thread calls B twice, C's thread D; they take turns within their
			 * calls. */
			make_enter(&m, 0, now += 10, A);
			make_enter(&m, 0, now += 10, B);
			make_exit(&m, 0, now += 10, 0x107f00);
			if (told)
				make_switch(&m, 0, now += 10, 1, 2);
			if (threads && i % 3 != 0) {
				make_enter(&m, 0, now += 10, C);
				make_enter(&m, 0, now += 10, D);
				make_exit(&m, 0, now += 10, 0x207f00);
			}
			if (handler) { /* complete, as interrupts are */
				make_enter(&m, 0, now += 10, C);
				make_enter(&m, 0, now += 10, D);
				make_exit(&m, 0, now += 10, 0x307f00);
				make_exit(&m, 0, now += 10, 0x308000);
			}
			if (told)
				make_switch(&m, 0, now += 10, 2, 1);
			make_exit(&m, 0, now += 10, how == 3 ? 0x10a000 : 0x108000);
			if (told)
				make_switch(&m, 0, now += 10, 1, 2);
			if (threads && i % 3 != 0)
				make_exit(&m, 0, now += 10, 0x208000);
			if (told)
				make_switch(&m, 0, now += 10, 2, 1);
		}
		free(tell(make_input(&m), NULL, &st));
		assert_int_equal(uni_calls_are_woven(&st, &m.in), how == 0);
		assert_int_equal(uni_calls_may_be_woven(&st), how == 2);
		make_deinit(&m);
	}
}

/* Two threads that take turns within calls of theirs, each time: each return ends the other's call.
 * It looks as if A called C by a handler with a stack of its own. */
static void woven_each_time(void **state)
{
	uint64_t now = 100;
	struct uni_calls_stats st;
	struct make m;

	(void)state;
	make_init(&m, 1, 1000000000);
	for (unsigned i = 0; i < 20; i++) {
		make_enter(&m, 0, now += 10, A);
		make_enter(&m, 0, now += 10, B);
		make_exit(&m, 0, now += 10, 0x208000); /* C of before, or B */
		make_enter(&m, 0, now += 10, C);
		make_exit(&m, 0, now += 10, 0x107f00); /* B */
		make_exit(&m, 0, now += 10, 0x108000);
	}
	free(tell(make_input(&m), NULL, &st));
	assert_false(uni_calls_are_woven(&st, &m.in));
	assert_true(uni_calls_may_be_woven(&st));
	make_deinit(&m);
}

/* A CPU that was idle notices late that another one froze the rings, and tells the time then. The
 * trace ends with its last call: --last counts from there. */
static void ends_with_a_call(void **state)
{
	struct uni_calls_filter last = { 0 };
	struct uni_calls_stats st;
	struct make m;
	char *got;

	(void)state;
	for (unsigned nr = 1; nr < 12; nr += 5) {
		make_init(&m, 2, 1000000000);
		make_enter(&m, 1, 900, C);
		make_exit(&m, 1, 910, 0x8000);
		make_enter(&m, 0, 1000, A);
		make_enter(&m, 0, 1100, B);
		make_exit(&m, 0, 1150, 0x7000);
		for (unsigned i = 0; i < nr; i++) { /* in packets of their own */
			make_close(&m, 1);
			make_sync(&m, 1, 5000000000u + i, 1);
		}
		assert_int_equal(uni_trace_end_ns(make_input(&m)), 1150);
		last.from_ns = uni_trace_end_ns(&m.in) - 60;
		got = tell(&m.in, &last, &st);
		assert_string_equal(got, "0A(< 0B( 0B)50:50 0A?)60:10 ");
		assert_int_equal(st.end_ns, 1150);
		free(got);
		make_deinit(&m);
	}
	/* A trace of nothing else has no end. */
	make_init(&m, 1, 1000000000);
	make_sync(&m, 0, 1000, 1);
	assert_int_equal(uni_trace_end_ns(make_input(&m)), 0);
	make_deinit(&m);
}

/* --- statistics ------------------------------------------------------------------------------- */

static const struct uni_func_stats *row(
	const struct uni_trace_report *r, const struct uni_funcs *f, char which)
{
	for (size_t i = 0; i < r->func.nr; i++) {
		if (letter(f, r->func.v[i].func) == which)
			return &r->func.v[i];
	}
	fail_msg("no row for %c", which);
	return NULL;
}

static void statistics(void **state)
{
	struct uni_funcs *funcs = letters();
	const struct uni_func_stats *s;
	struct uni_trace_report r;
	struct uni_err err = { 0 };
	struct make m;

	(void)state;
	make_init(&m, 1, 500000000); /* 2 ns a cycle */
	make_enter(&m, 0, 100, A);
	make_enter(&m, 0, 110, B);
	make_enter(&m, 0, 115, B);
	make_exit(&m, 0, 120, 0x7e00);
	make_exit(&m, 0, 130, 0x7f00);
	make_leaf(&m, 0, 140, C);
	make_switch(&m, 0, 145, 1, 2);
	make_enter(&m, 0, 150, B);
	make_switch(&m, 0, 160, 2, 1);
	make_exit(&m, 0, 200, 0x8000);
	make_switch(&m, 0, 210, 1, 2);
	make_exit(&m, 0, 220, 0x7f00);
	make_enter(&m, 0, 230, D);
	assert_int_equal(uni_trace_report_make(make_input(&m), NULL, funcs, &r, &err), 0);
	assert_int_equal(r.func.nr, 4);
	s = row(&r, funcs, 'A');
	assert_int_equal(s->calls, 1);
	assert_int_equal(s->total, 200);
	assert_int_equal(s->self, 2 * (100 - 20 - 15));
	s = row(&r, funcs, 'B');
	assert_int_equal(s->calls, 3);
	assert_int_equal(s->total, 2 * (20 + 70)); /* the one within it is part of it */
	assert_int_equal(s->sum, 2 * (20 + 5 + 70));
	assert_int_equal(s->self, 2 * (15 + 5 + 20));
	assert_int_equal(s->min, 10);
	assert_int_equal(s->max, 140);
	assert_in_range(s->p50, 39, 41); /* within 1/32 */
	assert_in_range(s->p99, 135, 145);
	s = row(&r, funcs, 'C');
	assert_int_equal(s->calls, 1);
	assert_int_equal(s->timed, 0);
	s = row(&r, funcs, 'D');
	assert_int_equal(s->calls, 1);
	assert_int_equal(s->cut, 1);
	uni_trace_report_deinit(&r);
	uni_funcs_destroy(funcs);
	make_deinit(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested_calls),
		cmocka_unit_test(long_times),
		cmocka_unit_test(open_and_orphaned_calls),
		cmocka_unit_test(threads_keep_their_stacks),
		cmocka_unit_test(threads_move),
		cmocka_unit_test(losses_cut),
		cmocka_unit_test(damage_is_passed_over),
		cmocka_unit_test(calls_only),
		cmocka_unit_test(modes_change),
		cmocka_unit_test(callers_in_records),
		cmocka_unit_test(begins_late),
		cmocka_unit_test(extended_records),
		cmocka_unit_test(arguments_and_values),
		cmocka_unit_test(filters),
		cmocka_unit_test(live),
		cmocka_unit_test(ends_with_a_call),
		cmocka_unit_test(woven),
		cmocka_unit_test(woven_each_time),
		cmocka_unit_test(statistics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
