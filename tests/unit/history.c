/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of a live view, and the way of samples into it. */
#include "profile/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "base/checked.h"
#include "sampling/sample_queue.h"

static const uint8_t no_flags[UNI_CHAIN_MAX];

static struct uni_sample sample(uint64_t t_ns, uint32_t vcpu, const uint64_t *pc, uint16_t nr)
{
	return (struct uni_sample){
		.t_ns = t_ns, .weight = 1, .vcpu = vcpu, .nr = nr, .pc = pc, .flags = no_flags
	};
}

static void add(struct uni_history *h, uint64_t t_ns, uint32_t vcpu, const uint64_t *pc,
	uint16_t nr, uint64_t weight)
{
	struct uni_sample s = sample(t_ns, vcpu, pc, nr);

	s.weight = weight;
	assert_int_equal(uni_history_add(h, &s), 0);
}

/* Sum of the weights of the chains whose leaf it is. */
static uint64_t weight_of(
	const struct uni_history *h, uint64_t leaf, uint64_t since_ns, uint64_t until_ns)
{
	size_t nr = uni_history_nr_chains(h);
	uint64_t *w = calloc(nr + 1, sizeof(*w)), sum = 0;
	struct uni_history_chain c;

	assert_non_null(w);
	uni_history_weigh(h, since_ns, until_ns, w);
	for (size_t i = 0; i < nr; i++) {
		if (uni_history_chain(h, i, &c) && c.nr != 0 && c.pc[0] == leaf)
			sum += w[i];
	}
	free(w);
	return sum;
}

static void test_windows(void **state)
{
	static const uint64_t a[] = { 1, 9 }, b[] = { 2, 9 };
	struct uni_history *h = uni_history_create(1 << 20);
	struct uni_history_info info;

	(void)state;
	assert_non_null(h);
	add(h, 100, 0, a, 2, 1);
	add(h, 200, 0, b, 2, 2);
	add(h, 300, 1, a, 2, 4);
	assert_int_equal(weight_of(h, 1, 0, UINT64_MAX), 5);
	assert_int_equal(weight_of(h, 2, 0, UINT64_MAX), 2);
	/* The window is open at its old end, closed at the new one. */
	assert_int_equal(weight_of(h, 1, 100, 300), 4);
	assert_int_equal(weight_of(h, 2, 100, 200), 2);
	assert_int_equal(weight_of(h, 1, 100, 299), 0);
	assert_int_equal(weight_of(h, 1, 99, 299), 1);
	/* All that was there by then. */
	assert_int_equal(weight_of(h, 1, 0, 299), 1);
	uni_history_info(h, &info);
	assert_int_equal(info.seen, 3);
	assert_int_equal(info.kept, 3);
	assert_int_equal(info.oldest_ns, 100);
	assert_int_equal(info.newest_ns, 300);
	uni_history_clear(h);
	assert_int_equal(weight_of(h, 1, 0, UINT64_MAX), 0);
	uni_history_info(h, &info);
	assert_int_equal(info.seen, 0);
	add(h, 400, 0, a, 2, 1);
	assert_int_equal(weight_of(h, 1, 0, UINT64_MAX), 1);
	uni_history_destroy(h);
}

static void test_same_chain_once(void **state)
{
	static const uint64_t a[] = { 1, 9 };
	static const uint8_t guess[] = { 0, UNI_FRAME_GUESS };
	struct uni_history *h = uni_history_create(1 << 20);
	struct uni_sample s = sample(1, 0, a, 2);

	(void)state;
	assert_non_null(h);
	for (int i = 0; i < 100; i++)
		assert_int_equal(uni_history_add(h, &s), 0);
	assert_int_equal(uni_history_nr_chains(h), 1);
	/* Another guest, vCPU, state, stop, flag or length makes another chain. */
	s.guest = 1;
	assert_int_equal(uni_history_add(h, &s), 0);
	s.vcpu = 1;
	assert_int_equal(uni_history_add(h, &s), 0);
	s.state = UNI_VCPU_HALTED;
	assert_int_equal(uni_history_add(h, &s), 0);
	s.stop = UNI_STOP_NOREGS;
	assert_int_equal(uni_history_add(h, &s), 0);
	s.flags = guess;
	assert_int_equal(uni_history_add(h, &s), 0);
	s.nr = 1;
	assert_int_equal(uni_history_add(h, &s), 0);
	s.nr = 0;
	assert_int_equal(uni_history_add(h, &s), 0);
	assert_int_equal(uni_history_add(h, &s), 0);
	assert_int_equal(uni_history_nr_chains(h), 8);
	s.nr = UNI_CHAIN_MAX + 1;
	assert_int_equal(uni_history_add(h, &s), -UNI_EINVAL);
	uni_history_destroy(h);
}

/* Few chains, many samples: the old samples go, what they weighed stays. */
static void test_old_samples_go(void **state)
{
	static const uint64_t a[] = { 1, 9 }, b[] = { 2, 9 };
	struct uni_history *h = uni_history_create(64 << 10);
	struct uni_history_info info;

	(void)state;
	assert_non_null(h);
	add(h, 1, 0, b, 2, 1);
	for (uint64_t t = 2; t <= 100000; t++)
		add(h, t, 0, a, 2, 1);
	uni_history_info(h, &info);
	assert_int_equal(info.seen, 100000);
	assert_in_range(info.kept, 500, 2000);
	assert_int_equal(info.oldest_ns, 100000 - info.kept + 1);
	assert_int_equal(info.forgotten, 0);
	assert_int_equal(weight_of(h, 1, 0, UINT64_MAX), 99999);
	assert_int_equal(weight_of(h, 2, 0, UINT64_MAX), 1);
	assert_int_equal(weight_of(h, 1, 1, UINT64_MAX), info.kept);
	uni_history_destroy(h);
}

/* Ever new chains: memory stays bounded, and no weight disappears from the books. */
static void test_many_chains(void **state)
{
	struct uni_history *h = uni_history_create(256 << 10);
	struct uni_history_info info;
	uint64_t pc[32] = { 0 }, sum = 0;
	struct uni_history_chain c;

	(void)state;
	assert_non_null(h);
	for (uint64_t t = 1; t <= 50000; t++) {
		pc[0] = t;
		add(h, t, 0, pc, 32, 1);
	}
	for (size_t i = 0; i < uni_history_nr_chains(h); i++) {
		if (uni_history_chain(h, i, &c))
			sum += c.weight;
	}
	uni_history_info(h, &info);
	assert_in_range(uni_history_nr_chains(h), 100, (128 << 10) / (32 * 9));
	assert_in_range(info.kept, 50, 50000);
	assert_int_equal(sum + info.forgotten, 50000);
	assert_int_equal(weight_of(h, 50000, 0, UINT64_MAX), 1);
	assert_int_equal(weight_of(h, 1, 0, UINT64_MAX), 0);
	uni_history_destroy(h);
}

static int collect(void *ctx, const struct uni_sample *s)
{
	struct uni_sample *want = ctx;

	assert_int_equal(s->t_ns, want->t_ns);
	assert_int_equal(s->pause_ns, want->pause_ns);
	assert_int_equal(s->thread, want->thread);
	assert_int_equal(s->guest, want->guest);
	assert_int_equal(s->vcpu, want->vcpu);
	assert_int_equal(s->state, want->state);
	assert_int_equal(s->nr, 3);
	assert_int_equal(s->pc[2], 7);
	want->t_ns++;
	return want->t_ns == 5 ? 77 : 0;
}

static void test_each(void **state)
{
	static const uint64_t pc[] = { 5, 6, 7 };
	struct uni_history *h = uni_history_create(0);
	struct uni_sample s = sample(1, 3, pc, 3);

	(void)state;
	assert_non_null(h);
	s.guest = 5;
	s.pause_ns = 11;
	s.thread = 22;
	s.state = UNI_VCPU_HALTED;
	for (; s.t_ns < 10; s.t_ns++)
		assert_int_equal(uni_history_add(h, &s), 0);
	s.t_ns = 1;
	assert_int_equal(uni_history_each(h, collect, &s), 77);
	assert_int_equal(s.t_ns, 5);
	uni_history_destroy(h);
}

/* The queue */

static void test_queue_full(void **state)
{
	uint64_t pc[UNI_CHAIN_MAX] = { 0 };
	struct uni_sampleq *q = uni_sampleq_create(0);
	struct uni_sample s = sample(1, 0, pc, UNI_CHAIN_MAX), got;
	uint64_t pushed = 0;

	(void)state;
	assert_non_null(q);
	assert_false(uni_sampleq_pop(q, &got));
	while (uni_sampleq_push(q, &s))
		s.t_ns = ++pushed + 1;
	assert_true(pushed >= 1);
	assert_int_equal(uni_sampleq_lost(q), 1);
	s.weight = 5;
	assert_false(uni_sampleq_push(q, &s));
	assert_int_equal(uni_sampleq_lost(q), 6);
	for (uint64_t t = 1; t <= pushed; t++) {
		assert_true(uni_sampleq_pop(q, &got));
		assert_int_equal(got.t_ns, t);
		assert_int_equal(got.nr, UNI_CHAIN_MAX);
	}
	assert_false(uni_sampleq_pop(q, &got));
	s.nr = UNI_CHAIN_MAX + 1;
	assert_false(uni_sampleq_push(q, &s));
	uni_sampleq_destroy(q);
}

#define MANY 200000u

struct feeder {
	struct uni_sampleq *q;
	uint64_t dropped;
};

static void *feed(void *arg)
{
	struct feeder *f = arg;
	uint64_t pc[64];
	uint8_t flags[64];

	for (uint64_t i = 0; i < MANY; i++) {
		uint16_t nr = (uint16_t)(i % 64);
		struct uni_sample s = { .t_ns = i,
			.weight = 1,
			.guest = (uint32_t)i,
			.nr = nr,
			.pc = pc,
			.flags = flags };

		for (uint16_t k = 0; k < nr; k++) {
			pc[k] = i * 64 + k;
			flags[k] = (uint8_t)(i + k);
		}
		/* Mostly patient, so that both full and empty happen. */
		for (int tries = 0; !uni_sampleq_push(f->q, &s); tries++) {
			if (tries == 1000) {
				f->dropped++;
				break;
			}
			(void)sched_yield();
		}
	}
	return NULL;
}

static void test_queue_between_threads(void **state)
{
	struct feeder f = { .q = uni_sampleq_create(0) };
	uint64_t got = 0, next = 0;
	struct uni_sample s;
	pthread_t t;

	(void)state;
	assert_non_null(f.q);
	assert_int_equal(pthread_create(&t, NULL, feed, &f), 0);
	while (next != MANY) {
		if (!uni_sampleq_pop(f.q, &s)) {
			/* The last ones may have been dropped. */
			if (pthread_tryjoin_np(t, NULL) != 0) {
				(void)sched_yield();
				continue;
			}
			while (uni_sampleq_pop(f.q, &s))
				got++;
			t = 0;
			break;
		}
		assert_true(s.t_ns >= next);
		assert_int_equal(s.nr, s.t_ns % 64);
		assert_int_equal(s.guest, s.t_ns);
		for (uint16_t k = 0; k < s.nr; k++) {
			assert_int_equal(s.pc[k], s.t_ns * 64 + k);
			assert_int_equal(s.flags[k], (uint8_t)(s.t_ns + k));
		}
		next = s.t_ns + 1;
		got++;
	}
	if (t != 0)
		assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(got + f.dropped, MANY);
	uni_sampleq_destroy(f.q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_same_chain_once),
		cmocka_unit_test(test_old_samples_go),
		cmocka_unit_test(test_many_chains),
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_queue_full),
		cmocka_unit_test(test_queue_between_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
