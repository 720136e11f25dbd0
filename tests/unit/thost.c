/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPU time that the host gave a guest, in the course of a recording however long it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tracing/host_time.h"
#include "backend/target.h"

static void columns(void **state)
{
	static const char *const bad[] = { "", "cpu", "cpu ", "cpu0 1 2 3 4 5 6 7 8\n",
		"cpu  1 2 3 4 5 6 7\n", "cpu  1 2 3 4 5 6 7 x\n", "cpu  1 2 3 4 5 6 7 8",
		"cpu  1 2 3 4 5 6 7 18446744073709551615 0\n" };
	uint64_t ns = 1;

	(void)state;
	assert_true(uni_thost_stolen("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1\n", 100, &ns));
	assert_int_equal(ns, 80000000);
	assert_true(uni_thost_stolen("cpu  1 2 3 4 5 6 7 0\n", 250, &ns));
	assert_int_equal(ns, 0);
	assert_false(uni_thost_stolen("cpu  1 2 3 4 5 6 7 8 9 10\n", 0, &ns));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(uni_thost_stolen(bad[i], 100, &ns));
}

/* It never has more than there is room for, nor leaves more than two steps out anywhere. */
static void a_long_one(void **state)
{
	static struct uni_thost h;
	uint64_t ns = 5, step;

	(void)state;
	for (uint32_t i = 0; i < 20000; i++) {
		if (ns >= h.next_ns)
			uni_thost_add(&h, ns, i, 2 * i);
		ns += 20 * UNI_NSEC_PER_MSEC;
	}
	assert_in_range(h.all.nr, UNI_RECORD_ON_CPU / 2, UNI_RECORD_ON_CPU);
	assert_int_equal(h.all.at[0].ns, 5);
	step = h.all.at[1].ns - h.all.at[0].ns;
	for (uint32_t i = 1; i < h.all.nr; i++) {
		assert_in_range(h.all.at[i].ns - h.all.at[i - 1].ns, 1, 2 * step);
		assert_int_equal(h.all.at[i].stolen_ns, 2 * h.all.at[i].on_ns);
	}
	assert_true(ns - h.all.at[h.all.nr - 1].ns <= 2 * step);
}

static int cpus;

static int nr_vcpus(struct uni_target *t)
{
	(void)t;
	return cpus;
}

static int on_cpu(struct uni_target *t, uint32_t vcpu, uint64_t *ret)
{
	(void)t;
	*ret = 9;
	return vcpu == 0 ? 0 : -UNI_ENOTSUP;
}

/* Only of one vCPU, by a target that can tell, and not again at once. */
static void when(void **state)
{
	static const struct uni_target_ops tells = { .nr_vcpus = nr_vcpus, .on_cpu = on_cpu },
					   silent = { .nr_vcpus = nr_vcpus };
	static struct uni_thost h;
	struct uni_target t = { .ops = &silent };

	(void)state;
	cpus = 1;
	uni_thost_look(&h, &t);
	assert_int_equal(h.all.nr, 0);
	t.ops = &tells;
	cpus = 2;
	uni_thost_look(&h, &t);
	assert_int_equal(h.all.nr, 0);
	cpus = 1;
	for (int i = 0; h.all.nr == 0 && i < 1000; i++) /* a look that took long is not taken */
		uni_thost_look(&h, &t);
	assert_int_equal(h.all.nr, 1);
	assert_int_equal(h.all.at[0].on_ns, 9);
	h.next_ns = UINT64_MAX;
	uni_thost_look(&h, &t);
	assert_int_equal(h.all.nr, 1);
}

static uint64_t gone_ns;

static int ready(struct uni_target *t, uint32_t vcpu, uint64_t *ret)
{
	(void)t;
	*ret = 100 * (vcpu + 1) + gone_ns;
	return 0;
}

static int ran(struct uni_target *t, uint32_t vcpu, uint64_t *ret)
{
	(void)t;
	*ret = 1000 * (vcpu + 1) + 3 * gone_ns;
	return 0;
}

/* All vCPUs together, from the first look on. */
static void sums(void **state)
{
	static const struct uni_target_ops tells = {
		.nr_vcpus = nr_vcpus, .on_cpu = ran, .ready = ready
	};
	static struct uni_thost h;
	struct uni_target t = { .ops = &tells };

	(void)state;
	cpus = 2;
	uni_thost_look(&h, &t);
	assert_int_equal(h.sum.on_ns + h.sum.ready_ns, 0);
	gone_ns = 7;
	uni_thost_look(&h, &t);
	assert_int_equal(h.sum.ready_ns, 0); /* not again at once */
	h.sum_next_ns = 0;
	uni_thost_look(&h, &t);
	assert_int_equal(h.sum.on_ns, 2 * 3 * 7);
	assert_int_equal(h.sum.ready_ns, 2 * 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns),
		cmocka_unit_test(a_long_one),
		cmocka_unit_test(when),
		cmocka_unit_test(sums),
	};

	return cmocka_run_group_tests_name("thost", tests, NULL, NULL);
}
