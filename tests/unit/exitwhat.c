/* SPDX-License-Identifier: BSD-2-Clause */
/* The exits that the program in the kernel makes, from records as the manuals describe them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/kvm.h>
#include <string.h>

#include "backend/exit.h"
#include "backend/kvm/bpf/exit_abi.h"
#include "backend/kvm/bpf/exit_what.bpf.h"

static void assert_what(const struct uni_exit_what *w, const char *label, unsigned size)
{
	struct uni_stream_exit e = { .isa = w->isa,
		.reason = w->reason,
		.info_kind = w->info_kind,
		.info = w->info,
		.access = w->access };
	char text[UNI_EXIT_LABEL_MAX];

	uni_exit_label(&e, "", text);
	assert_string_equal(text, label);
	assert_int_equal(w->size, size);
}

static void vmx(uint32_t reason, uint64_t info1, const char *label, unsigned size)
{
	struct uni_exit_what w;

	uni_exit_by_cpu(&w, UNI_KVM_ISA_VMX, reason, info1, 0, 9, 0xffffffff000006e0);
	assert_int_equal(w.isa, UNI_EXIT_ISA_VMX);
	assert_what(&w, label, size);
}

static void vmx_records(void **state)
{
	vmx(30, 0x00800000, "io out 0x80", 1);
	vmx(30, 0x03f80008, "io in 0x3f8", 1);
	vmx(30, 0x00840003, "io out 0x84", 4);
	vmx(30, 0x01f00039, "io in 0x1f0", 2); /* rep insw */
	vmx(18, 0, "hypercall 9", 0);
	vmx(31, 0, "rdmsr 0x6e0", 8);
	vmx(32, 0, "wrmsr 0x6e0", 8);
	vmx(12, 0, "hlt", 0);
	vmx(48, 0x181, "ept-violation", 0); /* its qualification is no address */
	vmx(0x80000021, 0, "fail-entry-state", 0);
}

static void svm(uint32_t reason, uint64_t info1, uint64_t info2, const char *label, unsigned size)
{
	struct uni_exit_what w;

	uni_exit_by_cpu(&w, UNI_KVM_ISA_SVM, reason, info1, info2, 9, 0xffffffff000006e0);
	assert_int_equal(w.isa, UNI_EXIT_ISA_SVM);
	assert_what(&w, label, size);
}

static void svm_records(void **state)
{
	svm(0x7b, 0x00800010, 0xffffffff8020005a, "io out 0x80", 1);
	svm(0x7b, 0x03f80011, 0, "io in 0x3f8", 1);
	svm(0x7b, 0x00840040, 0, "io out 0x84", 4);
	svm(0x7b, 0x01f0002d, 0, "io in 0x1f0", 2);
	svm(0x7c, 0, 0, "msr read 0x6e0", 8);
	svm(0x7c, 1, 0, "msr write 0x6e0", 8);
	svm(0x81, 0, 0, "hypercall 9", 0);
	svm(0x78, 0, 0, "hlt", 0);
	svm(0x400, 0x1000000000f, 0xfed00010, "npf write 0xfed00010", 0); /* reserved bit: device */
	svm(0x400, 0x10000000d, 0xfed00010, "npf read 0xfed00010", 0);
	svm(0x400, 0x100000006, 0x7000, "npf", 0); /* memory that was not mapped yet */
	svm(UINT32_MAX, 0, 0, "fail-entry-state", 0);
}

/* The numbers of other vendors mean nothing to us. */
static void other_vendors(void **state)
{
	struct uni_exit_what w;

	uni_exit_by_cpu(&w, 3, 30, 0x00800000, 0, 1, 2);
	assert_int_equal(w.isa, UNI_EXIT_ISA_KVM);
	assert_what(&w, "unknown", 0);
}

/* struct kvm_run as the C library's headers have it. */
static void by_run(const struct kvm_run *run, int error, const char *label, unsigned size)
{
	struct uni_kvm_run ours;
	struct uni_exit_what w;

	memcpy(&ours, run, sizeof(ours));
	assert_int_equal(ours.exit_reason, run->exit_reason);
	uni_exit_by_run(&w, &ours, ours.exit_reason, error);
	assert_int_equal(w.isa, UNI_EXIT_ISA_KVM);
	assert_what(&w, label, size);
}

static void what_the_vmm_is_told(void **state)
{
	struct kvm_run run = { .exit_reason = KVM_EXIT_IO,
		.io = { .direction = KVM_EXIT_IO_OUT, .size = 1, .port = 0x80, .count = 1 } };

	by_run(&run, 0, "io out 0x80", 1);
	by_run(&run, -4, "signal", 0); /* what is left in there is of the exit before */
	by_run(&run, -14, "unknown", 0);
	run.io.direction = KVM_EXIT_IO_IN;
	run.io.size = 4;
	by_run(&run, 0, "io in 0x80", 4);
	run = (struct kvm_run){ .exit_reason = KVM_EXIT_MMIO,
		.mmio = { .phys_addr = 0xd0000010, .len = 4, .is_write = 1 } };
	by_run(&run, 0, "mmio write 0xd0000010", 4);
	run.mmio.is_write = 0;
	by_run(&run, 0, "mmio read 0xd0000010", 4);
	run = (struct kvm_run){ .exit_reason = KVM_EXIT_HYPERCALL, .hypercall = { .nr = 12 } };
	by_run(&run, 0, "hypercall 12", 0);
	run = (struct kvm_run){ .exit_reason = KVM_EXIT_X86_WRMSR, .msr = { .index = 0x4b564d00 } };
	by_run(&run, 0, "wrmsr 0x4b564d00", 8);
	run.exit_reason = KVM_EXIT_X86_RDMSR;
	by_run(&run, 0, "rdmsr 0x4b564d00", 8);
	run.exit_reason = KVM_EXIT_HLT;
	by_run(&run, 0, "hlt", 0);
}

static void buckets_are_narrow_and_rise(void **state)
{
	uint64_t begin = 0;
	unsigned last = 0;

	for (uint64_t ns = 1; ns < 100000; ns++) {
		unsigned b = uni_exit_bucket(ns);

		assert_true(b == last || b > last);
		if (b != last)
			begin = ns;
		assert_true(ns - begin <= begin / 4);
		last = b;
	}
	for (unsigned bit = 2; bit < 64; bit++) {
		assert_int_equal(uni_exit_bucket(1ull << bit), bit * 4);
		assert_int_equal(
			uni_exit_bucket((1ull << bit) - 1), bit * 4 - 1 - (bit == 2 ? 4 : 0));
	}
	assert_int_equal(uni_exit_bucket(UINT64_MAX), 255);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vmx_records),
		cmocka_unit_test(svm_records),
		cmocka_unit_test(other_vendors),
		cmocka_unit_test(what_the_vmm_is_told),
		cmocka_unit_test(buckets_are_narrow_and_rise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
