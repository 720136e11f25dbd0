/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "backend/exit.h"

static void assert_label(const struct uni_stream_exit *e, const char *want)
{
	char label[UNI_EXIT_LABEL_MAX];

	uni_exit_label(e, "", label);
	assert_string_equal(label, want);
}

/* The same instruction goes by the same word, whoever numbers its exit. */
static void one_thing_has_one_name(void **state)
{
	static const struct {
		const char *name;
		uint32_t kvm, vmx, svm;
	} same[] = {
		{ "io", 2, 30, 0x7b },
		{ "hlt", 5, 12, 0x78 },
		{ "hypercall", 3, 18, 0x81 },
		{ "interrupt-window", 7, 7, 0x64 },
		{ "bus-lock", 33, 74, 0xa5 },
	};

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		assert_string_equal(
			uni_exit_reason_name(UNI_EXIT_ISA_KVM, same[i].kvm), same[i].name);
		assert_string_equal(
			uni_exit_reason_name(UNI_EXIT_ISA_VMX, same[i].vmx), same[i].name);
		assert_string_equal(
			uni_exit_reason_name(UNI_EXIT_ISA_SVM, same[i].svm), same[i].name);
	}
}

static void numbers_of_the_manuals(void **state)
{
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_VMX, 48), "ept-violation");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_VMX, 49), "ept-misconfig");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_VMX, 10), "cpuid");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_VMX, 1), "interrupt");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_SVM, 0x72), "cpuid");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_SVM, 0x60), "interrupt");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_SVM, 0x400), "npf");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_SVM, 0x13), "cr-access");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_SVM, 0x94), "cr-access");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_SVM, 0x27), "dr-access");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_SVM, 0x4e), "exception");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_SVM, 0x8f), "efer-write");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_SVM, UINT32_MAX), "fail-entry-state");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_KVM, 6), "mmio");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_KVM, 10), "signal");
	assert_string_equal(uni_exit_reason_name(UNI_EXIT_ISA_ARM, 0x24), "data-abort");
}

/* No number whatever leads out of the tables. */
static void every_number_is_safe(void **state)
{
	static const uint32_t far[] = { 0x3ff, 0x404, 0x80000000, 0xfffffffe, 0xffff };

	for (unsigned isa = 0; isa < 256; isa++) {
		for (uint32_t reason = 0; reason < 1200; reason++) {
			const char *name = uni_exit_reason_name((uint8_t)isa, reason);

			if (name != NULL)
				assert_in_range(strlen(name), 1, 30);
		}
		for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++)
			assert_null(uni_exit_reason_name((uint8_t)isa, far[i]));
		(void)uni_exit_is_halt((uint8_t)isa, 5);
	}
	assert_null(uni_exit_reason_name(UNI_EXIT_ISA_NR, 2));
	assert_string_equal(uni_exit_isa_name(UNI_EXIT_ISA_NR), "?");
	assert_string_equal(uni_exit_info_name(255), "?");
	assert_string_equal(uni_exit_access_name(255), "?");
}

static void labels(void **state)
{
	struct uni_stream_exit e = { .isa = UNI_EXIT_ISA_KVM, .reason = 2 };

	assert_label(&e, "io");
	e.info_kind = UNI_EXIT_INFO_PORT;
	e.info = 0x3f8;
	assert_label(&e, "io 0x3f8");
	e.access = UNI_EXIT_ACCESS_WRITE;
	assert_label(&e, "io out 0x3f8");
	e.access = UNI_EXIT_ACCESS_READ;
	assert_label(&e, "io in 0x3f8");
	e = (struct uni_stream_exit){ .isa = UNI_EXIT_ISA_VMX,
		.reason = 49,
		.info_kind = UNI_EXIT_INFO_MMIO,
		.info = 0xd0000010 };
	assert_label(&e, "ept-misconfig 0xd0000010");
	e.isa = UNI_EXIT_ISA_KVM;
	e.reason = 6;
	e.access = UNI_EXIT_ACCESS_WRITE;
	assert_label(&e, "mmio write 0xd0000010");
	e = (struct uni_stream_exit){ .isa = UNI_EXIT_ISA_SVM,
		.reason = 0x81,
		.info_kind = UNI_EXIT_INFO_HYPERCALL,
		.info = 11 };
	assert_label(&e, "hypercall 11");
	e = (struct uni_stream_exit){ .isa = UNI_EXIT_ISA_SVM,
		.reason = 0x7c,
		.info_kind = UNI_EXIT_INFO_MSR,
		.access = UNI_EXIT_ACCESS_WRITE,
		.info = 0x6e0 };
	assert_label(&e, "msr write 0x6e0");
	e.isa = UNI_EXIT_ISA_VMX;
	e.reason = 32;
	assert_label(&e, "wrmsr 0x6e0");
	e = (struct uni_stream_exit){ .isa = UNI_EXIT_ISA_VMX, .reason = 0x999 };
	assert_label(&e, "VMX-0x999");
	e = (struct uni_stream_exit){
		.isa = 77, .reason = UINT32_MAX, .info_kind = 99, .info = UINT64_MAX, .access = 99
	};
	assert_label(&e, "?-0xffffffff 0xffffffffffffffff");
}

static void halts(void **state)
{
	assert_true(uni_exit_is_halt(UNI_EXIT_ISA_KVM, 5));
	assert_true(uni_exit_is_halt(UNI_EXIT_ISA_VMX, 12));
	assert_true(uni_exit_is_halt(UNI_EXIT_ISA_SVM, 0x78));
	assert_true(uni_exit_is_halt(UNI_EXIT_ISA_SVM, 0xa6));
	assert_true(uni_exit_is_halt(UNI_EXIT_ISA_ARM, 1));
	assert_false(uni_exit_is_halt(UNI_EXIT_ISA_KVM, 2));
	assert_false(uni_exit_is_halt(UNI_EXIT_ISA_VMX, 5));
	assert_false(uni_exit_is_halt(UNI_EXIT_ISA_NR, 5));
}

static void soundness(void **state)
{
	const uint64_t pc = 1;
	struct uni_stream_exit e = { .nr = 1, .pc = &pc };

	assert_true(uni_exit_is_sound(&e, 1));
	assert_false(uni_exit_is_sound(&e, 0));
	e.pc = NULL;
	assert_false(uni_exit_is_sound(&e, 1));
	e.nr = 0;
	assert_true(uni_exit_is_sound(&e, 0));
	e.isa = UNI_EXIT_ISA_NR;
	assert_false(uni_exit_is_sound(&e, 1));
	e.isa = 0;
	e.info_kind = UNI_EXIT_INFO_NR;
	assert_false(uni_exit_is_sound(&e, 1));
	e.info_kind = 0;
	e.access = UNI_EXIT_ACCESS_NR;
	assert_false(uni_exit_is_sound(&e, 1));
}

/* Its ports are its hypercalls; those of others, with the same numbers, are not. */
static void hypercalls_of_solo5(void **state)
{
	static const struct {
		uint64_t port;
		const char *want;
	} known[] = {
		{ 0x500, "io out 0x500" },
		{ 0x501, "io out 0x501 (walltime)" },
		{ 0x508, "io out 0x508 (halt)" },
		{ 0x509, "io out 0x509" },
		{ UINT64_MAX, "io out 0xffffffffffffffff" },
	};
	struct uni_stream_exit e = { .isa = UNI_EXIT_ISA_SVM,
		.reason = 0x7b,
		.info_kind = UNI_EXIT_INFO_PORT,
		.access = UNI_EXIT_ACCESS_WRITE };
	char label[UNI_EXIT_LABEL_MAX];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		e.info = known[i].port;
		uni_exit_label(&e, "solo5-hvt", label);
		assert_string_equal(label, known[i].want);
	}
	e.info = 0x502;
	assert_label(&e, "io out 0x502");
	e.access = UNI_EXIT_ACCESS_READ;
	uni_exit_label(&e, "solo5-hvt", label);
	assert_string_equal(label, "io in 0x502");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hypercalls_of_solo5),
		cmocka_unit_test(one_thing_has_one_name),
		cmocka_unit_test(numbers_of_the_manuals),
		cmocka_unit_test(every_number_is_safe),
		cmocka_unit_test(labels),
		cmocka_unit_test(halts),
		cmocka_unit_test(soundness),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
