/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "arch/arch.h"
#include "base/checked.h"
#include "backend/kvm/allow.h"
#include "backend/kvm/regs.h"
#include "backend/kvm/vcpu.h"

/* KVM's names for the fields against the architecture's names for the DWARF numbers. */
static void every_register_lands_under_its_name(void **state)
{
#define FIELD(name)                                    \
	{                                              \
#name, offsetof(struct kvm_regs, name) \
	}
	static const struct {
		const char *name;
		size_t offset;
	} fields[] = { FIELD(rax), FIELD(rbx), FIELD(rcx), FIELD(rdx), FIELD(rsi), FIELD(rdi),
		FIELD(rsp), FIELD(rbp), FIELD(r8), FIELD(r9), FIELD(r10), FIELD(r11), FIELD(r12),
		FIELD(r13), FIELD(r14), FIELD(r15), FIELD(rip) };
	const struct uni_arch *arch = &uni_arch_x86_64;
	struct kvm_sregs sregs = { 0 };
	struct kvm_regs regs = { 0 };
	struct uni_regs out = { 0 };

	for (size_t i = 0; i < uni_array_len(fields); i++) {
		uint64_t v = 0x1111000000000000ull + i;

		memcpy((uint8_t *)&regs + fields[i].offset, &v, sizeof(v));
	}
	uni_kvm_regs_convert(&regs, &sregs, &out);
	for (size_t i = 0; i < uni_array_len(fields); i++) {
		uint64_t v = 0;
		unsigned n = 0;

		while (n < arch->nr_regs && strcmp(arch->reg_names[n], fields[i].name) != 0)
			n++;
		assert_true(n < arch->nr_regs);
		assert_true(uni_regs_get(&out, n, &v));
		assert_int_equal(v, 0x1111000000000000ull + i);
	}
	assert_int_equal(out.valid, (1u << UNI_X86_NR_REGS) - 1);
	assert_true(out.pc_valid && out.pc == regs.rip);
	assert_true(out.sp_valid && out.sp == regs.rsp);
}

static void system_registers(void **state)
{
	struct kvm_sregs sregs = { .cr0 = 1, .cr3 = 3, .cr4 = 4, .efer = 5 };
	struct kvm_regs regs = { .rflags = 6 };
	struct uni_regs out = { 0 };

	sregs.cs.selector = 7;
	sregs.fs.base = 8;
	sregs.gs.base = 9;
	uni_kvm_regs_convert(&regs, &sregs, &out);
	assert_int_equal(out.sys_valid, 0xff);
	assert_int_equal(out.sys[UNI_X86_CR0], 1);
	assert_int_equal(out.sys[UNI_X86_CR3], 3);
	assert_int_equal(out.sys[UNI_X86_CR4], 4);
	assert_int_equal(out.sys[UNI_X86_EFER], 5);
	assert_int_equal(out.sys[UNI_X86_RFLAGS], 6);
	assert_int_equal(out.sys[UNI_X86_CS], 7);
	assert_int_equal(out.sys[UNI_X86_FS_BASE], 8);
	assert_int_equal(out.sys[UNI_X86_GS_BASE], 9);
}

static enum uni_kvm_doing doing(const char *text, int *fd)
{
	*fd = -1;
	return uni_kvm_doing_parse(text, strlen(text), fd);
}

/* A guest died, and its VMM lives: no vCPU is in KVM. */
static void all_vcpus_have_left(void **state)
{
	struct uni_kvm_vcpu v[2] = { { .doing = UNI_DOING_ELSE }, { .doing = UNI_DOING_ELSE } };
	struct uni_err err = { 0 };

	assert_int_equal(uni_kvm_left(42, v, 2, &err), -UNI_EBUSY);
	assert_non_null(strstr(err.msg, "sleep in the VMM, pid 42"));
	v[1].doing = UNI_DOING_IN_RUN;
	assert_int_equal(uni_kvm_left(42, v, 2, &err), 0);
	v[1].doing = UNI_DOING_RUNNING;
	assert_int_equal(uni_kvm_left(42, v, 2, &err), 0);
	assert_int_equal(uni_kvm_left(42, v, 0, &err), 0);
}

static void what_a_thread_does(void **state)
{
	int fd;

	assert_int_equal(doing("running\n", &fd), UNI_DOING_RUNNING);
	assert_int_equal(
		doing("16 0xd 0xae80 0x0 0x0 0x0 0x0 0x7ffd 0x7f01\n", &fd), UNI_DOING_IN_RUN);
	assert_int_equal(fd, 13);
	/* Another ioctl, another call, a page fault, and nonsense: all are none of our business. */
	assert_int_equal(doing("16 0xd 0xae01 0x0 0x0 0x0 0x0 0x1 0x2\n", &fd), UNI_DOING_ELSE);
	assert_int_equal(
		doing("232 0x4 0x7ffd 0x40 0xffffffff 0x0 0x8 0x1 0x2\n", &fd), UNI_DOING_ELSE);
	assert_int_equal(doing("-1 0x7ffd 0x7f01\n", &fd), UNI_DOING_ELSE);
	assert_int_equal(doing("16", &fd), UNI_DOING_ELSE);
	assert_int_equal(doing("16 0xffffffffffffffff 0xae80", &fd), UNI_DOING_ELSE);
	assert_int_equal(doing("16 11111111111111111111111111111111 0xae80", &fd), UNI_DOING_ELSE);
	assert_int_equal(fd, -1);
	assert_int_equal(doing("", &fd), UNI_DOING_GONE);
}

static bool awake(const char *text)
{
	return uni_kvm_is_awake_parse(text, strlen(text));
}

static void who_is_awake(void **state)
{
	assert_true(awake("143 (qemu-system-x86) R 1 0 0\n"));
	assert_false(awake("143 (qemu-system-x86) S 1 0 0\n"));
	assert_false(awake("143 (a) R (b) S 1 0 0\n"));
	assert_true(awake("143 (a) S (b) R 1 0 0\n"));
	assert_false(awake("143 (qemu) "));
	assert_false(awake("143 R"));
	assert_false(awake(""));
	assert_false(uni_kvm_is_awake(-1));
}

static void names_of_vcpu_threads(void **state)
{
	uint32_t n;

	assert_true(uni_kvm_vcpu_of_comm("CPU 11/KVM", &n) && n == 11);
	assert_true(uni_kvm_vcpu_of_comm("fc_vcpu 0", &n) && n == 0);
	assert_true(uni_kvm_vcpu_of_comm("vcpu3", &n) && n == 3);
	assert_true(uni_kvm_vcpu_of_comm("kvm-vcpu-2", &n) && n == 2);
	assert_false(uni_kvm_vcpu_of_comm("CPU 1/TCG", &n));
	assert_false(uni_kvm_vcpu_of_comm("CPU /KVM", &n));
	assert_false(uni_kvm_vcpu_of_comm("vcpu99999999", &n));
	assert_false(uni_kvm_vcpu_of_comm("qemu-system-x86", &n));
}

/* In doubt no: a wrong yes would kill the guest. */
static void protected_guests_are_refused(void **state)
{
	const struct uni_kvm_host plain = { .sync_regs = 7, .vm_types = 1, .tdx = 'N' };
	const struct uni_kvm_host epyc = { .sync_regs = 7, .vm_types = 0x1d, .sev_es = 'Y' };
	const struct uni_kvm_host old_epyc = { .sync_regs = 7, .vm_types = 1, .sev_es = 'Y' };
	const struct uni_kvm_host dark = { .sync_regs = 7, .sev_es = '?' };
	const struct uni_kvm_host other = { .sync_regs = 7, .other = true };
	const struct uni_kvm_host other_ok = { .sync_regs = 7, .vm_types = 1, .other = true };
	const struct uni_kvm_host none = { .sync_regs = 0, .vm_types = 1 };
	const struct uni_kvm_host failed = { .sync_regs = -1, .vm_types = 1 };
	const struct uni_kvm_host half = { .sync_regs = 1, .vm_types = 1 };
	const struct uni_vmm_cmdline qemu = { .vmm = "qemu" }, unknown = { .vmm = "" };
	const struct uni_vmm_cmdline sev = { .vmm = "qemu", .confidential = true };
	const struct uni_vmm_cmdline file = { .vmm = "qemu", .opaque = true };
	const struct uni_vmm_fds fds = { .nr_vms = 1 }, sev_fd = { .sev = true };
	const struct uni_vmm_fds gmem = { .guest_memfd = true };
	struct uni_err err = { 0 };

	assert_int_equal(uni_kvm_allow(&plain, &qemu, &fds, &err), 0);
	assert_int_equal(uni_kvm_allow(&plain, &unknown, &fds, &err), 0);
	assert_int_equal(uni_kvm_allow(&plain, &file, &fds, &err), 0);
	assert_int_equal(uni_kvm_allow(&other_ok, &unknown, &fds, &err), 0);
	assert_int_equal(uni_kvm_allow(&epyc, &qemu, &fds, &err), 0);
	assert_int_equal(err.code, 0);
	assert_int_equal(uni_kvm_allow(&plain, &sev, &fds, NULL), -UNI_ENOTSUP);
	assert_int_equal(uni_kvm_allow(&plain, &qemu, &sev_fd, NULL), -UNI_ENOTSUP);
	assert_int_equal(uni_kvm_allow(&plain, &qemu, &gmem, NULL), -UNI_ENOTSUP);
	assert_int_equal(uni_kvm_allow(&epyc, &unknown, &fds, NULL), -UNI_ENOTSUP);
	assert_int_equal(uni_kvm_allow(&epyc, &file, &fds, NULL), -UNI_ENOTSUP);
	assert_int_equal(uni_kvm_allow(&old_epyc, &unknown, &fds, NULL), -UNI_ENOTSUP);
	assert_int_equal(uni_kvm_allow(&dark, &unknown, &fds, NULL), -UNI_ENOTSUP);
	assert_int_equal(uni_kvm_allow(&other, &unknown, &fds, NULL), -UNI_ENOTSUP);
	assert_int_equal(uni_kvm_allow(&none, &qemu, &fds, NULL), -UNI_ENOTSUP);
	assert_int_equal(uni_kvm_allow(&failed, &qemu, &fds, NULL), -UNI_ENOTSUP);
	assert_int_equal(uni_kvm_allow(&half, &qemu, &fds, &err), -UNI_ENOTSUP);
	assert_non_null(strstr(err.msg, "KVM_CAP_SYNC_REGS"));
}

static void waiting_for_a_cpu_is_read(void **state)
{
	static const char text[] = "1111 2222 3\n", huge[] = "1 99999999999999999999999 3";

	assert_int_equal(uni_kvm_run_delay_parse(text, sizeof(text) - 1), 2222);
	assert_int_equal(uni_kvm_run_delay_parse(text, 9), 0); /* cut: not known to be whole */
	assert_int_equal(uni_kvm_run_delay_parse(text, 4), 0);
	assert_int_equal(uni_kvm_run_delay_parse(huge, sizeof(huge) - 1), 0);
	assert_int_equal(uni_kvm_run_delay_parse("x y z", 5), 0);
	assert_int_equal(uni_kvm_run_delay_parse("", 0), 0);
	assert_int_equal(uni_kvm_run_delay(-1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_register_lands_under_its_name),
		cmocka_unit_test(waiting_for_a_cpu_is_read),
		cmocka_unit_test(system_registers),
		cmocka_unit_test(all_vcpus_have_left),
		cmocka_unit_test(what_a_thread_does),
		cmocka_unit_test(who_is_awake),
		cmocka_unit_test(names_of_vcpu_threads),
		cmocka_unit_test(protected_guests_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
