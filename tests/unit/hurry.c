/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hurry.h"

static int policy(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static void there_and_back(void **state)
{
	struct uni_hurry h, inner;
	int before = policy();

	(void)state;
	uni_hurry_begin(&h);
	assert_int_equal(policy(), h.on ? SCHED_FIFO : before);
	if (!h.on)
		print_message("not permitted to go before others: that nothing changes is all\n");
	uni_hurry_begin(&inner);
	uni_hurry_end(&inner);
	assert_int_equal(policy(), h.on ? SCHED_FIFO : before);
	uni_hurry_end(&h);
	assert_int_equal(policy(), before);
	uni_hurry_end(&h); /* of nothing */
	assert_int_equal(policy(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(there_and_back) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
