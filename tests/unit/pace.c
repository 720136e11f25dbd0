/* SPDX-License-Identifier: BSD-2-Clause */
/* The options that limit pauses, and the line that says what limited a recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/checked.h"
#include "app/pace.h"
#include "app/quality.h"

static double duty_of(const char *max_pause)
{
	const struct uni_pace p = { .max_pause = max_pause };
	struct uni_sampler_cfg cfg = { 0 };

	assert_int_equal(uni_pace_check(&p, NULL), 0);
	uni_pace_apply(&p, &cfg);
	return cfg.max_duty;
}

static void options_become_settings(void **state)
{
	static const char *const wrong[] = { "", "0", "-1", "101", "nan", "ten", "10 %" };
	struct uni_sampler_cfg cfg = { 0 };

	assert_true(duty_of(NULL) == 0.10);
	assert_true(duty_of("2.5") == 0.025);
	assert_true(duty_of("100") == 1.0);
	assert_true(duty_of("off") == 1.0);
	for (size_t i = 0; i < uni_array_len(wrong); i++)
		assert_int_equal(uni_pace_check(&(struct uni_pace){ .max_pause = wrong[i] }, NULL),
			-UNI_EUSAGE);
	assert_int_equal(uni_pace_check(&(struct uni_pace){ .sched = "rr" }, NULL), -UNI_EUSAGE);
	uni_pace_apply(&(struct uni_pace){ 0 }, &cfg);
	assert_true(cfg.hurry && !cfg.skip_late);
	uni_pace_apply(&(struct uni_pace){ .sched = "other", .skip_late = true }, &cfg);
	assert_true(!cfg.hurry && cfg.skip_late);
}

static void the_limit_is_named(void **state)
{
	static struct uni_record_meta m = { .frequency = 5000, .method = "pause" };
	struct uni_record_stats st = {
		.ticks = 9990, .skipped = 10, .max_duty = 0.05, .begin_ns = 1, .end_ns = 2000000001
	};
	char line[256] = "";

	assert_false(uni_pace_limited(line, sizeof(line), &m, &st));
	st.ticks = 4000;
	st.skipped = 6000;
	st.busy_ns = 4000 * 50000ull;
	assert_true(uni_pace_limited(line, sizeof(line), &m, &st));
	assert_string_equal(line,
		"asked for 5000 samples a second, got 2000: the sampler got no CPU of the host in "
		"time");
	st.busy_ns = 4000 * 400000ull;
	assert_true(uni_pace_limited(line, sizeof(line), &m, &st));
	assert_non_null(strstr(line, "got 2000: each took 400 us"));
	st.throttled = 5000;
	assert_true(uni_pace_limited(line, sizeof(line), &m, &st));
	assert_non_null(strstr(line, "got 2000: more would pause the guest for more than 5 % of "));
	memcpy(m.method, "bpf", 4); /* takes samples in time, or not at all */
	assert_false(uni_pace_limited(line, sizeof(line), &m, &st));
}

/* 20 samples that stand for 200 deadlines are 20. */
static void few_samples_are_few(void **state)
{
	static const struct uni_sample_filter shown = { 0 };
	struct uni_record_stats st = { .samples = 20, .weight = 200 };
	char why[UNI_QUALITY_METHOD];

	st.state[UNI_VCPU_RUNNING] = 200;
	assert_int_equal(uni_quality_doubt(why, NULL, &st, &shown), UNI_DOUBT_TOO_FEW);
	assert_non_null(strstr(why, "only 20 samples"));
	st.samples = 1;
	st.state[UNI_VCPU_RUNNING] = 2;
	assert_int_equal(uni_quality_doubt(why, NULL, &st, &shown), UNI_DOUBT_TOO_FEW);
	assert_non_null(strstr(why, "only 1 sample to"));
	st.state[UNI_VCPU_RUNNING] = 200;
	st.samples = 30;
	assert_int_equal(uni_quality_doubt(why, NULL, &st, &shown), UNI_DOUBT_NONE);
	/* By weight, as shares are. */
	st.unsure = 20;
	assert_int_equal(uni_quality_doubt(why, NULL, &st, &shown), UNI_DOUBT_NONE);
	st.unsure = 50;
	assert_int_equal(uni_quality_doubt(why, NULL, &st, &shown), UNI_DOUBT_UNSURE);
	assert_non_null(strstr(why, "25 % of the samples may be of the caller or of the callee"));
	/* 50 samples by pauses, of which one stands for 151 of 200 deadlines, are as good as one.
	 */
	st = (struct uni_record_stats){ .samples = 50, .weight = 200, .ticks = 50 };
	st.state[UNI_VCPU_RUNNING] = 200;
	st.squares[UNI_VCPU_RUNNING] = 49 + 151 * 151;
	assert_int_equal(uni_quality_doubt(why, NULL, &st, &shown), UNI_DOUBT_TOO_FEW);
	assert_non_null(strstr(why, "only 1 sample to"));
	/* If they stand for alike times, each counts. */
	st.squares[UNI_VCPU_RUNNING] = 50 * 16;
	assert_int_equal(uni_quality_doubt(why, NULL, &st, &shown), UNI_DOUBT_NONE);
	/* Those of the kernel are of alike times, however often a chain was seen. */
	st.ticks = 0;
	st.squares[UNI_VCPU_RUNNING] = 49 + 151 * 151;
	assert_int_equal(uni_quality_doubt(why, NULL, &st, &shown), UNI_DOUBT_NONE);
}

/* Stops for deep stacks of a process stand for unequal times. */
static void looks_are_told(void **state)
{
	static const struct uni_record_meta m = { .method = "perf", .info.vmm = "process" };
	static const struct uni_sample_filter shown = { 0 };
	struct uni_record_stats st = { .samples = 150, .weight = 5150, .pause.nr = 50 };
	char why[UNI_QUALITY_METHOD];

	st.state[UNI_VCPU_RUNNING] = 5150;
	st.squares[UNI_VCPU_RUNNING] = 100 + 50 * 101 * 101;
	assert_true(uni_pace_looks(why, &m, &st, &shown));
	assert_non_null(strstr(why, "as sure as those of 51 samples"));
	assert_int_equal(uni_quality_doubt(why, &m, &st, &shown), UNI_DOUBT_NONE);
	st.squares[UNI_VCPU_RUNNING] = 149 + 5001 * 5001;
	assert_int_equal(uni_quality_doubt(why, &m, &st, &shown), UNI_DOUBT_TOO_FEW);
	assert_non_null(strstr(why, "only 1 sample to"));
	/* Nothing was stopped, or only to find who called the kernel. */
	st.pause.nr = 0;
	assert_false(uni_pace_looks(why, &m, &st, &shown));
	assert_int_equal(uni_quality_doubt(why, &m, &st, &shown), UNI_DOUBT_NONE);
	st.pause.nr = 50;
	st.callers = 50;
	assert_false(uni_pace_looks(why, &m, &st, &shown));
	/* Few of the samples. */
	st = (struct uni_record_stats){ .samples = 5000, .weight = 5150, .pause.nr = 50 };
	st.state[UNI_VCPU_RUNNING] = 5150;
	st.squares[UNI_VCPU_RUNNING] = 4950 + 50 * 16;
	assert_false(uni_pace_looks(why, &m, &st, &shown));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_become_settings),
		cmocka_unit_test(the_limit_is_named),
		cmocka_unit_test(few_samples_are_few),
		cmocka_unit_test(looks_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
