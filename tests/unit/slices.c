/* SPDX-License-Identifier: BSD-2-Clause */
/* A plan of many places is written in stops of a few, each place once. The words that decide what
 * is recorded are written all at once, when nothing is half done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/checked.h"
#include "tracing/slices.h"

#define CODE 100 /* places */
#define KEYS 7
#define MOST 8 /* of a stop */
#define GAP  16

static struct {
	unsigned stops;	      /* that wrote */
	size_t most;	      /* places of one */
	bool code[CODE], key; /* written */
	unsigned half;	      /* stops after which the words said "on" and some code did not */
	unsigned again, fail_at;
	int fail;
} seen;

static struct uni_patch code[CODE], keys[KEYS];

static unsigned target_caps(struct uni_target *t)
{
	return UNI_CAP_WRITE_TEXT;
}

static size_t nr_written(void)
{
	size_t n = 0;

	for (size_t i = 0; i < CODE; i++)
		n += seen.code[i];
	return n;
}

static void write_place(const struct uni_patch *p, unsigned *nr_keys)
{
	size_t i = (size_t)(p->gpa / GAP);

	if (p->gpa % GAP != 0) {
		++*nr_keys;
		return;
	}
	assert_false(seen.code[i]);
	seen.code[i] = true;
}

static int target_write(struct uni_target *t, struct uni_patch_job *job)
{
	unsigned nr_keys = 0;

	if (seen.again != 0) {
		seen.again--;
		return -UNI_EAGAIN;
	}
	if (seen.fail != 0 && seen.stops == seen.fail_at) {
		job->bad = job->nr - 1;
		return seen.fail;
	}
	for (size_t i = 0; i < job->nr; i++)
		write_place(&job->patch[i], &nr_keys);
	assert_true(nr_keys == 0 || (nr_keys == KEYS && !seen.key));
	seen.key = seen.key || nr_keys != 0;
	seen.most = uni_max(seen.most, job->nr - nr_keys);
	seen.stops++;
	seen.half += seen.key && nr_written() != CODE;
	job->pause_ns = seen.stops;
	return 0;
}

static struct uni_target_ops ops = { .caps = target_caps, .write_text = target_write };

/* The words lie among the code, so that a stop has both in one order. */
static struct uni_trace_plan make_plan(size_t nr_code)
{
	memset(&seen, 0, sizeof(seen));
	for (size_t i = 0; i < CODE; i++)
		code[i] = (struct uni_patch){ .va = i * GAP, .gpa = i * GAP, .len = 5 };
	for (size_t i = 0; i < KEYS; i++)
		keys[i] = (struct uni_patch){
			.va = i * 13 * GAP + 8, .gpa = i * 13 * GAP + 8, .len = 4
		};
	return (struct uni_trace_plan){ .code = { code, nr_code, CODE },
		.keys = { keys, KEYS, KEYS } };
}

static struct uni_trace_stops write_plan(uint32_t most, size_t nr_code, bool on, int wanted)
{
	const struct uni_trace_plan plan = make_plan(nr_code);
	struct uni_target t = { .ops = &ops };
	struct uni_trace_stops stops = { 0 };

	ops.write_places = most;
	assert_int_equal(uni_trace_fits_one(&t, &plan), most == 0 || nr_code <= most);
	assert_int_equal(uni_trace_write(&t, &plan, on, &stops), wanted);
	return stops;
}

static void words_come_when_the_code_is_whole(void **state)
{
	struct uni_trace_stops s = write_plan(MOST, CODE, true, 0);

	assert_int_equal(seen.half, 0);
	assert_int_equal(nr_written(), CODE);
	assert_true(seen.key);
	assert_int_equal(seen.most, MOST);
	assert_int_equal(s.nr, (CODE + MOST - 1) / MOST);
	assert_int_equal(s.longest_ns, s.nr);
}

/* Off: first of all nothing is recorded any more. */
static void words_go_before_the_code(void **state)
{
	struct uni_trace_stops s = write_plan(MOST, CODE, false, 0);

	assert_int_equal(seen.half, s.nr - 1);
	assert_int_equal(nr_written(), CODE);
	assert_int_equal(s.nr, (CODE + MOST - 1) / MOST);
}

static void few_places_are_one_stop(void **state)
{
	assert_int_equal(write_plan(MOST, MOST, true, 0).nr, 1);
	assert_int_equal(write_plan(MOST, MOST + 1, true, 0).nr, 2);
	assert_int_equal(write_plan(MOST, 0, true, 0).nr, 1);
	assert_true(seen.key);
	assert_int_equal(write_plan(0, CODE, true, 0).nr, 1);
	assert_int_equal(nr_written(), CODE);
}

static void a_stop_is_tried_again(void **state)
{
	const struct uni_trace_plan plan = make_plan(CODE);
	struct uni_target t = { .ops = &ops };
	struct uni_trace_stops stops = { 0 };

	ops.write_places = MOST;
	seen.again = 3;
	assert_int_equal(uni_trace_write(&t, &plan, true, &stops), 0);
	assert_int_equal(stops.nr, (CODE + MOST - 1) / MOST);
	assert_int_equal(nr_written(), CODE);
}

/* Nothing is written behind a failure, least of all the words; the place to blame is named. */
static void a_failure_ends_it(void **state)
{
	const struct uni_trace_plan plan = make_plan(CODE);
	struct uni_target t = { .ops = &ops };
	struct uni_trace_stops stops = { 0 };

	ops.write_places = MOST;
	seen.fail = -UNI_EMISMATCH;
	seen.fail_at = 2;
	assert_int_equal(uni_trace_write(&t, &plan, true, &stops), -UNI_EMISMATCH);
	assert_int_equal(stops.nr, 2);
	assert_int_equal(nr_written(), 2 * MOST);
	assert_false(seen.key);
	assert_int_equal(stops.bad_va, (3 * MOST - 1) * GAP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_come_when_the_code_is_whole),
		cmocka_unit_test(words_go_before_the_code),
		cmocka_unit_test(few_places_are_one_stop),
		cmocka_unit_test(a_stop_is_tried_again),
		cmocka_unit_test(a_failure_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
