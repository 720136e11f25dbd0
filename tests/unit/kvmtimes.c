/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The time of a vCPU by state, from made-up counts and records of the kernel side. Nothing is told
 * that no sample tells.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "backend/kvm/bpf/stream.h"

#define MANY 100

struct made {
	struct uni_bpf_guest guest;
	struct uni_bpf_vcpu vcpu;
	struct uni_kvm_bpf bpf;
	struct uni_kvm_stream s;
};

/* 10 s, of which the vCPU slept for 3 and waited for 1. */
static struct made *make_times(uint64_t guest, uint64_t kvm, uint64_t vmm)
{
	struct made *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->bpf.guest = &m->guest;
	m->bpf.vcpu = &m->vcpu;
	m->guest.flags = UNI_BPF_SPLIT;
	m->vcpu.idle_ns = 3000;
	m->vcpu.stolen_ns = 1000;
	m->vcpu.samples[UNI_BPF_GUEST] = guest;
	m->vcpu.samples[UNI_BPF_KVM] = kvm;
	m->vcpu.samples[UNI_BPF_VMM] = vmm;
	m->s.bpf = &m->bpf;
	m->s.nr_vcpus = 1;
	m->s.vcpu[0].since_ns = 5000;
	m->s.stop_ns = 15000;
	return m;
}

static struct uni_vcpu_times times_of(struct made *m)
{
	struct uni_vcpu_times t;

	assert_int_equal(uni_kvm_stream_times(&m->s, 0, &t), 0);
	assert_int_equal(t.idle_ns, 3000);
	assert_int_equal(t.stolen_ns, 1000);
	assert_true(t.split);
	free(m);
	return t;
}

static void test_samples_divide(void **state)
{
	struct uni_vcpu_times t = times_of(make_times(30, 20, 10));

	(void)state;
	assert_int_equal(t.guest_ns, 3000);
	assert_int_equal(t.kvm_ns, 2000);
	assert_int_equal(t.vmm_ns, 1000);
	assert_int_equal(t.unsampled_ns, 0);
}

static void test_without_samples(void **state)
{
	struct uni_vcpu_times t = times_of(make_times(0, 0, 0));

	(void)state;
	assert_int_equal(t.guest_ns + t.kvm_ns + t.vmm_ns, 0);
	assert_int_equal(t.unsampled_ns, 6000);
}

static unsigned nr_looks;
static uint64_t put_delay, put_queued, put_arrival; /* of each vCPU */

/* Instead of the kernel's: each look sees all vCPUs, in an order of its own. */
int __wrap_uni_kvm_scan(
	const struct uni_kvm_bpf *b, int pid, struct uni_kvm_scan *ret, struct uni_err *err);
int __wrap_uni_kvm_scan(
	const struct uni_kvm_bpf *b, int pid, struct uni_kvm_scan *ret, struct uni_err *err)
{
	(void)b;
	(void)pid;
	(void)err;
	nr_looks++;
	ret->nr_vcpus = MANY;
	for (uint32_t i = 0; i < MANY; i++) {
		ret->vcpu[i].id = MANY - 1 - i;
		ret->vcpu[i].vcpu.now_ns = ret->vcpu[i].vcpu.clock = 4000 + nr_looks;
		ret->vcpu[i].vcpu.delay = put_delay;
		ret->vcpu[i].vcpu.queued = put_queued;
		ret->vcpu[i].vcpu.on_rq = put_queued != 0;
		ret->vcpu[i].vcpu.arrival = put_arrival;
		ret->vcpu[i].vcpu.on_cpu = put_arrival != 0;
	}
	return 0;
}

/* Each has been off its CPU since 1000 of the scheduler's clock. */
static void test_one_look_for_all(void **state)
{
	struct made *m = make_times(0, 0, 0);
	struct uni_bpf_vcpu *v = calloc(MANY, sizeof(*v));

	assert_non_null(v);
	m->bpf.vcpu = v;
	m->s.running = true;
	m->s.nr_vcpus = MANY;
	m->guest.clock_off = 1;
	for (uint32_t i = 0; i < MANY; i++) {
		v[i].id = i;
		v[i].out_clock = 1001 + i;
		m->s.vcpu[i] = (struct uni_kvm_stream_vcpu){ .index = i, .since_ns = 1 };
	}
	for (unsigned round = 1; round <= 3; round++) {
		for (uint32_t i = 0; i < MANY; i++) {
			struct uni_vcpu_times t;

			assert_int_equal(uni_kvm_stream_times(&m->s, i, &t), 0);
			assert_int_equal(nr_looks, round);
			assert_int_equal(t.idle_ns, 4000 + round - 1 - (1001 + i));
		}
	}
	free(v);
	free(m);
}

/* 3000 of its clock have passed since it left the CPU: how much of that did it wait for one? */
static void expect_pending(uint32_t out_state, uint64_t stolen, uint64_t idle)
{
	struct made *m = make_times(0, 0, 0);
	struct uni_vcpu_times t;

	m->vcpu.idle_ns = m->vcpu.stolen_ns = 0;
	m->vcpu.id = MANY - 1;
	m->vcpu.out_clock = 1000;
	m->vcpu.out_delay = 500;
	m->vcpu.out_state = out_state;
	m->guest.clock_off = 1;
	m->s.running = true;
	m->s.vcpu[0].since_ns = 1;
	nr_looks = 0;
	assert_int_equal(uni_kvm_stream_times(&m->s, 0, &t), 0);
	assert_int_equal(t.stolen_ns, stolen);
	assert_int_equal(t.idle_ns, idle);
	free(m);
}

static void test_waits_are_not_idle(void **state)
{
	(void)state;
	expect_pending(UNI_BPF_HALTED, 0, 3000);
	put_delay = 500 + 700;
	expect_pending(UNI_BPF_HALTED, 700, 2300);
	/* It waits in the queue now. */
	put_queued = 3600;
	expect_pending(UNI_BPF_HALTED, 700 + 400, 1900);
	/* It runs again. */
	put_arrival = 2900;
	expect_pending(UNI_BPF_HALTED, 700, 1200);
	/* It was pushed off the CPU: it wanted to run all the time. */
	expect_pending(UNI_BPF_STOLEN, 1900, 0);
	put_delay = put_queued = put_arrival = 0;
}

#define PERIOD 1000u

struct handed {
	uint64_t weight[UNI_BPF_STATES];
	unsigned nr;
};

static void take_sample(void *ctx, const struct uni_stream_sample *s)
{
	struct handed *h = ctx;

	h->weight[s->state] += s->weight;
	h->nr++;
}

/* No time yet; what is handed over goes to this sink. */
static struct made *make_stream(const struct uni_stream_sink *sink)
{
	struct made *m = make_times(0, 0, 0);

	m->s.sink = sink;
	m->s.period_ns = PERIOD;
	return m;
}

/* One record of the kernel's ring: a sample, or an interval off the CPU. */
static void hand(struct made *m, uint8_t type, uint32_t state, uint64_t idle, uint64_t stolen)
{
	struct {
		struct uni_bpf_rec rec;
		struct uni_bpf_off off;
	} r = { .rec = { .type = type, .state = (uint8_t)state, .chain = UNI_BPF_NONE },
		.off = { .idle_ns = idle, .stolen_ns = stolen } };

	assert_int_equal(uni_kvm_stream_record(&m->s, &r, sizeof(r)), 0);
}

static void test_a_sample_weighs_one(void **state)
{
	struct handed h = { 0 };
	const struct uni_stream_sink sink = { .sample = take_sample, .ctx = &h };
	struct made *m = make_stream(&sink);

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		hand(m, UNI_BPF_SAMPLE, i < 2 ? UNI_BPF_KVM : UNI_BPF_GUEST, 0, 0);
	hand(m, UNI_BPF_INLINE, UNI_BPF_GUEST, 0, 0);
	assert_int_equal(h.nr, 6);
	assert_int_equal(h.weight[UNI_VCPU_KVM], 2);
	assert_int_equal(h.weight[UNI_VCPU_RUNNING], 4);
	assert_int_equal(m->s.delivered, 6);
	free(m);
}

/* The kernel counts samples, or the time off the CPU: what is new of it is handed over. */
static void test_counts_weigh_as_counted(void **state)
{
	uint64_t counts[UNI_BPF_STATES] = {
		[UNI_BPF_GUEST] = 6, [UNI_BPF_HALTED] = 2 * PERIOD + 500
	};
	const uint64_t pc = 0x1000;
	struct handed h = { 0 };
	const struct uni_stream_sink sink = { .sample = take_sample, .ctx = &h };
	struct made *m = make_stream(&sink);

	(void)state;
	m->guest.max_chains = 4;
	m->s.counts = counts;
	assert_int_equal(uni_kvm_stream_define(&m->s, 0, &pc, 1, UNI_STOP_ROOT), 0);
	for (unsigned i = 0; i < 2; i++) {
		uni_kvm_stream_counts(&m->s);
		assert_int_equal(h.weight[UNI_VCPU_RUNNING], 6);
		assert_int_equal(h.weight[UNI_VCPU_HALTED], 2);
	}
	counts[UNI_BPF_GUEST] += 3;
	counts[UNI_BPF_HALTED] += PERIOD - 500;
	uni_kvm_stream_counts(&m->s);
	assert_int_equal(h.weight[UNI_VCPU_RUNNING], 9);
	assert_int_equal(h.weight[UNI_VCPU_HALTED], 3);
	assert_int_equal(m->s.delivered, 9 + 3);
	free(m->s.chains.v[0].pc);
	uni_vec_free(&m->s.chains);
	free(m);
}

/* However the time is cut, there are as many samples as periods in it. */
static void test_time_is_counted_in_periods(void **state)
{
	struct handed h = { 0 };
	const struct uni_stream_sink sink = { .sample = take_sample, .ctx = &h };
	struct made *m = make_stream(&sink);

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		hand(m, UNI_BPF_OFF, UNI_BPF_HALTED, 270, 99);
	assert_int_equal(h.weight[UNI_VCPU_HALTED], 27);
	assert_int_equal(h.weight[UNI_VCPU_STOLEN], 9);
	hand(m, UNI_BPF_OFF, UNI_BPF_HALTED, 999, 5 * PERIOD + 99);
	assert_int_equal(h.weight[UNI_VCPU_HALTED], 27);
	assert_int_equal(h.weight[UNI_VCPU_STOLEN], 14);
	hand(m, UNI_BPF_OFF, UNI_BPF_HALTED, 1, 1);
	assert_int_equal(h.weight[UNI_VCPU_HALTED], 28);
	assert_int_equal(h.weight[UNI_VCPU_STOLEN], 15);
	assert_int_equal(m->s.delivered, 28 + 15);
	free(m);
}

/* Instead of what the kernel says of its programs. */
void __wrap_uni_kvm_bpf_cost(const struct uni_kvm_bpf *b, uint64_t *ns_ret, uint64_t *runs_ret);
void __wrap_uni_kvm_bpf_cost(const struct uni_kvm_bpf *b, uint64_t *ns_ret, uint64_t *runs_ret)
{
	(void)b;
	*ns_ret = 5000;
	*runs_ret = 50;
}

static void test_what_the_kernel_lost_is_told(void **state)
{
	struct made *m = make_times(0, 0, 0);
	struct uni_stream_stats st;

	(void)state;
	m->guest.lost = 7;
	m->guest.failed = 3;
	m->guest.runs = 20;
	m->s.delivered = 11;
	uni_kvm_stream_stats(&m->s, &st);
	assert_int_equal(st.lost, 7);
	assert_int_equal(st.failed, 3);
	assert_int_equal(st.samples, 11);
	assert_int_equal(st.host_runs, 20);
	assert_int_equal(st.host_ns, 2000);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples_divide),
		cmocka_unit_test(test_without_samples),
		cmocka_unit_test(test_one_look_for_all),
		cmocka_unit_test(test_waits_are_not_idle),
		cmocka_unit_test(test_a_sample_weighs_one),
		cmocka_unit_test(test_counts_weigh_as_counted),
		cmocka_unit_test(test_time_is_counted_in_periods),
		cmocka_unit_test(test_what_the_kernel_lost_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
