/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that end without a return of their own, and those that only look so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "calls_tell.h"

/* B and C were left by a jump out of them: what A calls next shows it. */
static void left_otherwise(void **state)
{
	struct make m;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 100, A);
	make_enter(&m, 0, 110, D);
	make_exit(&m, 0, 111, 0x7f00);
	make_enter(&m, 0, 120, B);
	make_enter(&m, 0, 130, C);
	make_enter(&m, 0, 140, D); /* A's */
	make_exit(&m, 0, 150, 0x7f00);
	make_exit(&m, 0, 160, 0x8000);
	expect(&m, NULL, "A( D( D)1:1 B( C( D( D)10:10 C!)20:10 B!)30:10 A)60:29 ");
	make_deinit(&m);

	/* Tail call: B jumps to C, one return ends both. That of D alone might be a handler's. */
	make_init(&m, 1, 0);
	make_enter(&m, 0, 100, A);
	make_enter(&m, 0, 110, D);
	make_exit(&m, 0, 111, 0x7f00);
	make_enter(&m, 0, 115, A);
	make_exit(&m, 0, 116, 0x7f00);
	make_enter(&m, 0, 120, B);
	make_enter(&m, 0, 130, C);
	make_exit(&m, 0, 150, 0x7f00);
	make_exit(&m, 0, 160, 0x8000);
	expect(&m, NULL, "A( D( D)1:1 A( A)1:1 B( C( C)20:20 B!)30:10 A)60:28 ");
	make_deinit(&m);
}

/* A handler ran where A's first call began but was not recorded yet. Calls below that one come to
 * return just where the handler did: nothing was left. */
static void handlers_return_anywhere(void **state)
{
	struct uni_calls_stats st;
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 100, A);
	make_enter(&m, 0, 110, D);
	make_exit(&m, 0, 120, 0x7e00);
	make_enter(&m, 0, 130, B);
	make_enter(&m, 0, 140, B);
	make_enter(&m, 0, 150, B);
	make_enter(&m, 0, 160, C);
	make_exit(&m, 0, 170, 0x7e00);
	make_enter(&m, 0, 180, C);
	make_exit(&m, 0, 190, 0x7e00);
	make_exit(&m, 0, 200, 0x7e40);
	make_exit(&m, 0, 210, 0x7e80);
	make_exit(&m, 0, 220, 0x7f00);
	make_exit(&m, 0, 230, 0x8000);
	got = tell(make_input(&m), NULL, &st);
	assert_string_equal(got,
		"A( D( D)10:10 B( B( B( C( C)10:10 C( C)10:10 B)50:30 B)70:20 B)90:20 A)130:30 ");
	assert_int_equal(st.cut, 0);
	assert_int_equal(st.returns, 0);
	free(got);
	make_deinit(&m);
}

/* Nor if it is the handler that returns there: as that it is known, for it has returned elsewhere.
 */
static void handlers_return_there_again(void **state)
{
	struct make m;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 100, A);
	make_enter(&m, 0, 110, D);
	make_exit(&m, 0, 120, 0x7e00);
	make_enter(&m, 0, 130, D);
	make_exit(&m, 0, 140, 0x7d00);
	make_enter(&m, 0, 150, B);
	make_enter(&m, 0, 160, D);
	make_exit(&m, 0, 170, 0x7e00);
	make_exit(&m, 0, 180, 0x7f00);
	make_exit(&m, 0, 190, 0x8000);
	expect(&m, NULL, "A( D( D)10:10 D( D)10:10 B( D( D)10:10 B)30:20 A)90:40 ");
	make_deinit(&m);
}

/* Recording began within a call of A, whose return was not recorded, as with a limit of depth. The
 * next A returns at the same place as B did then. */
static void begins_within_a_call(void **state)
{
	struct make m;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 100, B);
	make_exit(&m, 0, 110, 0x7f00);
	make_enter(&m, 0, 120, C);
	make_exit(&m, 0, 130, 0x7f00);
	for (unsigned i = 0; i < 2; i++) {
		make_enter(&m, 0, 200 + i * 100, A);
		make_enter(&m, 0, 210 + i * 100, B);
		make_exit(&m, 0, 220 + i * 100, 0x7f00);
		make_enter(&m, 0, 230 + i * 100, C);
		make_exit(&m, 0, 240 + i * 100, 0x7f00);
		make_exit(&m, 0, 250 + i * 100, 0x8000);
	}
	expect(&m, NULL,
		"B( B)10:10 C( C)10:10 A( B( B)10:10 C( C)10:10 A)50:30 "
		"A( B( B)10:10 C( C)10:10 A)50:30 ");
	make_deinit(&m);
}

/* Stack pointers that only differ as pushed arguments make them are nothing odd. */
static void pushed_arguments(void **state)
{
	struct make m;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 100, A);
	make_enter(&m, 0, 110, B);
	make_exit(&m, 0, 111, 0x7ee0);
	make_enter(&m, 0, 120, C);
	make_enter(&m, 0, 125, D);
	make_exit(&m, 0, 126, 0x7e00);
	make_exit(&m, 0, 130, 0x7f00);
	make_enter(&m, 0, 140, B);
	make_exit(&m, 0, 141, 0x7ee0);
	make_exit(&m, 0, 160, 0x8000);
	expect(&m, NULL, "A( B( B)1:1 C( D( D)1:1 C)10:9 B( B)1:1 A)60:48 ");
	make_deinit(&m);
}

/* Functions were switched off, and on again. Open calls have no end then: they end where their CPU
 * was seen last. If a CPU records no more, they end where another CPU is seen again. */
static void switched_off_and_on(void **state)
{
	for (unsigned cpus = 1; cpus <= 3; cpus++) {
		struct make m;

		make_init(&m, cpus, 0);
		for (unsigned i = 0; i < cpus; i++)
			m.cpu[i].gaps = 7;
		make_enter(&m, 0, 100, A);
		make_enter(&m, 0, 110, B);
		make_enter(&m, 0, 120, C);
		make_exit(&m, 0, 130, 0x7e00);
		if (cpus > 1) {
			make_enter(&m, 1, 105, D);
			make_enter(&m, 1, 115, A);
			make_sync(&m, 1, 9010, 8);
			make_exit(&m, 1, 9011, 0x8000);
		}
		if (cpus > 2)
			make_enter(&m, 2, 117, B);
		make_sync(&m, 0, 9000, 8);
		make_exit(&m, 0, 9001, 0x7f00);
		make_enter(&m, 0, 9020, D);
		make_sync(&m, 0, 9030, 8); /* no other one */
		make_exit(&m, 0, 9040, 0x7f00);
		expect(&m, NULL,
			cpus == 1 ? "A( B( C( C)10:10 B!)20:10 A!)30:10 -) D( D)20:20 "
			: cpus == 2
				? "0A( 1D( 0B( 1A( 1A!)0:0 1D!)10:10 0C( 0C)10:10 0B!)20:10 "
				  "0A!)30:10 0-) 1-) 0D( 0D)20:20 "
				: "0A( 1D( 0B( 1A( 1A!)0:0 1D!)10:10 2B( 0C( 0C)10:10 0B!)20:10 "
				  "0A!)30:10 2B!)8883:8883 0-) 1-) 0D( 0D)20:20 ");
		make_deinit(&m);
	}
}

/* A trigger stopped the tracer, another started it again. Open calls of all threads have no end.
 * The running thread is not known. */
static void stopped_and_started(void **state)
{
	const uint64_t stops[1] = { B | (uint64_t)UNI_TRACE_STOPS << 32 };
	struct uni_calls_stats st;
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 80, C);
	make_switch(&m, 0, 90, 6, 7);
	make_enter(&m, 0, 100, A);
	make_ext(&m, 0, 110, UNI_TRACE_CLASS_CALL, stops, 1);
	make_enter(&m, 0, 900, D);
	make_exit(&m, 0, 910, 0x7000);
	make_exit(&m, 0, 920, 0x8000);
	make_switch(&m, 0, 930, 8, 6);
	make_enter(&m, 0, 940, D);
	make_exit(&m, 0, 950, 0x7000);
	got = tell(make_input(&m), NULL, &st);
	assert_string_equal(got, "C( 6>7 A( A!)10:10 B' D( D)10:10 -) 8>6 C!)850:10 D( D)10:10 ");
	assert_int_equal(st.cut, 2);
	assert_int_equal(st.lost, 0);
	free(got);
	make_deinit(&m);
}

/* A kernel whose system calls and event loop never return: they jump to the top of a stack, and
 * tell it. Calls of the loop that are set aside while another thread runs go on. */
static void given_up(void **state)
{
	struct uni_calls_stats st;
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 80, C);
	for (unsigned i = 0; i < 2; i++) {
		make_enter(&m, 0, 100 + i * 200, A);
		make_enter(&m, 0, 110 + i * 200, D);
		make_exit(&m, 0, 120 + i * 200, 0x7f00);
		make_switch_over(&m, 0, 130 + i * 200, 7, 9);
		make_enter(&m, 0, 150 + i * 200, B);
		make_switch_over(&m, 0, 160 + i * 200, 9, 9);
		make_enter(&m, 0, 170 + i * 200, B);
		make_switch(&m, 0, 180 + i * 200, 9, 8);
		make_switch(&m, 0, 190 + i * 200, 8, 9);
		make_exit(&m, 0, 195 + i * 200, 0x6f00);
		make_switch_over(&m, 0, 200 + i * 200, 9, 7);
	}
	got = tell(make_input(&m), NULL, &st);
	assert_string_equal(got,
		"C( A( D( D)10:10 A)30:20 C)50:20 7>9 B( B)10:10 B( 9>8 8>9 B)25:15 9>7 "
		"A( D( D)10:10 A)30:20 7>9 B( B)10:10 B( 9>8 8>9 B)25:15 9>7 ");
	assert_int_equal(st.cut, 0);
	assert_int_equal(st.returns, 0);
	free(got);
	make_deinit(&m);
}

/* A trigger on one CPU stops the tracer on all: calls of the others end there, too, but for what
 * they were just recording. Also where CPUs are walked one after the other. */
static void stopped_elsewhere(void **state)
{
	const uint64_t stops[1] = { B | (uint64_t)UNI_TRACE_STOPS << 32 };
	struct uni_trace_report r = { 0 };
	struct uni_calls_stats st;
	struct uni_funcs *funcs;
	struct uni_err err = { 0 };
	struct make m;
	char *got;

	(void)state;
	make_init(&m, 3, 1000000000);
	make_enter(&m, 1, 100, A);
	make_enter(&m, 1, 200, C);
	make_enter(&m, 2, 250, D);
	make_enter(&m, 0, 300, A);
	make_ext(&m, 0, 1000, UNI_TRACE_CLASS_CALL, stops, 1);
	make_exit(&m, 1, 1020, 0x7000); /* it was about to be recorded */
	make_enter(&m, 2, 1030, C);
	make_enter(&m, 0, 900000, D);
	make_enter(&m, 1, 900005, B);
	make_exit(&m, 1, 900015, 0x7000);
	make_exit(&m, 0, 900020, 0x7000);
	make_enter(&m, 2, 900030, B);
	make_exit(&m, 2, 900040, 0x7000);
	got = tell(make_input(&m), NULL, &st);
	assert_string_equal(got,
		"1A( 1C( 2D( 0A( 0A!)700:700 0B' 1C)820:820 2C( 1A!)930:110 2C!)0:0 2D!)780:780 "
		"0D( 1B( 1B)10:10 0D)20:20 2B( 2B)10:10 ");
	assert_int_equal(st.cut, 4);
	assert_int_equal(st.lost, 0);
	assert_int_equal(st.returns, 0);
	free(got);

	funcs = letters();
	assert_int_equal(uni_trace_report_make(make_input(&m), NULL, funcs, &r, &err), 0);
	assert_int_equal(r.stats.cut, 4);
	assert_int_equal(r.stats.returns, 0);
	for (size_t i = 0; i < r.func.nr; i++) {
		if (letter(funcs, r.func.v[i].func) == 'D')
			assert_int_equal(r.func.v[i].sum, 780 + 20);
	}
	uni_trace_report_deinit(&r);
	uni_funcs_destroy(funcs);
	make_deinit(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(left_otherwise),
		cmocka_unit_test(handlers_return_anywhere),
		cmocka_unit_test(handlers_return_there_again),
		cmocka_unit_test(begins_within_a_call),
		cmocka_unit_test(pushed_arguments),
		cmocka_unit_test(switched_off_and_on),
		cmocka_unit_test(given_up),
		cmocka_unit_test(stopped_and_started),
		cmocka_unit_test(stopped_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
