/* SPDX-License-Identifier: BSD-2-Clause */
/* The registers that KVM keeps of a vCPU, as SVM, VMX, arm64 and old kernels fill its structures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define UNI_BPF_PORT "../support/bpf_port.h"
#include "backend/kvm/bpf/guest.bpf.h"

static void absent(const char *a, const char *b, const char *c)
{
	memset(bpf_absent, 0, sizeof(bpf_absent));
	bpf_absent[0] = "___arm64";
	bpf_absent[1] = a;
	bpf_absent[2] = b;
	bpf_absent[3] = c;
}

static struct kvm_vcpu a_vcpu(void)
{
	struct kvm_vcpu v = { .arch = { .regs_avail = ~0u,
				      .cr0 = 0x80000011,
				      .cr3 = 0x21c000,
				      .cr4 = 0x20,
				      .efer = 0x500 } };

	v.arch.regs[4] = 0x1111;
	v.arch.regs[5] = 0x2222;
	v.arch.regs[16] = 0x3333;
	return v;
}

static const uint32_t all =
	UNI_BPF_HAVE_PC | UNI_BPF_HAVE_SP | UNI_BPF_HAVE_CR0 | UNI_BPF_HAVE_CR3 | UNI_BPF_HAVE_CR4;

/* SVM and software KVMs: everything is there after each exit. */
static void test_registers_svm(void **state)
{
	struct kvm_vcpu v = a_vcpu();
	struct uni_bpf_regs r = { 0 };

	absent(NULL, NULL, NULL);
	uni_regs_read(&v, &r);
	assert_int_equal(r.have, all);
	assert_int_equal(r.pc, 0x3333);
	assert_int_equal(r.sp, 0x1111);
	assert_int_equal(r.fp, 0x2222);
	assert_int_equal(r.cr0, 0x80000011);
	assert_int_equal(r.cr3, 0x21c000);
	assert_int_equal(r.cr4, 0x20);
	assert_int_equal(r.efer, 0x500);
	/* A kernel from before control registers were cached lazily. */
	absent("VCPU_EXREG_CR0", "VCPU_EXREG_CR3", "VCPU_EXREG_CR4");
	v.arch.regs_avail = 0x1ffff;
	uni_regs_read(&v, &r);
	assert_int_equal(r.have, all);
}

/* VMX: rip, rsp and control registers are only there when somebody has asked. */
static void test_registers_vmx(void **state)
{
	const uint32_t lazy = 1u << 16 | 1u << 4 | 1u << 18 | 1u << 19 | 1u << 20;
	struct uni_bpf_guest g = { .cr3 = 0x777000, .sys_have = UNI_BPF_HAVE_CR3 };
	struct kvm_vcpu v = a_vcpu();
	struct uni_bpf_regs r = { 0 };

	absent(NULL, NULL, NULL);
	v.arch.regs_avail = ~lazy;
	uni_regs_read(&v, &r);
	assert_int_equal(r.have, 0);
	assert_int_equal(r.fp, 0x2222);
	v.arch.regs_avail = ~lazy | 1u << 16; /* perf asked for rip */
	uni_regs_read(&v, &r);
	assert_int_equal(r.have, UNI_BPF_HAVE_PC);
	assert_int_equal(r.pc, 0x3333);
	uni_regs_complete(&r, &g);
	assert_int_equal(r.cr3, 0x777000);
	assert_int_equal(r.cr4, 0x20); /* nobody knows better than the old copy */
	v.arch.regs_avail |= 1u << 19;
	uni_regs_read(&v, &r);
	uni_regs_complete(&r, &g);
	assert_int_equal(r.cr3, 0x21c000);
}

static void test_registers_arm64(void **state)
{
	struct kvm_vcpu___arm64 v = { 0 };
	struct uni_bpf_regs r = { 0 };

	memset(bpf_absent, 0, sizeof(bpf_absent));
	v.arch.ctxt.regs.pc = 1;
	v.arch.ctxt.regs.sp = 2;
	v.arch.ctxt.regs.regs[29] = 3;
	v.arch.ctxt.regs.regs[30] = 4;
	uni_regs_read((const struct kvm_vcpu *)(const void *)&v, &r);
	assert_int_equal(r.have, UNI_BPF_HAVE_PC | UNI_BPF_HAVE_SP);
	assert_int_equal(r.pc, 1);
	assert_int_equal(r.sp, 2);
	assert_int_equal(r.fp, 3);
	assert_int_equal(r.lr, 4);
	absent(NULL, NULL, NULL);
}

/* Time that no chain can be charged with is lost in samples, not in nanoseconds. */
static void test_lost_time(void **state)
{
	struct uni_bpf_guest g = { .period_ns = 1000 };
	struct uni_bpf_vcpu v = { 0 };

	assert_int_equal(uni_lost_samples(&g, &v, 2500), 2);
	assert_int_equal(uni_lost_samples(&g, &v, 499), 0);
	assert_int_equal(uni_lost_samples(&g, &v, 1), 1);
	assert_int_equal(v.lost_ns, 0);
	g.period_ns = UINT64_MAX; /* only exits are wanted */
	assert_int_equal(uni_lost_samples(&g, &v, 5000), 0);
	g.period_ns = 0;
	assert_int_equal(uni_lost_samples(&g, &v, 5000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers_svm),
		cmocka_unit_test(test_registers_vmx),
		cmocka_unit_test(test_registers_arm64),
		cmocka_unit_test(test_lost_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
