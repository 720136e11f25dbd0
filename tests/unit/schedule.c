/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/checked.h"
#include "sampling/schedule.h"
#include "recording/stats.h"

#define START 1000000000ull
#define MS    1000000ull

static void no_drift(void **state)
{
	struct uni_sched s;

	uni_sched_init(&s, START, 3.0, 0.1, false, 1);
	/* 30 years of thirds of a second: rounding does not add up. */
	for (uint64_t k = 0; k < 3000000000ull; k += 29999999) {
		uint64_t exact = START + (uint64_t)((unsigned __int128)k * 1000000000 / 3);

		s.k = k;
		assert_in_range(uni_sched_deadline(&s), exact - 256, exact + 256);
	}
}

static void jitter_covers_its_slot_evenly(void **state)
{
	unsigned tenth[2][10] = { 0 }; /* of even and of odd slots */
	uint64_t last = 0;
	struct uni_sched s;

	uni_sched_init(&s, START, 1000.0, 0.1, true, 12345);
	for (; s.k < 20000; s.k++) {
		uint64_t slot = START + s.k * MS, d = uni_sched_deadline(&s);

		assert_true(d >= slot && d - slot < MS);
		assert_true(s.k == 0 || d + 1 >= last + MS / 2);
		last = d;
		tenth[s.k % 2][(d - slot) * 10 / MS]++;
	}
	for (size_t i = 0; i < 20; i++) /* 1000 +- 30 (one sigma) */
		assert_in_range(tenth[i / 10][i % 10], 850, 1150);
}

/* Jitter may put two deadlines side by side: that alone must not meet the duty cap. */
static void served_in_time_skips_nothing(void **state)
{
	struct uni_sched s;

	uni_sched_init(&s, START, 1000.0, 0.1, true, 7);
	for (unsigned i = 0; i < 5000; i++) {
		uint64_t now = uni_sched_deadline(&s) + 1000;

		assert_int_equal(s.k, i);
		uni_sched_served(&s, now);
		/* One in a hundred takes long; it is paid from what the others left. */
		uni_sched_paused(&s, now, now + (i % 100 == 99 ? 4 * MS : 30000));
		uni_sched_advance(&s, now + 30000);
	}
	assert_int_equal(s.late, 0);
	assert_int_equal(s.skipped, 0);
}

static void late_slots_can_be_skipped(void **state)
{
	struct uni_sched s;
	uint64_t now = START + 50 * MS + 100000;

	uni_sched_init(&s, START, 1000.0, 1.0, false, 7);
	s.skip_late = true;
	uni_sched_served(&s, now);
	assert_int_equal(s.late, 1);
	uni_sched_advance(&s, now);
	assert_int_equal(s.skipped, 49); /* 1 .. 49 */
	assert_int_equal(s.throttled, 0);
	assert_int_equal(s.k, 50); /* 0.1 ms ago: as good as in time */
	uni_sched_served(&s, now);
	uni_sched_advance(&s, now);
	assert_int_equal(s.k, 51);
	assert_true(uni_sched_deadline(&s) > now);
	assert_int_equal(s.late, 1);
}

/* Serves a slot that takes no time, at its deadline or at now, whichever is later. */
static uint64_t serve_at(struct uni_sched *s, uint64_t now)
{
	now = uni_max(now, uni_sched_deadline(s));
	uni_sched_served(s, now);
	uni_sched_sampled(s, now);
	uni_sched_advance(s, now);
	return now;
}

static void a_delay_is_made_up_for(void **state)
{
	uint64_t now = START, last = START, nr = 0;
	struct uni_sched s;

	for (unsigned jitter = 0; jitter < 2; jitter++, nr = 0) {
		uni_sched_init(&s, START, 1000.0, 1.0, jitter, 7);
		for (now = START; now < START + 2000 * MS; nr++) {
			/* Nobody could look at the clock for 50 ms. */
			now = serve_at(&s, nr == 100 ? last + 50 * MS : now);
			assert_true(nr == 0 || now + 1 >= last + MS / 2);
			last = now;
		}
		assert_int_equal(s.skipped, 0);
		assert_in_range(s.late, 48, 51);
		assert_in_range(nr, 1999, 2001);
		assert_int_equal(s.lag_ns, 0);
	}
}

/* The guest keeps the sampler off for 5 ms, does one thing for 5 ms, and another for 10 ms. */
static void samples_after_delays_are_not_too_many(void **state)
{
	uint64_t now = START, nr[3] = { 0 };
	struct uni_sched s;

	uni_sched_init(&s, START, 1000.0, 1.0, true, 7);
	while (now < START + 60000 * MS) {
		uint64_t due = uni_max(now, uni_sched_deadline(&s)) - START, in = due % (20 * MS);

		if (in < 5 * MS)
			due += 5 * MS - in;
		now = serve_at(&s, START + due);
		nr[(now - START) % (20 * MS) / (5 * MS) == 1 ? 1 : 2]++;
	}
	assert_in_range(nr[1] + nr[2], 59900, 60001); /* none was given up */
	/* A third is right. In addition, the slot that each delay ends in is served at once. */
	assert_in_range(nr[1], 19500, 21900);
}

/* Samples that take longer than a period are as many as can be, and no delay is kept for ever. */
static void too_many_are_as_many_as_can_be(void **state)
{
	uint64_t now = START, nr = 0, skipped, throttled;
	struct uni_sched s;

	uni_sched_init(&s, START, 20000.0, 1.0, true, 7);
	for (; now < START + 5000 * MS; nr++)
		now = serve_at(&s, now) + 80000;
	assert_in_range(nr, 62000, 62501);
	uni_sched_end(&s, now);
	uni_sched_sum(&s, now, &skipped, &throttled);
	assert_in_range(nr + skipped, 99990, 100010);
	assert_int_equal(throttled, 0);
	assert_in_range(s.lag_ns, 900 * MS, 1001 * MS);
}

/* Naps that all end 0.6 ms late would cost two of three samples at 5 kHz, and none at 500 Hz. */
static void naps_that_are_too_long_are_avoided(void **state)
{
	static const double frequency[] = { 5000, 500 };
	struct uni_sched s;

	for (unsigned i = 0; i < 2; i++) {
		uint64_t now = START, naps = 0, nr = 0;

		uni_sched_init(&s, START, frequency[i], 1.0, true, 7);
		for (; now < START + 1000 * MS; nr++) {
			uint64_t due = uni_sched_deadline(&s);

			if (due > now && !uni_sched_avoids_nap(&s, due - now)) {
				uni_sched_napped(&s, due, due + MS * 6 / 10);
				now = due + MS * 6 / 10;
				naps++;
			}
			now = serve_at(&s, now) + 1000;
		}
		assert_in_range(nr, frequency[i] * 0.99, frequency[i] + 1);
		assert_in_range(naps, i == 0 ? 10 : 499, i == 0 ? 500 : 501);
	}
	/* One nap in time is enough to trust naps again. */
	uni_sched_init(&s, START, 5000, 1.0, true, 7);
	for (unsigned i = 0; i < 100; i++)
		uni_sched_napped(&s, START, START + MS);
	assert_true(uni_sched_avoids_nap(&s, MS / 2));
	assert_false(uni_sched_avoids_nap(&s, 2 * MS));
	uni_sched_napped(&s, START, START + 1000);
	assert_false(uni_sched_avoids_nap(&s, MS / 2));
}

static void a_week_is_skipped_at_once(void **state)
{
	struct uni_sched s;
	uint64_t now = START + 7 * 86400 * 1000 * MS;

	uni_sched_init(&s, START, 1e6, 1.0, true, 7);
	uni_sched_advance(&s, now);
	assert_in_range(uni_sched_deadline(&s), now - 1000 * MS - 1000, now - 1000 * MS + 2000);
	s.skip_late = true;
	uni_sched_advance(&s, now);
	assert_in_range(uni_sched_deadline(&s), now - 1000, now + 2000);
	assert_int_equal(s.skipped + 2, s.k);
}

static void duty_is_capped(void **state)
{
	struct uni_sched s;
	uint64_t now = START, paused = 0, served = 0;

	uni_sched_init(&s, START, 100000.0, 0.1, true, 7);
	while (now < START + 1000 * MS) {
		now = uni_sched_deadline(&s) > now ? uni_sched_deadline(&s) : now;
		uni_sched_served(&s, now);
		uni_sched_paused(&s, now, now + 50000);
		now += 50000;
		paused += 50000;
		served++;
		uni_sched_advance(&s, now);
	}
	assert_in_range(paused, 85 * MS, 100 * MS + 50000);
	assert_in_range(s.throttled, 80000, 100000);
	assert_int_equal(s.k, served + s.skipped);
	/* A cap of 1 is none. */
	uni_sched_init(&s, START, 1000.0, 1.0, false, 7);
	uni_sched_paused(&s, START, START + MS);
	uni_sched_advance(&s, START + MS);
	assert_int_equal(s.throttled, 0);
}

/* Two sorts of work of equal length by turns; a pause takes long during one of them. The part of
 * the weights that this one has, in percent; of the samples, in unweighted_ret. */
static unsigned part_of_costly(uint64_t turn_ns, unsigned *unweighted_ret)
{
	uint64_t now = START, paused = 0, nr[2] = { 0 }, weight[2] = { 0 };
	struct uni_sched s;

	uni_sched_init(&s, START, 199.0, 0.1, true, 7);
	while (now < START + 120000 * MS) {
		unsigned costly;
		uint64_t pause;

		now = uni_sched_deadline(&s) > now ? uni_sched_deadline(&s) : now;
		costly = (now - START - paused) / turn_ns % 2;
		pause = costly ? 10 * MS : MS / 10;
		uni_sched_served(&s, now);
		nr[costly]++;
		weight[costly] += s.weight;
		uni_sched_paused(&s, now, now + pause);
		now += pause;
		paused += pause;
		uni_sched_advance(&s, now);
	}
	assert_in_range(weight[0] + weight[1], s.k * 85 / 100, s.k);
	*unweighted_ret = (unsigned)(100 * nr[1] / (nr[0] + nr[1]));
	return (unsigned)(100 * weight[1] / (weight[0] + weight[1]));
}

static void weights_are_shares_of_the_time(void **state)
{
	static const uint64_t turn_ms[] = { 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 3000 };
	unsigned unweighted;

	for (size_t i = 0; i < sizeof(turn_ms) / sizeof(turn_ms[0]); i++) {
		assert_in_range(part_of_costly(turn_ms[i] * MS, &unweighted), 43, 57);
		/* In longer turns, the limit itself must leave deadlines out. */
		if (turn_ms[i] <= 500)
			assert_in_range(unweighted, 40, 60);
	}
}

/* The pause that a busy host made long once: it must not make one sample a twentieth of a minute.
 */
static void weight_of_a_chance_event_is_small(void **state)
{
	struct uni_sched s;

	uni_sched_init(&s, START, 100.0, 0.1, false, 7);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t now = uni_sched_deadline(&s);

		uni_sched_paused(&s, now, now + (i == 500 ? 300 * MS : 1000));
		uni_sched_advance(&s, now + (i == 500 ? 300 * MS : 1000));
		/* The pause skips 240 slots, and slows the pace down a little. */
		assert_in_range(s.weight, 1, i < 500 ? 1 : i == 500 ? 130 : 7);
	}
	assert_true(s.throttled > 200);
}

/* A quiet minute saves up for one long pause, not for several. */
static void credit_has_an_end(void **state)
{
	struct uni_sched s;
	uint64_t now = START, end;

	uni_sched_init(&s, START, 100.0, 0.1, false, 7);
	for (unsigned i = 0; i < 6000; i++) {
		now = uni_sched_deadline(&s);
		uni_sched_paused(&s, now, now + 1000);
		uni_sched_advance(&s, now + 1000);
	}
	assert_int_equal(s.throttled, 0);
	now = uni_sched_deadline(&s);
	end = now + 100 * MS; /* costs a second, and half of it was saved up */
	uni_sched_paused(&s, now, end);
	uni_sched_advance(&s, end);
	assert_in_range(uni_sched_deadline(&s), now + 500 * MS, now + 520 * MS);
}

/* After a long pause the next deadline may be behind the end: those in between were not missed. */
static void only_deadlines_of_the_run_are_skipped(void **state)
{
	uint64_t skipped, throttled, ends[] = { 1, 100, 1000, 1001, 3000, 60000 };
	struct uni_sched s;

	for (unsigned jitter = 0; jitter < 2; jitter++) {
		uni_sched_init(&s, START, 1000.0, 0.1, jitter, 3);
		s.skip_late = jitter;
		uni_sched_sum(&s, START + 5 * MS, &skipped, &throttled);
		assert_int_equal(skipped + throttled, 0);
		uni_sched_paused(&s, START + MS, START + 1000 * MS);
		uni_sched_advance(&s, START + 1000 * MS);
		assert_in_range(s.k, 9000, 40000); /* it is paid back */
		for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
			uni_sched_sum(&s, START + ends[i] * MS, &skipped, &throttled);
			/* One tick was served. Slot ends[i] has just begun. */
			assert_true(skipped + 1 <= ends[i] + 1);
			assert_true(skipped + 2 >= (ends[i] < s.k ? ends[i] : s.k));
			assert_true(throttled <= skipped);
			assert_true(ends[i] >= 1000 || throttled == 0 || !s.skip_late);
		}
		assert_int_equal(skipped, s.skipped);
		assert_int_equal(throttled, s.throttled);
	}
}

/* However late it was noticed that the run is over, each of its slots was served or skipped. */
static void the_last_deadlines_are_skipped(void **state)
{
	uint64_t skipped, throttled;
	struct uni_sched s;

	for (unsigned jitter = 0; jitter < 2; jitter++) {
		uni_sched_init(&s, START, 1000.0, 1.0, jitter, 3);
		for (unsigned i = 0; i < 10; i++)
			uni_sched_advance(&s, uni_sched_deadline(&s));
		uni_sched_end(&s, START + 5 * MS); /* nothing was due */
		assert_int_equal(s.skipped, 0);
		uni_sched_end(&s, START + 300 * MS);
		assert_int_equal(s.k, 300);
		uni_sched_sum(&s, START + 300 * MS, &skipped, &throttled);
		assert_int_equal(skipped, 290);
		assert_int_equal(throttled, 0);
		uni_sched_end(&s, START + 300 * MS);
		assert_int_equal(s.skipped, 290);
	}
}

/* Pauses of about the same length do not exceed the cap, not even the last one. */
static void usual_pauses_keep_to_the_cap(void **state)
{
	uint64_t now = START, paused = 0;
	struct uni_sched s;

	uni_sched_init(&s, START, 997.0, 0.1, true, 7);
	while (now < START + 3000 * MS) {
		uint64_t pause = 5 * MS + s.k % 7 * MS;

		now = uni_sched_deadline(&s) > now ? uni_sched_deadline(&s) : now;
		uni_sched_served(&s, now);
		uni_sched_paused(&s, now, now + pause);
		now += pause;
		paused += pause;
		if (now > START + 1200 * MS) /* from here on the reserve holds the longest */
			assert_true(paused * 10 <= now - START);
		uni_sched_advance(&s, now);
	}
	assert_in_range(paused, 260 * MS, 302 * MS);
}

/* The kernel keeps at most 2000 samples, but nobody reads more often than is of use. */
static void samples_are_fetched_before_they_are_many(void **state)
{
	static const struct {
		double frequency;
		uint32_t vcpus;
		uint64_t ns, turn_ns; /* and of a stream to be read after 8 samples of a vCPU */
	} want[] = { { 99.0, 1, 200 * MS, 80808080 }, { 200.0, 200, 50 * MS, 40 * MS },
		{ 200.0, 500, 20 * MS, 20 * MS }, { 5000.0, 2, 200 * MS, 10 * MS },
		{ 5000.0, 4, 100 * MS, 10 * MS }, { 2000.0, 16, 62500000, 10 * MS },
		{ 10000.0, 10, 20 * MS, 10 * MS }, { 100000.0, 64, 20 * MS, 10 * MS },
		{ 10.0, 1, 200 * MS, 200 * MS }, { 1.0, 0, 200 * MS, 200 * MS },
		{ 1e-9, 1, 200 * MS, 200 * MS } };

	for (size_t i = 0; i < uni_array_len(want); i++) {
		assert_int_equal(
			uni_sched_drain_ns(want[i].frequency, want[i].vcpus, 0), want[i].ns);
		assert_int_equal(
			uni_sched_drain_ns(want[i].frequency, want[i].vcpus, 8), want[i].turn_ns);
	}
}

static void quantiles(void **state)
{
	static struct uni_hist h;
	struct uni_pause_stats p;

	assert_int_equal(uni_hist_quantile(&h, 0.5), 0);
	for (uint64_t v = 1; v <= 100000; v++)
		uni_hist_add(&h, v);
	uni_hist_summary(&h, &p);
	assert_int_equal(p.nr, 100000);
	assert_int_equal(p.sum_ns, 5000050000ull);
	assert_int_equal(p.max_ns, 100000);
	assert_in_range(p.p50_ns, 50000 - 1600, 50000 + 1600);
	assert_in_range(p.p99_ns, 99000 - 3200, 100000);
	uni_hist_add(&h, UINT64_MAX);
	uni_hist_add(&h, UINT64_MAX);
	assert_int_equal(h.sum, UINT64_MAX);
	assert_int_equal(h.max, UINT64_MAX);
	assert_true(uni_hist_quantile(&h, 1.0) > UINT64_MAX / 100 * 96);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_drift),
		cmocka_unit_test(jitter_covers_its_slot_evenly),
		cmocka_unit_test(served_in_time_skips_nothing),
		cmocka_unit_test(late_slots_can_be_skipped),
		cmocka_unit_test(a_delay_is_made_up_for),
		cmocka_unit_test(samples_after_delays_are_not_too_many),
		cmocka_unit_test(too_many_are_as_many_as_can_be),
		cmocka_unit_test(naps_that_are_too_long_are_avoided),
		cmocka_unit_test(a_week_is_skipped_at_once),
		cmocka_unit_test(duty_is_capped),
		cmocka_unit_test(credit_has_an_end),
		cmocka_unit_test(only_deadlines_of_the_run_are_skipped),
		cmocka_unit_test(the_last_deadlines_are_skipped),
		cmocka_unit_test(usual_pauses_keep_to_the_cap),
		cmocka_unit_test(weights_are_shares_of_the_time),
		cmocka_unit_test(weight_of_a_chance_event_is_small),
		cmocka_unit_test(samples_are_fetched_before_they_are_many),
		cmocka_unit_test(quantiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
