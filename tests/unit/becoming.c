/* SPDX-License-Identifier: BSD-2-Clause */
/* A promise that became another one keeps its own id, as Lwt names it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "promise_events.h"

/* X became Y, X becomes Z, X is resolved: of all three. */
static void named_by_the_first(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };

	(void)state;
	create(NOBODY, 1, 2, "main");
	ev(UNI_PE_SHOULD_RESOLVE, 1, NOBODY);
	create(1, 2, 2, "inner");
	ev(UNI_PE_TRY_READ, 9, 1);
	ev(UNI_PE_BECOME, 1, 2);
	create(1, 3, 2, "innermost");
	ev(UNI_PE_TRY_READ, 8, 1);
	ev(UNI_PE_BECOME, 1, 3);
	ev(UNI_PE_BECOME, 3, 1); /* nonsense: it would be itself */
	ev(UNI_PE_SWITCH, 1, NOBODY);
	ev(UNI_PE_RESOLVE, 1, 1);
	ev(UNI_PE_READ, 9, 1);
	ev(UNI_PE_READ, 8, 3);
	m = uni_promise_builder_finish(b);
	assert_int_equal(of(m, 1)->fate, UNI_FATE_BECAME);
	assert_int_equal(of(m, 2)->fate, UNI_FATE_BECAME);
	assert_int_equal(of(m, 3)->fate, UNI_FATE_RESOLVED);
	assert_int_equal(of(m, 1)->other, uni_promise_find(b, 2));
	assert_int_equal(of(m, 2)->other, uni_promise_find(b, 3));
	assert_int_equal(of(m, 3)->creator, uni_promise_find(b, 2));
	assert_int_equal(m->waits.nr, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(m->waits.v[i].ready, of(m, 3)->end);
		assert_int_equal(m->waits.v[i].end, of(m, 3)->end + 1000 * (i + 1));
	}
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr + f.doubts.nr, 0);
	uni_findings_deinit(&f);
}

/* It runs under its first name: what it waited for as that one has ended. */
static void waited_before(void **state)
{
	const struct uni_promise_model *m;

	(void)state;
	create(NOBODY, 1, 2, "bind");
	create(NOBODY, 2, 0, "value");
	create(NOBODY, 3, 2, "tail");
	ev(UNI_PE_READ_LATER, 1, 2);
	ev(UNI_PE_BECOME, 1, 3);
	ev(UNI_PE_RESOLVE, 4, 2);
	ev(UNI_PE_READ, 1, 2);
	ev(UNI_PE_SWITCH, 4, NOBODY);
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->waits.nr, 1);
	assert_int_equal(m->waits.v[0].end, m->waits.v[0].ready + 1000);
	assert_int_equal(of(m, 1)->nr_open, 0);
	assert_int_equal(of(m, 3)->nr_runs, 1);
}

/* A loop of Lwt: each turn becomes the next one, and only the last one is resolved. */
static void long_chain(void **state)
{
	const struct uni_promise_model *m;
	uint64_t id;

	(void)state;
	create(NOBODY, 1, 2, "loop");
	for (id = 1; id < 100000; id++) {
		ev(UNI_PE_CREATE, NOBODY, id + 1);
		ev(UNI_PE_BECOME, id, id + 1);
	}
	ev(UNI_PE_BECOME, id, 1); /* itself */
	ev(UNI_PE_RESOLVE, NOBODY, 1);
	m = uni_promise_builder_finish(b);
	assert_int_equal(of(m, id)->fate, UNI_FATE_RESOLVED);
	assert_int_equal(of(m, 1)->heir, uni_promise_find(b, id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(named_by_the_first, begin, end),
		cmocka_unit_test_setup_teardown(waited_before, begin, end),
		cmocka_unit_test_setup_teardown(long_chain, begin, end),
	};

	return cmocka_run_group_tests_name("becoming", tests, NULL, NULL);
}
