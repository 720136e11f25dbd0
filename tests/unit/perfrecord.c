/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of perf events, out of a ring that wraps; and chains from the stacks that they hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "../support/guest.h"
#include "base/checked.h"
#include "sampling/rawstack.h"
#include "backend/proc/proc.h"
#include "backend/proc/record.h"

#define RING  4096u
#define STACK 256u
#define BASE  0x100000ull
#define SIZE  0x10000u
#define SP    (BASE + 0x8000)

#define KERNEL 0xffffffff81000000ull

/* As the kernel lays one out: words, then the stack between its size and what of it is good. */
struct sample {
	struct perf_event_header h;
	uint64_t t_ns, nr, chain[4], abi, reg[17], stack_bytes, stack[STACK / 8], good;
};

static struct sample make_sample(void)
{
	struct sample s = {
		.h = { .type = PERF_RECORD_SAMPLE, .size = sizeof(s) },
		.t_ns = 1234,
		.nr = 4,
		.chain = { PERF_CONTEXT_KERNEL, KERNEL + 2, KERNEL + 1, PERF_CONTEXT_USER },
		.abi = PERF_SAMPLE_REGS_ABI_64,
		.stack_bytes = STACK,
		.good = STACK,
	};

	assert_int_equal(uni_proc_nr_perf_regs, uni_array_len(s.reg));
	for (size_t i = 0; i < uni_array_len(s.reg); i++)
		s.reg[i] = 0x100 + i;
	s.reg[6] = SP + 16; /* rbp */
	s.reg[7] = SP;
	s.reg[8] = BASE + 0x10; /* rip */
	return s;
}

static enum uni_proc_record parse(
	const struct sample *s, size_t size, struct uni_stream_raw *raw_ret)
{
	uint64_t lost = 77;
	enum uni_proc_record what;

	memset(raw_ret, 0x5a, sizeof(*raw_ret));
	what = uni_proc_record_parse((const uint8_t *)s, size, raw_ret, &lost);
	assert_int_equal(lost, 77);
	return what;
}

static void test_a_sample_is_read(void **state)
{
	struct sample s = make_sample();
	struct uni_stream_raw raw;
	uint64_t v;

	assert_int_equal(parse(&s, sizeof(s), &raw), UNI_PROC_RECORD_SAMPLE);
	assert_int_equal(raw.t_ns, 1234);
	assert_int_equal(raw.weight, 1);
	assert_int_equal(raw.regs.state, UNI_VCPU_RUNNING);
	assert_true(raw.regs.pc_valid && raw.regs.sp_valid);
	assert_int_equal(raw.regs.pc, BASE + 0x10);
	assert_int_equal(raw.regs.sp, SP);
	assert_true(uni_regs_get(&raw.regs, UNI_X86_RAX, &v) && v == 0x100);
	assert_true(uni_regs_get(&raw.regs, UNI_X86_RBX, &v) && v == 0x101);
	assert_true(uni_regs_get(&raw.regs, UNI_X86_RBP, &v) && v == SP + 16);
	assert_true(uni_regs_get(&raw.regs, UNI_X86_R15, &v) && v == 0x110);
	assert_ptr_equal(raw.stack, s.stack);
	assert_int_equal(raw.stack_size, STACK);
}

static void test_the_good_part_of_the_stack(void **state)
{
	struct sample s = make_sample();
	struct uni_stream_raw raw;

	s.good = 24;
	assert_int_equal(parse(&s, sizeof(s), &raw), UNI_PROC_RECORD_SAMPLE);
	assert_int_equal(raw.stack_size, 24);
	s.good = UINT64_MAX; /* not more than there is */
	assert_int_equal(parse(&s, sizeof(s), &raw), UNI_PROC_RECORD_SAMPLE);
	assert_int_equal(raw.stack_size, STACK);
	s.stack_bytes = 0; /* then nothing follows */
	assert_int_equal(parse(&s, offsetof(struct sample, stack), &raw), UNI_PROC_RECORD_SAMPLE);
	assert_int_equal(raw.stack_size, 0);
}

static void test_samples_that_are_not_whole(void **state)
{
	struct sample s = make_sample();
	struct uni_stream_raw raw;

	for (size_t size = sizeof(s.h); size < sizeof(s); size++)
		assert_int_equal(parse(&s, size, &raw), UNI_PROC_RECORD_BROKEN);
	for (size_t size = 0; size < sizeof(s.h); size++)
		assert_int_equal(parse(&s, size, &raw), UNI_PROC_RECORD_OTHER);
	s.stack_bytes = UINT64_MAX;
	assert_int_equal(parse(&s, sizeof(s), &raw), UNI_PROC_RECORD_BROKEN);
	s = make_sample();
	s.abi = PERF_SAMPLE_REGS_ABI_32;
	assert_int_equal(parse(&s, sizeof(s), &raw), UNI_PROC_RECORD_BROKEN);
	s.abi = PERF_SAMPLE_REGS_ABI_NONE; /* a thread of the kernel */
	s.chain[0] = PERF_CONTEXT_USER;
	assert_int_equal(parse(&s, sizeof(s), &raw), UNI_PROC_RECORD_BROKEN);
	s.abi = PERF_SAMPLE_REGS_ABI_64;
	for (s.nr = 100; s.nr != 0;
		s.nr <<= 3) /* more than there are; in the end their bytes wrap */
		assert_int_equal(parse(&s, sizeof(s), &raw), UNI_PROC_RECORD_BROKEN);
}

static void test_the_kernels_part(void **state)
{
	struct sample s = make_sample();
	struct uni_stream_raw raw;

	assert_int_equal(parse(&s, sizeof(s), &raw), UNI_PROC_RECORD_SAMPLE);
	assert_int_equal(raw.nr_kernel, 2);
	assert_true(raw.kernel[0] == KERNEL + 2 && raw.kernel[1] == KERNEL + 1);
	assert_int_equal(raw.regs.pc, BASE + 0x10);
	s.chain[3] = KERNEL; /* to the end */
	assert_int_equal(parse(&s, sizeof(s), &raw), UNI_PROC_RECORD_SAMPLE);
	assert_int_equal(raw.nr_kernel, 3);
	s.chain[0] = PERF_CONTEXT_USER; /* it ran in user space */
	assert_int_equal(parse(&s, sizeof(s), &raw), UNI_PROC_RECORD_SAMPLE);
	assert_int_equal(raw.nr_kernel, 0);
	/* A thread that ends has no memory, so neither registers nor a stack. */
	s.chain[0] = PERF_CONTEXT_KERNEL;
	s.abi = PERF_SAMPLE_REGS_ABI_NONE;
	s.reg[0] = 0; /* bytes of the stack */
	assert_int_equal(parse(&s, sizeof(s), &raw), UNI_PROC_RECORD_SAMPLE);
	assert_int_equal(raw.nr_kernel, 3);
	assert_true(
		!raw.regs.pc_valid && raw.stack_size == 0 && raw.regs.state == UNI_VCPU_RUNNING);
}

static void test_other_records(void **state)
{
	struct {
		struct perf_event_header h;
		uint64_t id, lost;
	} lost = { .h = { .type = PERF_RECORD_LOST, .size = sizeof(lost) }, .lost = 42 };
	struct uni_stream_raw raw;
	uint64_t n = 0;

	assert_int_equal(uni_proc_record_parse((const uint8_t *)&lost, sizeof(lost), &raw, &n),
		UNI_PROC_RECORD_LOST);
	assert_int_equal(n, 42);
	assert_int_equal(uni_proc_record_parse((const uint8_t *)&lost, sizeof(lost) - 1, &raw, &n),
		UNI_PROC_RECORD_OTHER);
	lost.h.type = PERF_RECORD_THROTTLE;
	assert_int_equal(uni_proc_record_parse((const uint8_t *)&lost, sizeof(lost), &raw, &n),
		UNI_PROC_RECORD_OTHER);
	/* A name, and one that comes with a program. */
	lost.h.type = PERF_RECORD_COMM;
	assert_int_equal(uni_proc_record_parse((const uint8_t *)&lost, sizeof(lost), &raw, &n),
		UNI_PROC_RECORD_OTHER);
	lost.h.misc = PERF_RECORD_MISC_COMM_EXEC;
	assert_int_equal(uni_proc_record_parse((const uint8_t *)&lost, sizeof(lost), &raw, &n),
		UNI_PROC_RECORD_EXEC);
}

static void put(uint8_t *ring, uint64_t at, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		ring[(at + i) % RING] = ((const uint8_t *)bytes)[i];
}

static void test_a_ring_that_wraps(void **state)
{
	static uint8_t out[UNI_PROC_RECORD_MAX];
	struct sample s = make_sample();
	uint8_t ring[RING];

	/* Also with positions that have themselves wrapped, and with the header cut in two. */
	for (uint64_t tail = 0 - (uint64_t)2 * RING; tail != RING; tail += 4) {
		memset(ring, 0xee, sizeof(ring));
		put(ring, tail, &s, sizeof(s));
		memset(out, 0, sizeof(s));
		assert_int_equal(
			uni_proc_ring_take(ring, RING, tail, tail + sizeof(s), out), sizeof(s));
		assert_memory_equal(out, &s, sizeof(s));
		assert_int_equal(uni_proc_ring_take(ring, RING, tail, tail + RING, out), sizeof(s));
	}
}

static void test_a_ring_that_is_not_believed(void **state)
{
	static uint8_t out[UNI_PROC_RECORD_MAX];
	struct perf_event_header h = { .type = PERF_RECORD_SAMPLE, .size = 64 };
	uint8_t ring[RING] = { 0 };

	put(ring, 0, &h, sizeof(h));
	assert_int_equal(uni_proc_ring_take(ring, RING, 0, 64, out), 64);
	assert_int_equal(uni_proc_ring_take(ring, RING, 0, 63, out), 0); /* not written yet */
	assert_int_equal(uni_proc_ring_take(ring, RING, 0, 0, out), 0);	 /* nothing is there */
	assert_int_equal(uni_proc_ring_take(ring, RING, 0, 7, out), 0);	 /* no header */
	assert_int_equal(uni_proc_ring_take(ring, RING, 0, RING + 8, out), 0); /* overtaken */
	assert_int_equal(uni_proc_ring_take(ring, RING, 8, 0, out), 0);	       /* backwards */
	h.size = sizeof(h) - 1;
	put(ring, 0, &h, sizeof(h));
	assert_int_equal(uni_proc_ring_take(ring, RING, 0, 64, out), 0);
}

struct fake {
	struct uni_target t;
	struct guest g;
};

static struct uni_gmem *fake_gmem(struct uni_target *t)
{
	return ((struct fake *)t)->g.m;
}

static const struct uni_target_ops fake_ops = { .gmem = fake_gmem };

/* The chain of a frame in the copy, whose caller's is at `next` in the copy or the process. */
static void unwind(struct fake *f, struct sample *s, uint64_t next, struct uni_chain *ret)
{
	struct uni_rawstack *r = NULL;
	struct uni_stream_raw raw;
	struct uni_unwinder u;

	s->stack[2] = next; /* rbp is SP + 16 */
	s->stack[3] = BASE + 0x20;
	uni_unwinder_init(&u, &uni_arch_x86_64, NULL);
	assert_int_equal(uni_unwinder_use(&u, "fp", NULL), 0);
	assert_int_equal(parse(s, sizeof(*s), &raw), UNI_PROC_RECORD_SAMPLE);
	assert_int_equal(uni_rawstack_create(&f->t, &u, &r, NULL), 0);
	uni_rawstack_unwind(r, &raw, ret);
	uni_rawstack_destroy(r);
}

static struct fake *new_fake(void)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->t.ops = &fake_ops;
	f->t.arch = &uni_arch_x86_64;
	assert_true(guest_init(&f->g, BASE, SIZE, UNI_GMEM_VIRTUAL));
	return f;
}

static void free_fake(struct fake *f)
{
	guest_deinit(&f->g);
	free(f);
}

static void test_the_copy_comes_first(void **state)
{
	struct fake *f = new_fake();
	struct sample s = make_sample();
	struct uni_chain chain;

	/* The process has gone on: what lies there now is not what the sample saw. */
	guest_put64(&f->g, SP + 24, BASE + 0x66);
	s.stack[6] = 0;
	s.stack[7] = BASE + 0x30;
	unwind(f, &s, SP + 48, &chain);
	assert_int_equal(chain.nr, 3);
	assert_int_equal(chain.stop, UNI_STOP_ROOT);
	assert_int_equal(chain.pc[0], BASE + 0x10);
	assert_int_equal(chain.pc[1], BASE + 0x20);
	assert_int_equal(chain.pc[2], BASE + 0x30);
	assert_int_equal(chain.flags[2], 0);
	free_fake(f);
}

/* The outermost frame is a guess, and the chain is cut short: the process has run on. */
static void expect_last_is_guess(const struct uni_chain *c, uint64_t pc)
{
	assert_int_equal(c->nr, 3);
	assert_int_equal(c->pc[2], pc);
	assert_int_equal(c->flags[1], 0);
	assert_int_equal(c->flags[2], UNI_FRAME_GUESS);
	assert_int_equal(c->stop, UNI_STOP_FAULT);
}

static void test_behind_the_copy_is_the_process(void **state)
{
	struct fake *f = new_fake();
	struct sample s = make_sample();
	struct uni_chain chain;

	guest_put64(&f->g, SP + STACK + 64, 0);
	guest_put64(&f->g, SP + STACK + 72, BASE + 0x40);
	unwind(f, &s, SP + STACK + 64, &chain);
	expect_last_is_guess(&chain, BASE + 0x40);

	/* And a frame of which half was copied: that half as it was. */
	s.stack[STACK / 8 - 1] = 0;
	guest_put64(&f->g, SP + STACK - 8, 0x1111111111111111);
	guest_put64(&f->g, SP + STACK, BASE + 0x50);
	unwind(f, &s, SP + STACK - 8, &chain);
	expect_last_is_guess(&chain, BASE + 0x50);
	free_fake(f);
}

static void count_unwound(void *ctx)
{
	++*(int *)ctx;
}

/* A thread that is held has not gone on: what lies behind the copy is what it was. */
static void test_behind_the_copy_of_a_held_thread(void **state)
{
	struct fake *f = new_fake();
	struct sample s = make_sample();
	struct uni_rawstack *r = NULL;
	struct uni_stream_raw raw;
	struct uni_unwinder u;
	struct uni_chain chain;
	int unwound = 0;

	guest_put64(&f->g, SP + STACK + 64, 0);
	guest_put64(&f->g, SP + STACK + 72, BASE + 0x40);
	s.stack[2] = SP + STACK + 64;
	s.stack[3] = BASE + 0x20;
	uni_unwinder_init(&u, &uni_arch_x86_64, NULL);
	assert_int_equal(uni_unwinder_use(&u, "fp", NULL), 0);
	assert_int_equal(parse(&s, sizeof(s), &raw), UNI_PROC_RECORD_SAMPLE);
	raw.unwound = count_unwound;
	raw.unwound_ctx = &unwound;
	assert_int_equal(uni_rawstack_create(&f->t, &u, &r, NULL), 0);
	uni_rawstack_unwind(r, &raw, &chain);
	assert_int_equal(chain.nr, 3);
	assert_int_equal(chain.pc[2], BASE + 0x40);
	assert_int_equal(chain.flags[2], 0);
	assert_int_equal(chain.stop, UNI_STOP_ROOT);
	assert_int_equal(unwound, 0); /* by its caller */
	uni_rawstack_destroy(r);
	free_fake(f);
}

static bool is_below_stack(void *ctx, uint64_t va)
{
	(void)ctx;
	return va < SP;
}

/* A word that points at the stack is no caller, though the process may be read there. */
static void test_what_the_process_cannot_execute(void **state)
{
	static const struct uni_gmem_ops ops = { .read = guest_read, .is_code = is_below_stack };
	const struct uni_gmem_region all = { .start = BASE, .size = SIZE };
	struct fake *f = new_fake();
	struct sample s = make_sample();
	struct uni_chain chain;

	uni_gmem_destroy(f->g.m);
	assert_int_equal(uni_gmem_create(&ops, &f->g, UNI_GMEM_VIRTUAL, &all, 1, &f->g.m, NULL), 0);
	s.stack[6] = 0;
	s.stack[7] = SP + 32;
	unwind(f, &s, SP + 48, &chain);
	assert_int_equal(chain.nr, 2);
	assert_int_equal(chain.pc[1], BASE + 0x20);
	assert_int_equal(chain.stop, UNI_STOP_BADPC);
	s.stack[7] = BASE + 0x30;
	unwind(f, &s, SP + 48, &chain);
	assert_int_equal(chain.nr, 3);
	assert_int_equal(chain.stop, UNI_STOP_ROOT);
	free_fake(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_sample_is_read),
		cmocka_unit_test(test_the_good_part_of_the_stack),
		cmocka_unit_test(test_samples_that_are_not_whole),
		cmocka_unit_test(test_the_kernels_part),
		cmocka_unit_test(test_other_records),
		cmocka_unit_test(test_a_ring_that_wraps),
		cmocka_unit_test(test_a_ring_that_is_not_believed),
		cmocka_unit_test(test_the_copy_comes_first),
		cmocka_unit_test(test_behind_the_copy_is_the_process),
		cmocka_unit_test(test_behind_the_copy_of_a_held_thread),
		cmocka_unit_test(test_what_the_process_cannot_execute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
