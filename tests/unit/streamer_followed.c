/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains that a guest has followed by frame pointers: the caller that they skip is put in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "arch/cfi.h"
#include "base/checked.h"
#include "base/clock.h"
#include "sampling/sampler.h"

#define CODE  0x4000u
#define STACK 0x9000u
#define FRAME 0x9100u
#define OTHER 0xa000u

struct fake {
	struct uni_target t;
	struct uni_gmem *m;
	const struct uni_stream_raw *raw; /* to be handed over, once */
	unsigned times;
	unsigned reads; /* of memory */
};

struct followed {
	uint16_t nr;
	uint64_t pc[8];
	uint8_t stop;
	uint32_t thread, nr_threads;
	uint64_t object; /* of the newest */
};

static unsigned fake_caps(struct uni_target *t)
{
	return UNI_CAP_STREAM | UNI_CAP_INSIDE;
}

static int fake_nr_vcpus(struct uni_target *t)
{
	return 1;
}

static int fake_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags)
{
	return -UNI_ENOTSUP;
}

static struct uni_gmem *fake_gmem(struct uni_target *t)
{
	return ((struct fake *)t)->m;
}

static int fake_start(struct uni_target *t, const struct uni_stream_cfg *cfg,
	const struct uni_unwind_hints *hints, struct uni_err *err)
{
	return 0;
}

static int fake_read(struct uni_target *t, const struct uni_stream_sink *sink)
{
	struct fake *f = (struct fake *)t;

	for (unsigned i = 0; f->raw != NULL && i < uni_max(f->times, 1u); i++)
		sink->raw(sink->ctx, &f->raw[i]);
	f->raw = NULL;
	return 0;
}

static const struct uni_target_ops fake_ops = {
	.scheme = "fake",
	.caps = fake_caps,
	.nr_vcpus = fake_nr_vcpus,
	.snap = fake_snap,
	.gmem = fake_gmem,
	.stream_method = "fake",
	.stream_start = fake_start,
	.stream_read = fake_read,
};

static int fake_memory(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	((struct fake *)ctx)->reads++;
	return -UNI_EFAULT;
}

static const struct uni_gmem_ops memory_ops = { .read = fake_memory };

/* A function: at its first byte, behind its push, in its body, in its return. */
static const struct uni_cfi_rule cfi_rules[] = {
	{ .cfa.how = UNI_CFI_NONE },
	{ .cfa = { .how = UNI_CFI_REG, .reg = UNI_X86_RSP, .arg = 8 },
		.ra = { .how = UNI_CFI_AT_CFA, .arg = -8 },
		.fp = { .how = UNI_CFI_SAME } },
	{ .cfa = { .how = UNI_CFI_REG, .reg = UNI_X86_RSP, .arg = 16 },
		.ra = { .how = UNI_CFI_AT_CFA, .arg = -8 },
		.fp = { .how = UNI_CFI_AT_CFA, .arg = -16 } },
	{ .cfa = { .how = UNI_CFI_REG, .reg = UNI_X86_RBP, .arg = 16 },
		.ra = { .how = UNI_CFI_AT_CFA, .arg = -8 },
		.fp = { .how = UNI_CFI_AT_CFA, .arg = -16 } },
};
static const struct uni_cfi_row cfi_rows[] = {
	{ 0, 1 },
	{ 1, 2 },
	{ 4, 3 },
	{ 0x20, 1 },
	{ 0x21, 0 },
};
static const uint32_t cfi_bucket[] = { 0 };
static const struct uni_cfi_table cfi_table = { .base = CODE,
	.row = cfi_rows,
	.bucket = cfi_bucket,
	.rule = cfi_rules,
	.nr_rows = uni_array_len(cfi_rows),
	.nr_buckets = 1,
	.nr_rules = uni_array_len(cfi_rules),
	.size = 0x100,
	.shift = 10 };

static void keep(void *ctx, const struct uni_sample *s)
{
	struct followed *f = ctx;

	assert_in_range(s->nr, 1, 8);
	f->nr = s->nr;
	f->stop = s->stop;
	f->thread = f->thread << 4 | s->thread;
	memcpy(f->pc, s->pc, s->nr * sizeof(s->pc[0]));
}

/* A sample that was stopped there. Nothing else of the guest is read: a line is too slow for that.
 */
static struct followed follow_sample(struct uni_stream_raw *raw, uint64_t pc, uint64_t fp)
{
	const struct uni_gmem_region all = { .start = 4096, .size = 1u << 20 };
	const struct uni_unwind_hints hints = {
		.text_start = CODE, .text_size = 0x100, .cfi = &cfi_table
	};
	struct fake f = { .t = { .ops = &fake_ops, .arch = &uni_arch_x86_64 }, .raw = raw };
	struct followed ret = { 0 };
	struct uni_unwinder u;
	struct uni_sampler_job job = { .t = &f.t,
		.cfg = { .frequency = 500,
			.duration_ns = 5 * UNI_NSEC_PER_MSEC,
			.max_duty = 0.1,
			.unwinder = &u,
			.on_sample = keep,
			.ctx = &ret } };

	raw->regs = (struct uni_regs){
		.state = UNI_VCPU_RUNNING, .pc = pc, .sp = STACK, .pc_valid = true, .sp_valid = true
	};
	uni_regs_set(&raw->regs, UNI_X86_RBP, fp);
	uni_regs_set(&raw->regs, UNI_X86_RSP, STACK);
	assert_int_equal(
		uni_gmem_create(&memory_ops, &f, UNI_GMEM_VIRTUAL, &all, 1, &f.m, NULL), 0);
	uni_unwinder_init(&u, &uni_arch_x86_64, &hints);
	uni_sampler_run_all(&job, 1);
	uni_gmem_destroy(f.m);
	assert_int_equal(job.rc, 0);
	assert_int_equal(f.reads, 0);
	return ret;
}

/* Follows a chain of three with the leaf at that byte of the function. */
static struct followed follow(uint64_t at, uint64_t top, uint64_t second, uint64_t fp)
{
	const uint64_t pc[] = { CODE + at, 0x1111, 0x2222 }, stack[] = { top, second };
	struct uni_stream_raw raw = { .t_ns = uni_now_ns(),
		.weight = 1,
		.stack = (const uint8_t *)stack,
		.stack_size = sizeof(stack),
		.alone = true,
		.pc = pc,
		.nr = 3,
		.stop = UNI_STOP_ROOT };
	struct followed ret = follow_sample(&raw, pc[0], fp);

	assert_int_equal(ret.pc[0], CODE + at);
	assert_int_equal(ret.stop, UNI_STOP_ROOT);
	return ret;
}

static void a_leaf_without_a_frame_keeps_its_caller(void **state)
{
	struct followed got = follow(0, 0x1234, 0, FRAME);

	assert_int_equal(got.nr, 4);
	assert_int_equal(got.pc[1], 0x1234);
	assert_int_equal(got.pc[2], 0x1111);
	assert_int_equal(got.pc[3], 0x2222);
	got = follow(1, FRAME, 0x1234, FRAME);
	assert_int_equal(got.nr, 4);
	assert_int_equal(got.pc[1], 0x1234);
	got = follow(0x20, 0x1234, 0, FRAME);
	assert_int_equal(got.nr, 4);
	/* A call of itself, from the same place. */
	got = follow(0, 0x1111, 0, FRAME);
	assert_int_equal(got.nr, 4);
	assert_int_equal(got.pc[1], 0x1111);
}

static void others_stay_as_they_are(void **state)
{
	/* In its body the frame is the chain's; also where it is on top of the stack. */
	struct followed got = follow(8, 0x1234, 0, FRAME);

	assert_int_equal(got.nr, 3);
	assert_int_equal(got.pc[1], 0x1111);
	got = follow(8, FRAME, 0x1111, STACK);
	assert_int_equal(got.nr, 3);
	assert_int_equal(got.pc[1], 0x1111);
	/* Nothing is known of this code. */
	got = follow(0x30, 0x1234, 0, FRAME);
	assert_int_equal(got.nr, 3);
}

static void on_thread(void *ctx, const struct uni_record_thread *t)
{
	struct followed *f = ctx;

	assert_int_equal(t->id, ++f->nr_threads);
	assert_false(t->has_number);
	assert_string_equal(t->name, "");
	f->object = t->object;
}

/* The guest says which thread it was: equal ones have one number, none has 0. */
static void threads_are_told_apart(void **state)
{
	static const uint64_t objects[] = { 0x7000, 0, 0x8000, 0x7000 }, pc[] = { CODE };
	const struct uni_gmem_region all = { .start = 4096, .size = 1u << 20 };
	struct uni_stream_raw raw[uni_array_len(objects)];
	struct fake f = { .t = { .ops = &fake_ops, .arch = &uni_arch_x86_64 },
		.raw = raw,
		.times = uni_array_len(raw) };
	struct followed got = { 0 };
	struct uni_unwinder u;
	struct uni_sampler_job job = { .t = &f.t,
		.cfg = { .frequency = 500,
			.duration_ns = 5 * UNI_NSEC_PER_MSEC,
			.max_duty = 0.1,
			.unwinder = &u,
			.on_sample = keep,
			.on_thread = on_thread,
			.ctx = &got } };

	for (size_t i = 0; i < uni_array_len(raw); i++)
		raw[i] = (struct uni_stream_raw){ .t_ns = uni_now_ns(),
			.weight = 1,
			.pc = pc,
			.nr = 1,
			.stop = UNI_STOP_ROOT,
			.regs = { .state = UNI_VCPU_RUNNING, .pc = CODE, .pc_valid = true },
			.thread = objects[i] };
	assert_int_equal(
		uni_gmem_create(&memory_ops, &f, UNI_GMEM_VIRTUAL, &all, 1, &f.m, NULL), 0);
	uni_unwinder_init(&u, &uni_arch_x86_64, NULL);
	uni_sampler_run_all(&job, 1);
	uni_gmem_destroy(f.m);
	assert_int_equal(job.rc, 0);
	assert_int_equal(job.stats.samples, 4);
	assert_int_equal(got.thread, 0x1021);
	assert_int_equal(got.nr_threads, 2);
	assert_int_equal(got.object, 0x8000);
}

/* The chain goes on where the frame pointer leads, on another stack, which was copied, too. */
static void a_chain_goes_on_in_the_other_copy(void **state)
{
	const uint64_t stack[] = { 1, 2 }, other[] = { 7, 0, CODE + 5, 9 };
	struct uni_stream_raw raw = { .t_ns = uni_now_ns(),
		.weight = 1,
		.stack = (const uint8_t *)stack,
		.stack_size = sizeof(stack),
		.other = (const uint8_t *)other,
		.other_size = sizeof(other),
		.other_sp = OTHER,
		.alone = true };
	struct followed got = follow_sample(&raw, CODE + 8, OTHER + 8);

	assert_true(got.nr >= 2);
	assert_int_equal(got.pc[1], CODE + 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_leaf_without_a_frame_keeps_its_caller),
		cmocka_unit_test(others_stay_as_they_are),
		cmocka_unit_test(a_chain_goes_on_in_the_other_copy),
		cmocka_unit_test(threads_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
