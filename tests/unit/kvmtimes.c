/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The time of a vCPU by state, from made-up counts of the kernel side. Nothing is told that no
 * sample tells.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "backend/kvm/bpf/stream.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples_divide),
		cmocka_unit_test(test_without_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
