/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The begin and end of VM exits, by the order of KVM's trace points. This is the order of VMX and
 * SVM, which no test host need have, and of software KVMs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "backend/exit.h"

#define UNI_BPF_PORT "../support/bpf_port.h"
#include "backend/kvm/bpf/exit_logic.bpf.h"

#define SLOTS 64

/* A made-up kernel: one vCPU, maps that are lists, clocks that the test sets. */
static struct {
	uint64_t now, asleep, stolen, chain_cost;
	uint32_t chain;
	uint64_t chain_pc;
	unsigned chains, room;
	struct kvm_vcpu vcpu;
	struct uni_bpf_exit x;
	struct uni_bpf_vcpu v;
	struct uni_bpf_guest g;
	struct uni_exit_place p;
	unsigned nr_sums, nr_lasts;
	struct uni_bpf_exit_key sum_key[SLOTS];
	struct uni_bpf_exit_sum sum[SLOTS];
	struct uni_bpf_exit_kind last_kind[SLOTS];
	struct uni_bpf_exit_last last[SLOTS];
} k;

static __always_inline u64 uni_exit_now(void)
{
	return k.now;
}

static __always_inline void uni_exit_off(
	const struct uni_exit_place *p, u64 now, u64 *asleep, u64 *stolen)
{
	*asleep = k.asleep;
	*stolen = k.stolen;
}

static __always_inline u32 uni_exit_chain(const struct uni_exit_place *p, u64 pc, u64 now)
{
	k.chains++;
	k.chain_pc = pc;
	k.now += k.chain_cost;
	return k.chain;
}

static __always_inline struct uni_bpf_exit_sum *uni_exit_sum_of(
	const struct uni_exit_place *p, const struct uni_bpf_exit_key *key)
{
	for (unsigned i = 0; i < k.nr_sums; i++) {
		if (memcmp(&k.sum_key[i], key, sizeof(*key)) == 0)
			return &k.sum[i];
	}
	return NULL;
}

static __always_inline bool uni_exit_sum_new(const struct uni_exit_place *p,
	const struct uni_bpf_exit_key *key, const struct uni_bpf_exit_sum *sum)
{
	if (k.nr_sums == k.room)
		return false;
	k.sum_key[k.nr_sums] = *key;
	k.sum[k.nr_sums++] = *sum;
	return true;
}

static __always_inline struct uni_bpf_exit_last *uni_exit_last_of(
	const struct uni_exit_place *p, const struct uni_bpf_exit_kind *kind)
{
	for (unsigned i = 0; i < k.nr_lasts; i++) {
		if (memcmp(&k.last_kind[i], kind, sizeof(*kind)) == 0)
			return &k.last[i];
	}
	return NULL;
}

static __always_inline void uni_exit_last_set(const struct uni_exit_place *p,
	const struct uni_bpf_exit_kind *kind, const struct uni_bpf_exit_last *last)
{
	struct uni_bpf_exit_last *old = uni_exit_last_of(p, kind);

	if (old == NULL) {
		assert_true(k.nr_lasts < SLOTS);
		k.last_kind[k.nr_lasts] = *kind;
		old = &k.last[k.nr_lasts++];
	}
	*old = *last;
}

static int reset(void **state)
{
	memset(&k, 0, sizeof(k));
	k.now = 1000000;
	k.room = SLOTS;
	k.chain = 7;
	k.x.every = 1;
	k.v.vcpu = (uint64_t)(uintptr_t)&k.vcpu;
	k.v.number = 3;
	k.p = (struct uni_exit_place){ &k.x, &k.v, &k.g };
	return 0;
}

/* Exits with that label so far, and their host time; those not flushed yet count as well. */
static struct uni_bpf_exit_sum seen(const char *label, bool userspace)
{
	struct uni_bpf_exit_sum sum = { 0 };
	char text[UNI_EXIT_LABEL_MAX];

	for (unsigned i = 0; i < k.nr_sums + k.nr_lasts; i++) {
		bool is_sum = i < k.nr_sums;
		const struct uni_bpf_exit_key *key =
			is_sum ? &k.sum_key[i] : &k.last[i - k.nr_sums].key;
		const struct uni_bpf_exit_sum *s = is_sum ? &k.sum[i] : &k.last[i - k.nr_sums].sum;
		uint64_t n = is_sum ? 1 : s->exits;
		struct uni_stream_exit e = { .isa = key->isa,
			.reason = key->reason,
			.info_kind = key->what & 0xf,
			.access = key->what >> 4,
			.info = key->info };

		uni_exit_label(&e, "", text);
		if (strcmp(text, label) != 0 ||
			userspace != ((key->how & UNI_BPF_EXIT_USERSPACE) != 0))
			continue;
		assert_int_equal(key->number, 3);
		assert_int_equal(key->chain, 7);
		sum.exits += s->exits;
		sum.host_ns += n * s->host_ns;
		sum.asleep_ns += n * s->asleep_ns;
		sum.stolen_ns += n * s->stolen_ns;
	}
	return sum;
}

static void assert_seen(const char *label, bool userspace, uint64_t exits, uint64_t host_ns)
{
	struct uni_bpf_exit_sum sum = seen(label, userspace);

	assert_int_equal(sum.exits, exits);
	assert_int_equal(sum.host_ns, host_ns);
}

static void leaves(uint32_t isa, uint32_t reason, uint64_t info1, uint64_t info2, uint64_t rip)
{
	struct uni_exit_what w;
	uint64_t rax = k.vcpu.arch.regs[VCPU_REGS_RAX], rcx = k.vcpu.arch.regs[VCPU_REGS_RCX];

	uni_exit_by_cpu(&w, isa, reason, info1, info2, rax, rcx);
	uni_exit_on_exit(&k.p, &w, rip, k.now);
}

/* VMX: out %al, $0x80 at rip. */
static void vmx_out(uint64_t rip)
{
	leaves(UNI_KVM_ISA_VMX, 30, 0x00800000, 0, rip);
}

static void entry(uint64_t after_ns)
{
	k.now += after_ns;
	uni_exit_end(&k.p, k.now);
}

static void returns(const struct uni_kvm_run *run, int error)
{
	struct uni_exit_what w;

	uni_exit_by_run(&w, run, run->exit_reason, error);
	uni_exit_on_return(&k.p, &w, k.now);
}

static void handled_in_kvm(void **state)
{
	vmx_out(0x1234);
	assert_int_equal(k.chain_pc, 0x1234);
	entry(2000);
	assert_seen("io out 0x80", false, 1, 2000);
	/* Entries without an exit (the first of all, a failed one) end nothing. */
	entry(500);
	assert_int_equal(k.nr_sums, 1);
}

static void handled_by_the_vmm(void **state)
{
	const struct uni_kvm_run run = { .exit_reason = 2,
		.io = { .direction = 1, .size = 1, .port = 0x80 } };

	vmx_out(0x1234);
	uni_exit_on_access(&k.p, UNI_EXIT_INFO_PORT, 0x80, UNI_EXIT_ACCESS_WRITE, 1);
	k.now += 1000;
	returns(&run, 0);
	k.now += 50000;
	uni_exit_on_run(&k.p, k.now); /* not yet in the guest */
	assert_int_equal(k.nr_sums, 0);
	entry(1000);
	assert_seen("io out 0x80", true, 1, 52000);
	assert_int_equal(k.chains, 1);
}

/* The address of a device comes after the exit: from KVM, or with the return. */
static void address_of_mmio(void **state)
{
	const struct uni_kvm_run run = { .exit_reason = 6,
		.mmio = { .gpa = 0xd0000010, .len = 4, .is_write = 1 } };

	leaves(UNI_KVM_ISA_VMX, 49, 0, 0, 1);
	returns(&run, 0);
	entry(10);
	leaves(UNI_KVM_ISA_VMX, 49, 0, 0, 1);
	uni_exit_on_access(&k.p, UNI_EXIT_INFO_MMIO, 0xfee000b0, UNI_EXIT_ACCESS_WRITE, 4);
	entry(20);
	assert_seen("ept-misconfig write 0xd0000010", true, 1, 10);
	assert_seen("ept-misconfig write 0xfee000b0", false, 1, 20);
	/* SVM gives the address, but not the size. */
	leaves(UNI_KVM_ISA_SVM, 0x400, 8 | 2, 0xd0000010, 1);
	returns(&run, 0);
	entry(30);
	assert_seen("npf write 0xd0000010", true, 1, 30);
	assert_int_equal(k.sum_key[2].how & UNI_BPF_EXIT_SIZE_MASK, 4);
}

static void numbers_from_registers(void **state)
{
	k.vcpu.arch.regs[VCPU_REGS_RAX] = 11;
	k.vcpu.arch.regs[VCPU_REGS_RCX] = 0x6e0;
	leaves(UNI_KVM_ISA_SVM, 0x81, 0, 0, 1);
	entry(10);
	leaves(UNI_KVM_ISA_SVM, 0x7c, 1, 0, 1);
	entry(20);
	assert_seen("hypercall 11", false, 1, 10);
	assert_seen("msr write 0x6e0", false, 1, 20);
}

/* KVM may go from one exit to the next without the guest: both count, nothing twice. */
static void exit_after_exit(void **state)
{
	vmx_out(1);
	k.now += 700;
	leaves(UNI_KVM_ISA_VMX, 1, 0, 0, 2);
	entry(300);
	assert_seen("io out 0x80", false, 1, 700);
	assert_seen("interrupt", false, 1, 300);
}

/* A signal that comes before the guest goes on: the VMM is told twice, it is one exit. */
static void told_twice(void **state)
{
	struct uni_kvm_run run = { .exit_reason = 2,
		.io = { .direction = 1, .size = 1, .port = 0x80 } };

	vmx_out(1);
	returns(&run, 0);
	uni_exit_on_run(&k.p, k.now);
	returns(&run, -4);
	uni_exit_on_run(&k.p, k.now);
	entry(900);
	assert_seen("io out 0x80", true, 1, 900);
	assert_int_equal(k.nr_sums, 1);
}

static void sleep_and_theft(void **state)
{
	struct uni_bpf_exit_sum sum;

	k.asleep = 500;
	k.stolen = 70;
	leaves(UNI_KVM_ISA_SVM, 0x78, 0, 0, 1);
	k.asleep += 4000;
	k.stolen += 30;
	uni_exit_on_wakeup(&k.p, 4000, true, k.now + 4000); /* of the exit under way */
	entry(5000);
	sum = seen("hlt", false);
	assert_int_equal(sum.exits, 1);
	assert_int_equal(sum.host_ns, 5000);
	assert_int_equal(sum.asleep_ns, 4000);
	assert_int_equal(sum.stolen_ns, 30);
}

static void our_own_time_is_left_out(void **state)
{
	k.chain_cost = 1500;
	vmx_out(1);
	entry(2000);
	assert_seen("io out 0x80", false, 1, 2000);
}

/* No kvm_exit: what the VMM is told is the exit, until it calls again. */
static void software_kvm(void **state)
{
	struct uni_kvm_run run = { .exit_reason = 2,
		.io = { .direction = 1, .size = 1, .port = 0x80 } };

	/* rip is at the instruction when KVM sees the access, and behind it at the return. */
	k.vcpu.arch.regs[VCPU_REGS_RIP] = 0x1000;
	uni_exit_on_access(&k.p, UNI_EXIT_INFO_PORT, 0x80, UNI_EXIT_ACCESS_WRITE, 1);
	k.vcpu.arch.regs[VCPU_REGS_RIP] = 0x1002;
	returns(&run, 0);
	assert_int_equal(k.chain_pc, 0x1000);
	k.now += 6000;
	uni_exit_on_run(&k.p, k.now);
	assert_seen("io out 0x80", true, 1, 6000);
	/* An access that KVM served itself meanwhile is no exit, nor does its rip belong to the
	 * next. */
	uni_exit_on_access(&k.p, UNI_EXIT_INFO_PORT, 0x43, UNI_EXIT_ACCESS_WRITE, 1);
	run.io.direction = 0;
	returns(&run, 0);
	assert_int_equal(k.chain_pc, 0); /* the registers are right: it is not emulated yet */
	k.now += 1000;
	uni_exit_on_run(&k.p, k.now);
	assert_seen("io in 0x80", true, 1, 1000);
	returns(&run, -4);
	k.now += 300;
	uni_exit_on_run(&k.p, k.now);
	assert_seen("signal", true, 1, 300);
	uni_exit_on_wakeup(&k.p, 8000, true, k.now);
	assert_int_equal(seen("hlt", false).asleep_ns, 8000);
	assert_int_equal(k.nr_sums, 4);
}

/* Other vendors' exits have numbers of their own; KVM says what they were, if the VMM is told. */
static void another_vendor(void **state)
{
	const struct uni_kvm_run run = { .exit_reason = 5 };

	leaves(3, 99, 0, 0, 1);
	returns(&run, 0);
	k.now += 10;
	uni_exit_on_run(&k.p, k.now);
	assert_seen("hlt", true, 1, 10);
	leaves(3, 99, 0, 0, 1);
	entry(20);
	assert_seen("unknown", false, 1, 20);
}

static void one_in_ten_counts_all(void **state)
{
	k.x.every = 10;
	for (unsigned i = 0; i < 1003; i++) {
		/* Two instructions take turns: neither hides behind the other. */
		vmx_out(i % 2 == 0 ? 0x1000 : 0x2000);
		entry(i % 2 == 0 ? 100 : 900);
	}
	leaves(UNI_KVM_ISA_VMX, 12, 0, 0, 0x3000);
	entry(5);
	assert_int_equal(k.chains, 51 + 51 + 1);
	assert_seen("io out 0x80", false, 1003, 502 * 100 + 501 * 900);
	assert_seen("hlt", false, 1, 5);
	assert_int_equal(k.x.seq, 1004);
	assert_int_equal(k.x.lost, 0);
	assert_int_equal(k.nr_lasts, 3);
}

static void what_does_not_fit_is_counted(void **state)
{
	k.room = 1;
	vmx_out(1);
	entry(10);
	for (unsigned i = 0; i < 5; i++) {
		leaves(UNI_KVM_ISA_VMX, 10, 0, 0, 1);
		entry(10);
	}
	assert_seen("io out 0x80", false, 1, 10);
	assert_int_equal(k.x.lost, 5);
	/* The same with one in N: each is lost once, kept or not. */
	k.x.every = 4;
	k.x.lost = 0;
	for (unsigned i = 0; i < 9; i++) {
		leaves(UNI_KVM_ISA_VMX, 16, 0, 0, 1);
		entry(10);
	}
	assert_int_equal(k.x.lost, 9);
}

#define T(fn) cmocka_unit_test_setup(fn, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(handled_in_kvm),
		T(handled_by_the_vmm),
		T(address_of_mmio),
		T(numbers_from_registers),
		T(exit_after_exit),
		T(told_twice),
		T(sleep_and_theft),
		T(our_own_time_is_left_out),
		T(software_kvm),
		T(another_vendor),
		T(one_in_ten_counts_all),
		T(what_does_not_fit_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
