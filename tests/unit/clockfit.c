/* SPDX-License-Identifier: BSD-2-Clause */
/* The line through a guest's clock. Intervals that contradict the others are refused, whatever they
 * look like. The bound holds from the first point to the last. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tracing/clock.h"
#include "tracing/clock_fit.h"

#define HZ    2700000000u
#define BEGIN 5000000000u /* ns */

static uint64_t random_state;

static uint64_t random_below(uint64_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % n;
}

static uint64_t cycles_at(uint64_t ns, uint64_t hz)
{
	return 1000000007 + (uint64_t)((unsigned __int128)(ns - BEGIN) * hz / UNI_NSEC_PER_SEC);
}

/* A true interval of up to `wide` ns around that moment. */
static struct uni_tclock_point true_at(uint64_t ns, uint64_t hz, uint64_t wide)
{
	return (struct uni_tclock_point){ cycles_at(ns, hz), ns - random_below(wide) - 1,
		ns + random_below(wide) + 1 };
}

static uint64_t off_at(const struct uni_record_clock *c, uint64_t ns, uint64_t hz)
{
	uint64_t line = uni_record_clock_ns(c, cycles_at(ns, hz));

	return line > ns ? line - ns : ns - line;
}

static struct uni_record_clock result(struct uni_tclock *c, uint64_t says)
{
	const struct uni_ring_info info = { .nr_cpus = 1, .tsc_hz = says };
	struct uni_record_clock r;

	uni_tclock_result(c, &info, 0, &r);
	return r;
}

static void forget(struct uni_tclock *c)
{
	assert_int_equal(uni_tclock_open(c, 0, 1, NULL, NULL), 0);
	c->host_ns = c->host_tsc = 0;
}

/* The bound holds at both ends and between, for frequencies that the guest knows or does not. */
static void bounded(void **state)
{
	struct uni_tclock clock = { 0 };

	for (unsigned n = 0; n < 2000; n++) {
		uint64_t hz = HZ - random_below(HZ / 2), first = 0, last = 0;
		uint64_t says = n % 3 == 0 ? hz : n % 3 == 1 ? 0 : hz + hz / 20;
		unsigned nr = 2 + (unsigned)random_below(150);
		struct uni_record_clock r;

		forget(&clock);
		for (unsigned i = 0; i < nr; i++) {
			uint64_t ns = BEGIN + i * 250000000ull + random_below(1000000);
			struct uni_tclock_point p =
				true_at(ns, hz, random_below(10) == 0 ? 5000000 : 3000);

			uni_tclock_add(&clock, 0, &p);
			first = first != 0 ? first : ns;
			last = ns;
		}
		r = result(&clock, says);
		if (says == hz)
			assert_int_equal(r.hz, hz);
		assert_true(r.error_ns != UINT64_MAX);
		/* If points were thinned out, the outermost may be gone. */
		if (nr <= UNI_TCLOCK_POINTS) {
			assert_true(off_at(&r, first, hz) <= r.error_ns + 1);
			assert_true(off_at(&r, last, hz) <= r.error_ns + 1);
			assert_true(off_at(&r, first / 2 + last / 2, hz) <= r.error_ns + 1);
		}
	}
	uni_tclock_close(&clock);
}

/* A point that is 21 ms off, between others, and narrower than all of them. */
static void contradicted(void **state)
{
	struct uni_tclock clock = { 0 };

	for (unsigned n = 0; n < 600; n++) {
		uint64_t says = n % 2 == 0 ? HZ : 0, bad = 1 + random_below(6);
		struct uni_record_clock r;

		forget(&clock);
		for (unsigned i = 0; i < 8; i++) {
			struct uni_tclock_point p = true_at(BEGIN + i * 250000000ull, HZ, 4000);

			if (i == bad) {
				p.from_ns += 21000000;
				p.to_ns = p.from_ns + 200;
			}
			uni_tclock_add(&clock, 0, &p);
		}
		r = result(&clock, says);
		assert_in_range(r.hz, HZ - HZ / 10000, HZ + HZ / 10000);
		assert_true(r.error_ns < 1000000);
		assert_true(off_at(&r, BEGIN, HZ) <= r.error_ns + 1);
		assert_true(off_at(&r, BEGIN + 7 * 250000000ull, HZ) <= r.error_ns + 1);
	}
	uni_tclock_close(&clock);
}

/* The guest was stopped, or its counter was set: no bound is stated that is not kept. */
static void stepped(void **state)
{
	const uint64_t second = UNI_NSEC_PER_SEC;
	struct uni_tclock clock = { 0 };
	unsigned bounds = 0;

	for (unsigned n = 0; n < 2000; n++) {
		uint64_t says = n % 2 == 0 ? HZ : 0, by = 10000000 + random_below(second);
		unsigned nr = 8 + (unsigned)random_below(40);
		unsigned at = n % 10 == 0 ? nr : 1 + (unsigned)random_below(nr - 1);
		/* It is set to what it would be, after two points or never. */
		unsigned until = n % 3 == 0 && at + 2 < nr ? at + 2 : nr;
		struct uni_record_clock r;

		forget(&clock);
		for (unsigned i = 0; i < nr; i++) {
			struct uni_tclock_point p =
				true_at(BEGIN + i * 250000000ull + (i < at ? 0 : by), HZ, 4000);

			if (i >= at && i < until) /* it stood still for so long */
				p.cycles -= cycles_at(BEGIN + by, HZ) - cycles_at(BEGIN, HZ);
			uni_tclock_add(&clock, 0, &p);
		}
		r = result(&clock, says);
		bounds += r.error_ns != UINT64_MAX;
		assert_true(at == nr || r.error_ns == UINT64_MAX);
	}
	assert_int_equal(bounds, 200); /* those that did not step */
	uni_tclock_close(&clock);
}

/* Two points do not overrule a host and a guest that agree: nothing is known then. */
static void agreed(void **state)
{
	struct uni_tclock clock = { 0 };
	struct uni_record_clock r;
	uint64_t hz;

	(void)state;
	assert_int_equal(uni_tclock_open(&clock, 1, 1, "/nonexistent", NULL), 0);
	if (clock.host_tsc == 0) {
		uni_tclock_close(&clock);
		skip(); /* this host has no counter */
	}
	/* With a point the host's frequency is measured; a guest of 1 MHz has no other. */
	while (uni_now_ns() - clock.host_ns < 60 * UNI_NSEC_PER_MSEC)
		;
	hz = result(&clock, 1000000).hz;
	assert_true(hz > 1000000);
	uni_tclock_add(
		&clock, 0, &(struct uni_tclock_point){ hz, clock.host_ns, clock.host_ns + 300 });
	uni_tclock_add(&clock, 0,
		&(struct uni_tclock_point){
			hz * 2, clock.host_ns + 946000000, clock.host_ns + 946000300 });
	r = result(&clock, hz);
	assert_in_range(r.hz, hz - hz / 1000, hz + hz / 1000);
	assert_int_equal(r.error_ns, UINT64_MAX);
	uni_tclock_close(&clock);
}

/* If there is no room, the narrower one of each two neighbours stays, in the order of time. */
static void thinned_out(void **state)
{
	struct uni_tclock_points p = { 0 };

	(void)state;
	for (uint64_t i = 0; i <= UNI_TCLOCK_POINTS; i++) {
		uint64_t ns = BEGIN + i * 1000000, wide = i % 4 == 0 || i % 4 == 3 ? 10 : 20;

		uni_tclock_keep(&p, &(struct uni_tclock_point){ i + 1, ns, ns + wide });
		uni_tclock_keep(&p, &(struct uni_tclock_point){ i + 1, ns, ns + 1 }); /* again */
		uni_tclock_keep(&p, &(struct uni_tclock_point){ i + 2, ns, 0 });      /* none */
		assert_int_equal(p.nr, i < UNI_TCLOCK_POINTS ? i + 1 : UNI_TCLOCK_POINTS / 2 + 1);
	}
	for (unsigned i = 0; i < UNI_TCLOCK_POINTS / 2; i++) {
		assert_int_equal(p.at[i].cycles, 2 * i + 1 + i % 2);
		assert_int_equal(p.at[i].to_ns - p.at[i].from_ns, 10);
	}
	assert_int_equal(p.at[p.nr - 1].cycles, UNI_TCLOCK_POINTS + 1);
	assert_ptr_equal(uni_tclock_narrowest(&p), &p.at[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounded),
		cmocka_unit_test(contradicted),
		cmocka_unit_test(stepped),
		cmocka_unit_test(agreed),
		cmocka_unit_test(thinned_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
