/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that computes in silence starves others, if the host says that it gave the guest a
 * CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "promise_events.h"

#define MS UINT64_C(1000000)

enum { HOG = 1, VICTIM, REQUEST };

static uint64_t since; /* hog's turn */

/* The victim could run, and hog had the CPU for 300 ms of which nothing was heard. */
static void a_long_turn(void)
{
	now = 1000 * MS;
	create(NOBODY, HOG, 19, "hog");
	create(NOBODY, VICTIM, 19, "victim");
	create(NOBODY, REQUEST, 0, "request");
	ev(UNI_PE_SWITCH, VICTIM, NOBODY);
	ev(UNI_PE_TRY_READ, VICTIM, REQUEST);
	ev(UNI_PE_SWITCH, HOG, NOBODY);
	ev(UNI_PE_RESOLVE, HOG, REQUEST);
	since = now;
	now += 300 * MS;
	ev(UNI_PE_SWITCH, VICTIM, NOBODY);
	ev(UNI_PE_READ, VICTIM, REQUEST);
}

static void look(uint64_t ns, uint64_t on_ns, uint64_t stolen_ns, uint64_t error_ns)
{
	assert_int_equal(uni_promise_builder_on_cpu(b,
				 &(struct uni_promise_on_cpu){
					 .ns = ns, .on_ns = on_ns, .stolen_ns = stolen_ns },
				 error_ns),
		0);
}

/* One is starved, either way; returns what the host gave, 0 where that is in doubt. */
static uint64_t judged(void)
{
	const struct uni_promise_model *m = uni_promise_builder_finish(b);
	struct uni_findings f = { 0 };
	uint64_t ret = 0;

	assert_int_equal(uni_promise_findings(m, 100 * MS, &f), 0);
	assert_int_equal(f.all.nr + f.doubts.nr, 1);
	if (f.all.nr == 1) {
		char *text = said(m, &f, 0);

		expect_text(text, "starved: victim could run");
		expect_text(text, "the host gave the guest a CPU for ");
		free(text);
		assert_int_equal(f.all.v[0].kind, UNI_FINDING_STARVED);
		ret = f.all.v[0].on_cpu;
		assert_true(ret >= 100 * MS);
	}
	uni_findings_deinit(&f);
	return ret;
}

static void nothing_known(void **state)
{
	(void)state;
	a_long_turn();
	assert_int_equal(judged(), 0);
}

static void it_computed(void **state)
{
	uint64_t on;

	(void)state;
	a_long_turn();
	for (uint64_t i = 0; i <= 20; i++)
		look(since - 50 * MS + i * 20 * MS, 7 * MS + i * 20 * MS, 5, 100);
	on = judged();
	assert_true(on >= 250 * MS && on <= 300 * MS);
}

/* Asleep, or kept waiting by the host, for most of it. */
static void it_did_not(void **state)
{
	(void)state;
	a_long_turn();
	for (uint64_t i = 0; i <= 20; i++)
		look(since - 50 * MS + i * 20 * MS, 7 * MS + i * 6 * MS, 0, 100);
	assert_int_equal(judged(), 0);
}

/* All that it had may have been before that. */
static void before(void **state)
{
	(void)state;
	a_long_turn();
	look(since - 200 * MS, 0, 0, 0);
	look(since + 310 * MS, 290 * MS, 0, 0);
	assert_int_equal(judged(), 0);
}

/* But not if there was too much of it. */
static void too_much_for_that(void **state)
{
	uint64_t on;

	(void)state;
	a_long_turn();
	look(since - 20 * MS, 0, 0, 0);
	look(since + 320 * MS, 330 * MS, 0, 0);
	on = judged();
	assert_true(on >= 270 * MS && on <= 290 * MS);
}

/* The host itself is a guest, and had less than it thinks. */
static void stolen(void **state)
{
	(void)state;
	a_long_turn();
	for (uint64_t i = 0; i <= 20; i++)
		look(since - 50 * MS + i * 20 * MS, i * 20 * MS, i * 15 * MS, 0);
	assert_int_equal(judged(), 0);
}

/* How the times go with each other is known to 120 ms. */
static void vague(void **state)
{
	(void)state;
	a_long_turn();
	for (uint64_t i = 0; i <= 20; i++)
		look(since - 50 * MS + i * 20 * MS, i * 20 * MS, 0, 120 * MS);
	assert_int_equal(judged(), 0);
}

/* A count that stood still for a second and then caught up tells of no time in particular. */
static void late(void **state)
{
	(void)state;
	a_long_turn();
	look(since - 10 * MS, 0, 0, 0);
	look(since + 200 * MS, 10 * MS, 0, 0);
	look(since + 220 * MS, 1000 * MS, 0, 0);
	look(since + 400 * MS, 1000 * MS, 0, 0);
	assert_int_equal(judged(), 0);
}

/* Nonsense is left out. */
static void nonsense(void **state)
{
	uint64_t on;

	(void)state;
	a_long_turn();
	for (uint64_t i = 0; i <= 20; i++) {
		look(since - 50 * MS + i * 20 * MS, i * 20 * MS, 5, 0);
		look(since - 50 * MS + i * 20 * MS, UINT64_MAX, UINT64_MAX, 0);
		look(0, 0, 0, 0);
		look(since - 50 * MS + i * 20 * MS + 1, 0, 0, 0);
	}
	on = judged();
	assert_in_range(on, 250 * MS, 300 * MS);
}

/* The last turn, until the end of the trace; returns how many were starved without a doubt. */
static size_t last_turn(uint64_t lost)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	size_t ret;

	a_long_turn();
	ev(UNI_PE_TRY_READ, VICTIM, REQUEST + 1);
	ev(UNI_PE_SWITCH, HOG, NOBODY);
	ev(UNI_PE_RESOLVE, HOG, REQUEST + 1);
	uni_promise_builder_end(b, now + 500 * MS);
	uni_promise_builder_lost(b, lost, false);
	for (uint64_t i = 0; i <= 25; i++)
		look(now - 50 * MS + i * 20 * MS, i * 20 * MS, 0, 0);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 400 * MS, &f), 0);
	assert_int_equal(f.all.nr + f.doubts.nr, 1);
	ret = f.all.nr;
	uni_findings_deinit(&f);
	return ret;
}

static void until_the_end(void **state)
{
	(void)state;
	assert_int_equal(last_turn(0), 1);
}

/* An event that is missing behind the last one may have switched to another thread. */
static void lost_behind(void **state)
{
	(void)state;
	assert_int_equal(last_turn(3), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_known),
		TEST(it_computed),
		TEST(it_did_not),
		TEST(before),
		TEST(too_much_for_that),
		TEST(stolen),
		TEST(vague),
		TEST(late),
		TEST(nonsense),
		TEST(until_the_end),
		TEST(lost_behind),
	};

	return cmocka_run_group_tests_name("promise_oncpu", tests, NULL, NULL);
}
