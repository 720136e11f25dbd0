/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that starve, and whether a thread or the host is to blame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/checked.h"
#include "promise_events.h"

/* 2 comes while 3 has the CPU, for `ms` yet, heard of every `step` ns; then 1 runs, who waited. */
static void one_hog(uint64_t ms, uint64_t step)
{
	uint64_t until;

	ev(UNI_PE_TRY_READ, 1, 2);
	ev(UNI_PE_SWITCH, 3, NOBODY);
	ev(UNI_PE_NOTIFY, 1, 2);
	for (until = now + ms * 1000000; now + step < until; now += step)
		assert_int_equal(uni_promise_builder_heard(b, 0, now + step), 0);
	now = until;
	ev(UNI_PE_READ, 1, 2);
}

static const struct uni_promise_model *hogs(unsigned nr, uint64_t ms, uint64_t step)
{
	create(NOBODY, 1, 19, "patient");
	create(NOBODY, 2, 8, "packet");
	create(NOBODY, 3, 19, "busy");
	for (unsigned i = 0; i < nr; i++)
		one_hog(ms, step);
	return uni_promise_builder_finish(b);
}

/* That it ran is seen in what it did. */
static void starvation(void **state)
{
	const struct uni_promise_model *m = hogs(1, 50, 1000000);
	struct uni_findings f = { 0 };

	(void)state;
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 1);
	assert_int_equal(f.doubts.nr, 0);
	assert_int_equal(f.all.v[0].kind, UNI_FINDING_STARVED);
	assert_int_equal(f.all.v[0].who, uni_promise_find(b, 1));
	assert_int_equal(f.all.v[0].other, uni_promise_find(b, 3));
	assert_int_equal(f.all.v[0].ns, 50001000);
	assert_int_equal(f.all.v[0].silent, 0);
	uni_findings_deinit(&f);
	assert_int_equal(uni_promise_findings(m, 60000000, &f), 0);
	assert_int_equal(f.all.nr, 0);
}

/* 1 sleeps for 20 ms by a promise of this name; 3 computes for 50 ms, and then 1 is woken. */
static size_t late_sleepers(const char *name, bool woken, uint64_t *ns_ret)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	uint64_t until;
	size_t nr;

	create(NOBODY, 1, 19, "sleeper");
	create(NOBODY, 3, 19, "busy");
	create(1, 2, 2, name);
	ev(UNI_PE_TRY_READ, 1, 2);
	ev(UNI_PE_SWITCH, 3, NOBODY);
	for (until = now + 50000000; now + 1000000 < until; now += 1000000)
		assert_int_equal(uni_promise_builder_heard(b, 0, now + 1000000), 0);
	now = until;
	create(3, 4, 19, "another");
	if (woken) {
		ev(UNI_PE_RESOLVE, 3, 2);
		ev(UNI_PE_READ, 1, 2);
	}
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	nr = f.all.nr;
	*ns_ret = nr != 0 ? f.all.v[0].ns : 0;
	if (nr != 0)
		assert_int_equal(f.all.v[0].other, uni_promise_find(b, 3));
	uni_findings_deinit(&f);
	return nr;
}

static void again(void)
{
	(void)end(NULL);
	assert_int_equal(begin(NULL), 0);
}

static void a_sleeper_is_late(void **state)
{
	static const char *const not_late[] = { "sleep 60000 us", "sleep 20000 ms", "sleep us",
		"sleep", "sleep 20000 us!", "sleep 99999999999999999999 us", "packet" };
	uint64_t ns;

	(void)state;
	assert_int_equal(late_sleepers("sleep 20000 us", true, &ns), 1);
	assert_in_range(ns, 29000000, 31000000);
	again();
	/* The trace may end before it is woken. */
	assert_int_equal(late_sleepers("sleep 20000 us", false, &ns), 1);
	for (size_t i = 0; i < uni_array_len(not_late); i++) {
		again();
		assert_int_equal(late_sleepers(not_late[i], true, &ns), 0);
	}
}

/* Nothing is heard of it: the host may have run something else. */
static void perhaps_the_host(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	char *text;

	(void)state;
	/* Its turns are short but for this one, which is silent. */
	for (int i = 0; i < 8; i++) {
		ev(UNI_PE_SWITCH, 3, NOBODY);
		ev(UNI_PE_SWITCH, 1, NOBODY);
	}
	m = hogs(1, 50, 40000000);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 0);
	assert_int_equal(f.doubts.nr, 1);
	assert_int_equal(f.doubts.v[0].other, uni_promise_find(b, 3));
	assert_int_equal(f.doubts.v[0].silent, 50001000);
	text = said(m, &f, 0);
	assert_int_equal(strncmp(text, "no finding in what is known\n", 28), 0);
	expect_text(text, "patient could run, and waited 50.001 ms; busy had the CPU, and nothing "
			  "was heard of it for 50.001 ms in all, 2 ms or more at a time\n");
	free(text);
	uni_findings_deinit(&f);
}

/* Most of its turns are that long: no host picks one thread. */
static void usual_hog(void **state)
{
	const struct uni_promise_model *m = hogs(3, 50, 60000000);
	struct uni_findings f = { 0 };

	(void)state;
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 3);
	assert_int_equal(f.doubts.nr, 0);
	assert_int_equal(f.all.v[0].silent, 50001000);
	uni_findings_deinit(&f);
}

/* So are those of others: that is the host. */
static void all_are_slow(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };

	(void)state;
	for (int i = 0; i < 20; i++) {
		ev(UNI_PE_SWITCH, 4 + i % 4, NOBODY);
		now += 40000000;
	}
	m = hogs(3, 50, 60000000);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 0);
	assert_int_equal(f.doubts.nr, 3);
	uni_findings_deinit(&f);
}

/* It waited for long, but only a moment of that for the one with the long turn. */
static void at_the_end_of_a_turn(void **state)
{
	struct uni_findings f = { 0 };

	(void)state;
	create(NOBODY, 1, 19, "patient");
	create(NOBODY, 2, 8, "packet");
	ev(UNI_PE_TRY_READ, 1, 2);
	ev(UNI_PE_SWITCH, 3, NOBODY);
	now += 45000000;
	ev(UNI_PE_NOTIFY, 1, 2);
	for (unsigned i = 0; i < 4; i++) {
		now += 5000000;
		ev(UNI_PE_SWITCH, 4 + i % 2, NOBODY);
	}
	ev(UNI_PE_READ, 1, 2);
	assert_int_equal(uni_promise_findings(uni_promise_builder_finish(b), 10000000, &f), 0);
	assert_int_equal(f.all.nr, 0);
	assert_int_equal(f.doubts.nr, 0);
	uni_findings_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(starvation, begin, end),
		cmocka_unit_test_setup_teardown(a_sleeper_is_late, begin, end),
		cmocka_unit_test_setup_teardown(perhaps_the_host, begin, end),
		cmocka_unit_test_setup_teardown(usual_hog, begin, end),
		cmocka_unit_test_setup_teardown(all_are_slow, begin, end),
		cmocka_unit_test_setup_teardown(at_the_end_of_a_turn, begin, end),
	};

	return cmocka_run_group_tests_name("starved", tests, NULL, NULL);
}
