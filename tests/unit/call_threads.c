/* SPDX-License-Identifier: BSD-2-Clause */
/* Which threads --thread means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "app/call_threads.h"
#include "base/checked.h"

static const struct uni_trace_thread_name names[] = {
	{ .id = 0x7000, .number = 1, .name = "idle" },
	{ .id = 0x7100, .number = 2, .name = "netif" },
	{ .id = 0x7200, .number = 21, .name = "net-timer" },
};
static const struct uni_trace_input trace = { .thread = names, .nr_threads = 3 };

static void chosen(const char *text, const uint64_t *want, size_t nr)
{
	struct uni_call_threads t = { 0 };
	struct uni_calls_filter filter = { 0 };
	struct uni_err err = { 0 };

	assert_int_equal(uni_call_threads_add(&t, &trace, text, &err), 0);
	uni_call_threads_set(&t, &filter);
	assert_int_equal(filter.nr_thread, nr);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(filter.thread[i], want[i]);
	uni_call_threads_free(&t);
}

static void by_name_number_and_id(void **state)
{
	static const uint64_t net[] = { 0x7100, 0x7200 }, two[] = { 0x7100, 2 },
			      timer[] = { 0x7200, 21 }, id[] = { 28928 };

	chosen("netif", net, 1);
	chosen("net*", net, 2);
	chosen("net-timer", timer, 1);
	/* A number is one that the guest gave, and one that its switch records have. */
	chosen("2", two, 2);
	chosen("21", timer, 2);
	chosen("28928", id, 1);
}

static void several(void **state)
{
	struct uni_call_threads t = { 0 };
	struct uni_calls_filter filter = { 0 };
	struct uni_err err = { 0 };

	uni_call_threads_set(&t, &filter);
	assert_null(filter.thread); /* all of them */
	assert_int_equal(uni_call_threads_add(&t, &trace, "idle", &err), 0);
	assert_int_equal(uni_call_threads_add(&t, &trace, "net-*", &err), 0);
	uni_call_threads_set(&t, &filter);
	assert_int_equal(filter.nr_thread, 2);
	assert_int_equal(filter.thread[0], 0x7000);
	assert_int_equal(filter.thread[1], 0x7200);
	uni_call_threads_free(&t);
}

static void no_such_thread(void **state)
{
	struct uni_call_threads t = { 0 };
	struct uni_err err = { 0 };

	assert_int_equal(uni_call_threads_add(&t, &trace, "nobody", &err), -UNI_ENOENT);
	assert_string_equal(err.msg,
		"no thread 'nobody' in this trace; known are: idle-1, netif-2, "
		"net-timer-21");
	uni_call_threads_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_name_number_and_id),
		cmocka_unit_test(several),
		cmocka_unit_test(no_such_thread),
	};

	return cmocka_run_group_tests_name("call_threads", tests, NULL, NULL);
}
