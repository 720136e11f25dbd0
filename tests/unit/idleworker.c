/* SPDX-License-Identifier: BSD-2-Clause */
/* A signal that nobody waited for is lost only where somebody suffers from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "promise_events.h"

/* A worker with an empty queue: it was woken before by what was last signalled while it was busy.
 */
static void idle_worker(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	char *text;

	(void)state;
	create(NOBODY, 1, 19, "worker");
	create(NOBODY, 2, 8, "work");
	create(NOBODY, 3, 19, "producer");
	create(NOBODY, 4, 1, "never");
	create(NOBODY, 6, 19, "late starter");
	create(3, 7, 1, "elsewhere");
	ev(UNI_PE_SHOULD_RESOLVE, 4, NOBODY);
	for (unsigned i = 0; i < 5; i++) {
		ev(UNI_PE_SWITCH, 1, NOBODY);
		ev(UNI_PE_TRY_READ, 1, 2);
		ev(UNI_PE_SWITCH, 3, NOBODY);
		ev(UNI_PE_NOTIFY, 1, 2);
		ev(UNI_PE_SWITCH, 1, NOBODY);
		ev(UNI_PE_SWITCH, 3, NOBODY);
		ev(UNI_PE_NOTIFY, NOBODY, 2);
	}
	ev(UNI_PE_SWITCH, 1, NOBODY);
	ev(UNI_PE_TRY_READ, 1, 2);
	ev(UNI_PE_RESOLVE, 3, 6);
	ev(UNI_PE_SWITCH, NOBODY, NOBODY);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 1);
	assert_int_equal(f.all.v[0].kind, UNI_FINDING_UNRESOLVED);
	assert_int_equal(f.doubts.nr, 1);
	assert_int_equal(f.doubts.v[0].kind, UNI_FINDING_LOST_WAKEUP);
	assert_int_equal(f.doubts.v[0].who, uni_promise_find(b, 1));
	text = said(m, &f, 0);
	expect_text(text, "in doubt: missed a wake-up, or has nothing to do\n");
	expect_text(text, "worker began to wait for work, which producer had signalled at ");
	assert_null(strstr(text, "may be it"));
	free(text);
	uni_findings_deinit(&f);
}

/* Never woken before; it is a finding as soon as somebody suffers from it. */
static void who_suffers(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };

	for (unsigned who = 0; who < 4; who++) {
		begin(state);
		create(NOBODY, 9, 19, "main");
		create(9, 1, 19, "client");
		create(NOBODY, 2, 8, "reply");
		create(who == 1 ? 9 : NOBODY, 4, 1, "connection");
		if (who != 0)
			ev(UNI_PE_SHOULD_RESOLVE, 4, NOBODY);
		ev(UNI_PE_NOTIFY, NOBODY, 2);
		ev(UNI_PE_TRY_READ, 1, 2);
		if (who == 2)
			ev(UNI_PE_TRY_READ, 9, 1);
		m = uni_promise_builder_finish(b);
		assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
		assert_int_equal(f.doubts.nr, who == 0 || who == 3);
		assert_int_equal(f.all.nr, (who != 0) + (who == 1 || who == 2));
		uni_findings_deinit(&f);
		f = (struct uni_findings){ 0 };
		end(state);
	}
}

/* A connection went well; the next one is begun by the same thread, and misses its reply. */
static void second_time(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };

	for (unsigned early = 0; early < 2; early++) {
		begin(state);
		create(NOBODY, 1, 19, "tcp");
		create(NOBODY, 2, 8, "reply");
		create(NOBODY, 3, 19, "netif");
		ev(UNI_PE_TRY_READ, 1, 2);
		ev(UNI_PE_SWITCH, 3, NOBODY);
		ev(UNI_PE_NOTIFY, 1, 2);
		ev(UNI_PE_READ, 1, 2);
		for (unsigned i = 0; i < 2; i++) {
			if (i != early) {
				ev(UNI_PE_SWITCH, 3, NOBODY);
				ev(UNI_PE_NOTIFY, NOBODY, 2);
				continue;
			}
			create(1, 4, 1, "connection");
			ev(UNI_PE_SHOULD_RESOLVE, 4, NOBODY);
		}
		ev(UNI_PE_TRY_READ, 1, 2);
		m = uni_promise_builder_finish(b);
		assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
		assert_int_equal(f.doubts.nr, early);
		assert_int_equal(f.all.nr, 2 - early);
		uni_findings_deinit(&f);
		f = (struct uni_findings){ 0 };
		end(state);
	}
}

/* The connections were made by somebody else; the first one was resolved by who missed the second
 * reply. */
static void resolved_the_first(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	char *text;

	(void)state;
	for (uint64_t id = 4; id < 6; id++) {
		create(NOBODY, id, 1, "connection");
		ev(UNI_PE_SHOULD_RESOLVE, id, NOBODY);
	}
	create(NOBODY, 1, 19, "tcp");
	create(NOBODY, 2, 8, "reply");
	create(NOBODY, 3, 19, "netif");
	ev(UNI_PE_TRY_READ, 1, 2);
	ev(UNI_PE_SWITCH, 3, NOBODY);
	ev(UNI_PE_NOTIFY, 1, 2);
	ev(UNI_PE_READ, 1, 2);
	ev(UNI_PE_RESOLVE, 1, 4);
	ev(UNI_PE_SWITCH, 3, NOBODY);
	ev(UNI_PE_NOTIFY, NOBODY, 2);
	ev(UNI_PE_TRY_READ, 1, 2);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.doubts.nr, 0);
	assert_int_equal(f.all.nr, 2);
	assert_int_equal(f.all.v[0].kind, UNI_FINDING_LOST_WAKEUP);
	text = said(m, NULL, 5);
	expect_text(text, "tcp may be it, and missed a wake-up");
	free(text);
	uni_findings_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(idle_worker, begin, end),
		cmocka_unit_test(who_suffers),
		cmocka_unit_test(second_time),
		cmocka_unit_test_setup_teardown(resolved_the_first, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
