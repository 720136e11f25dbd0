/* SPDX-License-Identifier: BSD-2-Clause */
/* Code that goes on where the promise of its result has ended, and waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "promise_events.h"

/* Code of what has ended goes on: its waits end, and it is starved by nobody. */
static void waits_after_its_end(void **state)
{
	const struct uni_promise_model *m;
	const struct uni_promise_wait *w;
	struct uni_findings f = { 0 };

	(void)state;
	create(NOBODY, 1, 19, "server");
	for (uint64_t id = 2; id <= 5; id++)
		create(NOBODY, id, 0, "value");
	create(NOBODY, 7, 0, "heir");
	create(NOBODY, 6, 1, "task");
	ev(UNI_PE_BECOME, 6, 7);
	ev(UNI_PE_RESOLVE, 1, 1);
	ev(UNI_PE_RESOLVE, NOBODY, 7);
	ev(UNI_PE_TRY_READ, 1, 2); /* and runs again */
	ev(UNI_PE_RESOLVE, NOBODY, 2);
	ev(UNI_PE_READ, 1, 2);
	ev(UNI_PE_READ_LATER, 1, 3); /* comes, and nobody is heard of */
	ev(UNI_PE_READ_LATER, 1, 4); /* never comes */
	ev(UNI_PE_READ_LATER, 6, 5);
	ev(UNI_PE_SWITCH, 8, NOBODY);
	ev(UNI_PE_RESOLVE, 8, 3);
	for (int i = 0; i < 1000; i++) {
		now += 1000000;
		ev(UNI_PE_LABEL, 8, NOBODY);
	}
	m = uni_promise_builder_finish(b);
	w = m->waits.v;
	assert_int_equal(m->waits.nr, 4);
	assert_int_equal(w[0].end, w[0].ready + 1000);
	assert_false(w[0].given_up || w[0].after_end);
	assert_int_equal(w[1].end, w[1].ready);
	assert_false(w[1].given_up);
	for (int i = 2; i < 4; i++) {
		assert_int_equal(w[i].end, w[i].begin);
		assert_true(w[i].given_up && w[i].after_end);
	}
	assert_int_equal(of(m, 1)->nr_open + of(m, 6)->nr_open, 0);
	assert_int_equal(of(m, 1)->wait_ns, 2000);
	assert_int_equal(of(m, 6)->wait_ns, 0);
	assert_int_equal(uni_promise_wakeups(m, (const struct uni_promise_wait *[4]){ 0 }, 4), 1);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr + f.doubts.nr, 0);
	uni_findings_deinit(&f);
}

/* A thread ended and left code behind that hangs: it is a lost wake-up as for any other. */
static void missed_after_its_end(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };

	(void)state;
	create(NOBODY, 1, 19, "tcp");
	create(NOBODY, 2, UNI_PROMISE_TYPE_CONDITION, "arp reply");
	create(NOBODY, 3, 0, "tcp connection");
	ev(UNI_PE_SHOULD_RESOLVE, 3, NOBODY);
	ev(UNI_PE_RESOLVE, 1, 1);
	ev(UNI_PE_SWITCH, 4, NOBODY);
	ev(UNI_PE_NOTIFY, NOBODY, 2);
	ev(UNI_PE_TRY_READ, 1, 2);
	ev(UNI_PE_SWITCH, NOBODY, NOBODY);
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->waits.v[0].end, m->waits.v[0].begin);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 2);
	assert_int_equal(f.all.v[0].kind, UNI_FINDING_LOST_WAKEUP);
	assert_int_equal(f.all.v[1].kind, UNI_FINDING_UNRESOLVED);
	uni_findings_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(waits_after_its_end, begin, end),
		cmocka_unit_test_setup_teardown(missed_after_its_end, begin, end),
	};

	return cmocka_run_group_tests_name("afterend", tests, NULL, NULL);
}
