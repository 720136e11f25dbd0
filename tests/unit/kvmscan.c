/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The iterator over a VMM's files, on made-up structures of the kernel. Its output is read: memory
 * slots of new and old kernels, vCPUs, and the guests that are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define UNI_BPF_PORT "../support/bpf_port.h"
#include "backend/kvm/bpf/iter.bpf.h"
#include "backend/kvm/bpf/clocks.h"
#include "backend/kvm/bpf/scan.h"

struct world {
	struct kvm kvm;
	struct kvm_memslots ms;
	struct kvm_memory_slot slot[4];
	struct kvm_vcpu vcpu[2];
	struct task_struct task[2], reader;
	struct pid pid[2], reader_pid;
	struct rq rq;
	struct cfs_rq cfs;
	struct uni_kvm_scan scan;
	struct uni_err err;
};

static void has_all(void)
{
	memset(bpf_absent, 0, sizeof(bpf_absent));
	bpf_absent[0] = "___arm64";
	bpf_seq_size = 0;
}

static void add_slot(struct world *w, unsigned i, unsigned bucket, unsigned idx, uint64_t gpa,
	uint64_t size, uint64_t hva)
{
	struct hlist_node *node = &w->slot[i].id_node[idx];

	w->slot[i].base_gfn = gpa >> 12;
	w->slot[i].npages = size >> 12;
	w->slot[i].userspace_addr = hva;
	w->slot[i].id = (short)i;
	node->next = w->ms.id_hash[bucket].first;
	w->ms.id_hash[bucket].first = node;
}

static void make(struct world *w)
{
	memset(w, 0, sizeof(*w));
	has_all();
	w->kvm.memslots[0] = &w->ms;
	w->kvm.online_vcpus.counter = 2;
	w->kvm.userspace_pid = 4121;
	w->ms.generation = 8;
	w->reader.thread_pid = &w->reader_pid;
	bpf_current = &w->reader;
	w->rq.clock = 500;
	w->cfs.rq = &w->rq;
	for (int i = 0; i < 2; i++) {
		w->vcpu[i].kvm = &w->kvm;
		w->vcpu[i].vcpu_id = i;
		w->vcpu[i].pid = &w->pid[i];
		w->vcpu[i].arch.regs_avail = ~0u;
		w->vcpu[i].arch.regs[16] = 0x1000 + (unsigned)i;
		w->pid[i].numbers[0].nr = 4130 + i;
		w->pid[i].tasks[0].first = &w->task[i].pid_links[0];
		w->task[i].se.cfs_rq = &w->cfs;
		w->task[i].sched_info.run_delay = 77;
		w->task[i].on_cpu = i;
		w->task[i].on_rq = 1;
	}
}

static int parse(struct world *w)
{
	return uni_kvm_scan_parse(bpf_seq, bpf_seq_size, &w->scan);
}

static void test_slots(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	(void)state;
	for (unsigned idx = 0; idx < 2; idx++) { /* both sets of links */
		make(w);
		w->ms.node_idx = (int)idx;
		add_slot(w, 0, 0, idx, 0, 0xa0000, 0x7f0000000000);
		add_slot(w, 1, 5, idx, 0x100000, 0x3f00000, 0x7f0000100000);
		add_slot(w, 2, 5, idx, 0xf0000, 0x10000, 0x7e0000000000); /* the same bucket */
		add_slot(w, 3, 127, idx, 1ull << 32, 0x8000000, 0x7f0004000000);
		emit_vm(NULL, &w->kvm);
		assert_int_equal(parse(w), 0);
		assert_int_equal(w->scan.generation, 8);
		assert_int_equal(w->scan.online, 2);
		assert_int_equal(w->scan.tgid, 4121);
		assert_int_equal(w->scan.nr_slots, 4);
		assert_int_equal(w->scan.slot[0].gpa, 1ull << 32); /* the largest first */
		assert_int_equal(w->scan.slot[0].hva, 0x7f0004000000);
		assert_int_equal(w->scan.slot[1].gpa, 0x100000);
		assert_int_equal(w->scan.slot[3].size, 0x10000);
		assert_int_equal(uni_kvm_scan_allow(&w->scan, &w->err), 0);
	}
	free(w);
}

/* Neighbours here and there are one; neighbours only here are two. */
static void test_joined(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	(void)state;
	make(w);
	/* The kernel's table is in no order. */
	add_slot(w, 0, 2, 0, 0x100000, 0x100000, 0x7f0000100000);
	add_slot(w, 1, 1, 0, 0x200000, 0x300000, 0x7f0000200000);
	add_slot(w, 2, 3, 0, 0x500000, 0x1000, 0x7a0000000000);
	add_slot(w, 3, 3, 0, 0x600000, 0, 0x7b0000000000); /* being removed */
	emit_vm(NULL, &w->kvm);
	emit_vm(NULL, &w->kvm); /* its file was duplicated */
	assert_int_equal(parse(w), 0);
	assert_int_equal(w->scan.nr_slots, 2);
	assert_int_equal(w->scan.slot[0].gpa, 0x100000);
	assert_int_equal(w->scan.slot[0].size, 0x400000);
	assert_false(w->scan.several);
	free(w);
}

/* Before Linux 5.17 slots were an array behind the head. */
static void test_old_slots(void **state)
{
	struct {
		struct kvm_memslots___array head;
		struct kvm_memory_slot more[2];
	} old = { .head = { .generation = 6, .used_slots = 3 } };
	struct world *w = calloc(1, sizeof(*w));

	(void)state;
	make(w);
	for (unsigned i = 0; i < 3; i++) {
		struct kvm_memory_slot s = { .base_gfn = 0x100 * (i + 1),
			.npages = 16,
			.userspace_addr = 0x7000000 + 0x100000 * i,
			.id = (short)i };

		memcpy((uint8_t *)&old + offsetof(struct kvm_memslots___array, memslots) +
				i * sizeof(s),
			&s, sizeof(s));
	}
	bpf_absent[1] = "id_hash";
	w->kvm.memslots[0] = (struct kvm_memslots *)(void *)&old;
	emit_vm(NULL, &w->kvm);
	assert_int_equal(parse(w), 0);
	assert_int_equal(w->scan.generation, 6);
	assert_int_equal(w->scan.nr_slots, 3);
	assert_int_equal(w->scan.slot[0].gpa, 0x100000);
	assert_int_equal(w->scan.slot[2].hva, 0x7200000);
	free(w);
}

static void test_vcpus(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct uni_regs regs;

	(void)state;
	make(w);
	emit_vcpu(NULL, &w->vcpu[1]);
	emit_vcpu(NULL, &w->vcpu[0]);
	emit_vcpu(NULL, &w->vcpu[1]);
	emit_vm(NULL, &w->kvm);
	assert_int_equal(parse(w), 0);
	assert_int_equal(w->scan.nr_vcpus, 2);
	assert_int_equal(w->scan.vcpu[0].id, 0);
	assert_int_equal(w->scan.vcpu[0].vcpu.tid, 4130);
	assert_int_equal(w->scan.vcpu[0].vcpu.on_cpu, 0);
	assert_int_equal(w->scan.vcpu[1].vcpu.on_cpu, 1);
	assert_int_equal(w->scan.vcpu[1].vcpu.delay, 77);
	assert_int_equal(w->scan.vcpu[1].vcpu.clock, 500);
	uni_kvm_scan_regs(&w->scan.vcpu[1].vcpu.regs, &regs);
	assert_true(regs.pc_valid && regs.pc == 0x1001);
	w->scan.vcpu[1].vcpu.regs.have = 0;
	uni_kvm_scan_regs(&w->scan.vcpu[1].vcpu.regs, &regs);
	assert_false(regs.pc_valid);
	assert_int_equal(regs.state, UNI_VCPU_UNKNOWN);
	/* A vCPU that never ran has no thread. */
	make(w);
	w->vcpu[0].pid = NULL;
	emit_vcpu(NULL, &w->vcpu[0]);
	emit_vm(NULL, &w->kvm);
	assert_int_equal(parse(w), 0);
	assert_int_equal(w->scan.vcpu[0].vcpu.tid, 0);
	free(w);
}

/* The reader's namespace has numbers of its own, where it sees the thread at all. */
static void test_namespaces(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	const int inner = 7;

	(void)state;
	for (unsigned level = 0; level < 3; level++) {
		make(w);
		w->reader_pid.level = level;
		w->pid[0].level = 1;
		memcpy((char *)w->pid[0].numbers + sizeof(struct upid), &inner, sizeof(inner));
		emit_vcpu(NULL, &w->vcpu[0]);
		emit_vm(NULL, &w->kvm);
		assert_int_equal(parse(w), 0);
		assert_int_equal(w->scan.vcpu[0].vcpu.tid, level == 0	? 4130
							   : level == 1 ? inner
									: 0);
		assert_int_equal(w->scan.vcpu[0].vcpu.host_tid, 4130);
	}
	free(w);
}

static void refused(struct world *w, const char *word)
{
	memset(&w->err, 0, sizeof(w->err));
	assert_int_equal(parse(w), 0);
	assert_int_equal(uni_kvm_scan_allow(&w->scan, &w->err), -UNI_ENOTSUP);
	assert_non_null(strstr(w->err.msg, word));
}

static void test_refusals(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct kvm other = { .userspace_pid = 4121 };

	(void)state;
	make(w); /* what this kernel does not have is not looked at */
	w->kvm.arch.has_private_mem = w->kvm.arch.has_protected_state = true;
	w->kvm.arch.vm_type = 5;
	w->vcpu[0].arch.guest_state_protected = true;
	bpf_absent[1] = "vm_type";
	bpf_absent[2] = "has_private_mem";
	bpf_absent[3] = "has_protected_state";
	bpf_absent[4] = "guest_state_protected";
	emit_vm(NULL, &w->kvm);
	emit_vcpu(NULL, &w->vcpu[0]);
	assert_int_equal(parse(w), 0);
	assert_int_equal(uni_kvm_scan_allow(&w->scan, &w->err), 0);
	make(w);
	w->slot[0].flags = 1u << 2;
	add_slot(w, 0, 0, 0, 0, 0xa0000, 0x7f0000000000);
	emit_vm(NULL, &w->kvm);
	refused(w, "guest_memfd");
	make(w);
	w->kvm.arch.has_private_mem = true;
	emit_vm(NULL, &w->kvm);
	refused(w, "guest_memfd");
	make(w);
	w->vcpu[1].arch.guest_state_protected = true;
	emit_vm(NULL, &w->kvm);
	emit_vcpu(NULL, &w->vcpu[1]);
	refused(w, "SEV-ES");
	make(w);
	w->kvm.arch.has_protected_state = true;
	emit_vm(NULL, &w->kvm);
	refused(w, "protected");
	for (uint8_t type = 2; type < 8; type++) {
		make(w);
		w->kvm.arch.vm_type = type;
		emit_vm(NULL, &w->kvm);
		refused(w, type == 5 ? "TDX" : "SEV");
	}
	make(w);
	emit_vm(NULL, &w->kvm);
	other.memslots[0] = &w->ms;
	emit_vm(NULL, &other);
	refused(w, "more than one VM");
	free(w);
}

#define SECOND 1000000000ull

/* KVM's number for the guest's clock, where this kernel has it. */
static void test_clock_offset(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	(void)state;
	make(w);
	w->kvm.arch.kvmclock_offset = -77;
	emit_vm(NULL, &w->kvm);
	assert_int_equal(parse(w), 0);
	assert_int_equal(w->scan.clock_offset, (uint64_t)-77);
	make(w);
	w->kvm.arch.kvmclock_offset = -77;
	bpf_absent[1] = "kvmclock_offset";
	emit_vm(NULL, &w->kvm);
	assert_int_equal(parse(w), 0);
	assert_int_equal(w->scan.clock_offset, 0);
	free(w);
}

/* One look, in seconds: the offset from a base, how many samples more. */
static bool look_at(struct uni_kvm_clock *c, double now, double offset, uint64_t more, bool halted,
	struct uni_stream_back *ret)
{
	const struct uni_kvm_clock_look look = { .offset = (uint64_t)(int64_t)(offset * SECOND),
		.samples = c->samples + more,
		.halted = halted,
		.now_ns = (uint64_t)(now * SECOND) };

	return uni_kvm_clock_look(c, &look, ret);
}

/* A guest that runs, by its samples, or that sleeps in KVM_RUN. */
static void restored_one(uint64_t samples, bool halted)
{
	struct uni_kvm_clock c = { 0 };
	struct uni_stream_back b = { 0 };

	assert_false(look_at(&c, 100, -5, samples, halted, &b));
	for (int i = 1; i < 8; i++)
		assert_false(look_at(&c, 100 + i, -5, samples, halted, &b));
	/* At 107.5, the snapshot of 101.5 was restored. */
	assert_true(look_at(&c, 108, -11, samples, halted, &b));
	assert_int_equal(b.begin_ns, 107 * SECOND);
	assert_int_equal(b.end_ns, 108 * SECOND);
	assert_int_equal(b.back_ns, 6 * SECOND);
	assert_false(look_at(&c, 109, -11, samples, halted, &b));
	assert_false(look_at(&c, 110, -10, samples, halted, &b)); /* forward */
	assert_false(look_at(&c, 111, -10.05, samples, halted, &b));
	/* A kernel that does not tell. */
	c.ran_ns = 111 * SECOND;
	assert_false(look_at(&c, 112, 0, samples, halted, &b));
}

/* Paused from 103.5 on, and it goes on at 107.5: it lost these 4 s, in which it did not run. */
static void paused_one(uint64_t samples, bool halted)
{
	struct uni_kvm_clock c = { 0 };
	struct uni_stream_back b = { 0 };

	for (int i = 0; i < 4; i++)
		assert_false(look_at(&c, 100 + i, -5, samples, halted, &b));
	assert_false(look_at(&c, 104, -5, samples / 2, false, &b));
	for (int i = 5; i < 8; i++)
		assert_false(look_at(&c, 100 + i, -5, 0, false, &b));
	assert_false(look_at(&c, 108, -9, samples, halted, &b));
	for (int i = 9; i < 20; i++)
		assert_false(look_at(&c, 100 + i, -9, samples, halted, &b));
	/* Many short ones. */
	for (int i = 20; i < 30; i++)
		assert_false(look_at(&c, 100 + i, -9 - 0.9 * (i - 19), samples, halted, &b));
	/* Paused, and then a snapshot from before is restored in the pause. */
	assert_false(look_at(&c, 131, -18, 0, false, &b));
	assert_true(look_at(&c, 132, -28, 0, halted, &b));
	assert_int_equal(b.back_ns, 10 * SECOND);
}

static void test_set_back(void **state)
{
	(void)state;
	restored_one(50, false);
	restored_one(0, true);
	paused_one(50, false);
	paused_one(0, true);
}

/* Whatever comes out of the kernel, nothing is read beyond it. */
static void test_damage(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	uint32_t kind = 99;

	(void)state;
	make(w);
	assert_int_equal(parse(w), -UNI_ENOENT);
	emit_vm(NULL, &w->kvm);
	for (size_t n = 0; n < bpf_seq_size; n++)
		assert_int_equal(uni_kvm_scan_parse(bpf_seq, n, &w->scan), -UNI_ENOENT);
	memcpy(bpf_seq, &kind, sizeof(kind));
	assert_int_equal(parse(w), -UNI_ENOENT);
	free(w);
}

static void file_named(struct world *w, const char *name, void *data, unsigned long magic)
{
	struct super_block sb = { magic };
	struct inode inode = { &sb };
	struct dentry dentry = { { (const unsigned char *)name } };
	struct file f = { data, &inode, { &dentry } };
	struct bpf_iter_meta meta = { 0 };
	struct bpf_iter__task_file ctx = { &meta, &w->task[0], 3, &f };

	assert_int_equal(uni_files(&ctx), 0);
}

static void test_files(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct bpf_iter__task_file end = { 0 };

	(void)state;
	make(w);
	file_named(w, "kvm-vm", &w->kvm, 1); /* no anonymous file: anybody's name */
	file_named(w, "kvm-vcpu-stats:0", &w->vcpu[0], ANON_INODE_MAGIC);
	file_named(w, "kvm-device", &w->vcpu[0], ANON_INODE_MAGIC);
	file_named(w, "kvm-vmx", &w->kvm, ANON_INODE_MAGIC);
	assert_int_equal(uni_files(&end), 0);
	assert_int_equal(bpf_seq_size, 0);
	file_named(w, "kvm-vm", &w->kvm, ANON_INODE_MAGIC);
	file_named(w, "kvm-vcpu:0", &w->vcpu[0], ANON_INODE_MAGIC);
	assert_int_equal(parse(w), 0);
	assert_int_equal(w->scan.nr_vcpus, 1);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_old_slots),
		cmocka_unit_test(test_vcpus),
		cmocka_unit_test(test_namespaces),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_clock_offset),
		cmocka_unit_test(test_set_back),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
