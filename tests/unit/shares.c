/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples stand for the time that the host counted, however often the sampler finds which state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sampling/shares.h"

#define PERIOD_NS 10000000u
#define LOOKS	  3000u

static uint64_t on_ns, ready_ns;

static int host_times(struct uni_target *t, uint32_t vcpu, uint64_t *on_ret, uint64_t *ready_ret)
{
	(void)t;
	(void)vcpu;
	*on_ret = on_ns;
	*ready_ret = ready_ns;
	return 0;
}

/*
 * A look finds it asleep at two of ten times, as it is, but running at one of ten only: it is so
 * for three. The sum of weights by state.
 */
static void look_often(const struct uni_target_ops *ops, uint64_t sum[UNI_VCPU_STOLEN + 1])
{
	const struct uni_vcpuset one = uni_vcpuset_one(0);
	struct uni_target t = { .ops = ops };
	struct uni_shares *s = NULL;

	assert_int_equal(uni_shares_create(&t, 1, PERIOD_NS, &s, NULL), 0);
	on_ns = ready_ns = 0;
	for (unsigned i = 1; i <= LOOKS; i++) {
		struct uni_regs regs = { .state = i % 10 == 0  ? UNI_VCPU_RUNNING
						  : i % 5 == 1 ? UNI_VCPU_HALTED
							       : UNI_VCPU_STOLEN };
		struct uni_share share = { 0 };

		on_ns += PERIOD_NS / 10 * 3;
		ready_ns += PERIOD_NS / 10 * 5;
		uni_shares_held(s, &one, &regs, (uint64_t)i * PERIOD_NS);
		if (!uni_shares_take(s, 0, i, regs.state, &share))
			continue;
		sum[regs.state] += share.own;
		sum[UNI_VCPU_STOLEN] += share.stolen;
	}
	uni_shares_destroy(s);
}

static void sure_states(void **state)
{
	static const struct uni_target_ops ops = { .host_times = host_times,
		.tells_waiting = true };
	uint64_t sum[UNI_VCPU_STOLEN + 1] = { 0 };

	(void)state;
	look_often(&ops, sum);
	assert_in_range(sum[UNI_VCPU_RUNNING], LOOKS / 10 * 3 - 30, LOOKS / 10 * 3 + 30);
	assert_in_range(sum[UNI_VCPU_STOLEN], LOOKS / 10 * 5 - 30, LOOKS / 10 * 5 + 30);
	assert_in_range(sum[UNI_VCPU_HALTED], LOOKS / 10 * 2 - 30, LOOKS / 10 * 2 + 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sure_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
