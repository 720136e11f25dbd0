/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to end a run: which of them are kept, and which are forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "app/signals.h"

static bool stops(void)
{
	return atomic_load(uni_signals_stop());
}

/* `run` records within: a Ctrl-C while it attached must not be lost. */
static void test_within(void **state)
{
	struct uni_signals outer, inner;

	(void)state;
	uni_signals_begin(&outer);
	assert_false(stops());
	assert_int_equal(raise(SIGINT), 0);
	assert_true(stops());
	uni_signals_begin(&inner);
	assert_true(stops());
	uni_signals_end(&inner);
	assert_true(stops());
	uni_signals_end(&outer);
	uni_signals_begin(&outer);
	assert_false(stops());
	uni_signals_end(&outer);
}

/* The end of one try does not end the next, but a user's request does. */
static void test_again(void **state)
{
	struct uni_signals s;

	(void)state;
	uni_signals_begin(&s);
	uni_signals_ask_to_stop();
	assert_true(stops());
	assert_true(uni_signals_go_on());
	assert_false(stops());
	assert_int_equal(raise(SIGTERM), 0);
	uni_signals_ask_to_stop();
	assert_false(uni_signals_go_on());
	assert_true(stops());
	uni_signals_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_within),
		cmocka_unit_test(test_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
