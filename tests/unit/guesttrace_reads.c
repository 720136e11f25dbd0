/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables that are read with calls in this process, and when they return. Judged by what the ring
 * and the functions themselves count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "guesttrace.h"
#include "trace/values.h"

static struct uni_trace_reads *head(void)
{
	return (struct uni_trace_reads *)uni_trace_head.reads;
}

static struct uni_trace_read *table(void)
{
	return (struct uni_trace_read *)(head() + 1);
}

static struct uni_trace_read of(
	uint64_t function, const volatile void *variable, int bytes, int is_signed)
{
	return (struct uni_trace_read){ (uint32_t)function, (uint8_t)bytes, (uint8_t)is_signed, 0,
		(uint64_t)variable };
}

static struct ring_memory start(const struct uni_trace_read *all, uint32_t nr)
{
	struct ring_memory m = trace_start(64, UNI_TRACE_STOP, uni_trace_exit_value);

	entry_hook = uni_trace_entry_args;
	assert_int_equal(head()->room, UNI_TRACE_READS);
	for (uint32_t i = 0; i < nr; i++)
		table()[i] = all[i];
	head()->nr = nr;
	work_calls = 0;
	return m;
}

static void stop(struct ring_memory *m)
{
	head()->nr = 0;
	trace_end(m);
}

/* The variables of a ring's calls and returns, in their order. */
struct got {
	size_t nr, words;
	struct one {
		uint64_t argument; /* of a call */
		uint64_t value;	   /* of a return */
		size_t place, nr;  /* of its record in the sub-buffer */
		int returns;
		struct uni_trace_got read[UNI_TRACE_READS_OF];
	} one[1024];
};

static int take_reads(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	struct uni_trace_cursor c = uni_trace_records(info, s, content);
	struct uni_trace_record rec;
	struct got *g = arg;

	while (uni_trace_next(&c, &rec)) {
		struct one *to = &g->one[g->nr];

		if (rec.kind != UNI_TRACE_KIND_EXT)
			continue;
		assert_true(g->nr++ < 1024);
		g->words += 1u + rec.nr;
		to->returns = rec.cls == UNI_TRACE_CLASS_EXIT_VALUE;
		to->argument = to->value = rec.words[0];
		to->place = (size_t)((const uint8_t *)(rec.words - 1) - (const uint8_t *)s);
		to->nr = uni_trace_reads(rec.words, rec.nr, to->returns, to->read);
	}
	return 0;
}

static struct got *read_calls(void)
{
	static struct got got;
	struct uni_ring *r = open_ring();

	got = (struct got){ 0 };
	assert_int_equal(uni_ring_drain(r, 0, take_reads, &got), 0);
	uni_ring_close(r);
	assert_int_equal(cpu.lost, 0);
	return &got;
}

/* Calls that fib(n) makes, itself among them. */
static uint64_t calls_of(uint64_t n)
{
	return n < 2 ? 1 : 1 + calls_of(n - 1) + calls_of(n - 2);
}

/* The function counts its calls; and when a record is written, the ring's pointer is its place. */
static void at_call_and_return(void **state)
{
	const struct uni_trace_read all[] = {
		of((uint64_t)work_fib - 16, &cpu.lost, 8, 0),
		of((uint64_t)work_fib, &work_calls, 8, 0),
		of((uint64_t)work_fib, &cpu.wptr, 2, 0),
		of((uint64_t)work_fib + 16, &cpu.lost, 8, 0),
	};
	struct ring_memory m = start(all, 4);
	uint64_t calls = 0, depth = 0, at[16];
	const struct got *g;

	assert_int_equal(work_fib(9), 34);
	g = read_calls();
	assert_int_equal(g->nr, 2 * calls_of(9));
	for (size_t i = 0; i < g->nr; i++) {
		const struct one *o = &g->one[i];

		assert_int_equal(o->nr, 2);
		assert_int_equal(o->read[0].address, (uint32_t)(uint64_t)&work_calls);
		assert_int_equal(o->read[1].value, o->place);
		if (!o->returns) {
			at[depth++] = i;
			assert_int_equal(o->read[0].value, calls++);
		} else {
			const struct one *call = &g->one[at[--depth]];

			assert_int_equal(
				o->read[0].value - call->read[0].value, calls_of(call->argument));
		}
	}
	/* Other functions have none. */
	work_sum(1, 2, 3, 4, 5, 6);
	g = read_calls();
	assert_int_equal(g->one[g->nr - 1].nr, 0);
	assert_int_equal(g->one[g->nr - 2].nr, 0);
	stop(&m);
}

static void sizes_and_signs(void **state)
{
	static volatile uint64_t v = 0x8182838485868788;
	static const struct {
		int bytes, is_signed;
		uint64_t value;
	} all[] = {
		{ 1, 0, 0x88 },
		{ 1, 1, 0xffffffffffffff88 },
		{ 2, 0, 0x8788 },
		{ 2, 1, 0xffffffffffff8788 },
		{ 4, 0, 0x85868788 },
		{ 4, 1, 0xffffffff85868788 },
		{ 8, 0, 0x8182838485868788 },
		{ 8, 1, 0x8182838485868788 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct uni_trace_read r =
			of((uint64_t)work_sum, &v, all[i].bytes, all[i].is_signed);
		struct ring_memory m = start(&r, 1);
		const struct uni_trace_got *got;

		work_sum(1, 2, 3, 4, 5, 6);
		got = read_calls()->one[1].read;
		assert_int_equal(got->value, all[i].value);
		assert_int_equal(got->is_signed, all[i].is_signed);
		assert_true(uni_trace_got_number(got) ==
			    (all[i].is_signed ? (__int128)(int64_t)all[i].value
					      : (__int128)all[i].value));
		stop(&m);
	}
}

/* More than a function may have, and more than there is room for. */
static void there_is_an_end(void **state)
{
	struct uni_trace_read all[UNI_TRACE_READS];
	struct ring_memory m;
	const struct got *g;

	for (size_t i = 0; i < UNI_TRACE_READS; i++)
		all[i] = of((uint64_t)work_sum, &cpu.lost + i % 2, 8, 0);
	m = start(all, UNI_TRACE_READS);
	head()->nr = 1000000;
	work_sum(1, 2, 3, 4, 5, 6);
	g = read_calls();
	assert_int_equal(g->nr, 2);
	assert_int_equal(g->one[0].nr, UNI_TRACE_READS_OF);
	assert_int_equal(g->one[1].nr, UNI_TRACE_READS_OF);
	assert_int_equal(g->one[0].read[1].address, (uint32_t)(uint64_t)(&cpu.lost + 1));
	/* The words of a record: itself, registers, variables, function or stack pointer. */
	assert_int_equal(g->words, 1 + 6 + 8 + 1 + 1 + 2 + 8 + 1);
	stop(&m);
}

static void entries_alone(void **state)
{
	struct uni_trace_read r = of((uint64_t)work_fib, &work_calls, 8, 0);
	struct ring_memory m = start(&r, 1);
	const struct got *g;

	uni_trace_set_mode(UNI_TRACE_CALLERS);
	exit_hook = work_skip_exit;
	work_fib(5);
	g = read_calls();
	assert_int_equal(g->nr, calls_of(5));
	for (size_t i = 0; i < g->nr; i++)
		assert_int_equal(g->one[i].read[0].value, i);
	stop(&m);
}

static jmp_buf out;

static void leave(void)
{
	longjmp(out, 1);
}

/* A call at each of many places that never returns. */
static __attribute__((noinline)) void leave_places(int nr)
{
	char frame[64];

	__asm__ volatile("" : : "r"(frame) : "memory");
	if (setjmp(out) == 0)
		work_fib(0);
	if (nr > 1)
		leave_places(nr - 1);
	__asm__ volatile("" : : "r"(frame) : "memory");
}

/* Without a place for it, a return is there without variables. */
static void places_run_out(void **state)
{
	struct uni_trace_read r = of((uint64_t)work_fib, &work_calls, 8, 0);
	struct ring_memory m = start(&r, 1);
	uint64_t returns = 0, without = 0;
	const struct got *g;

	exit_hook = leave;
	leave_places(600);
	exit_hook = uni_trace_exit_value;
	work_fib(8);
	g = read_calls();
	for (size_t i = 0; i < g->nr; i++) {
		assert_true(g->one[i].nr == 1 || (g->one[i].returns && g->one[i].nr == 0));
		returns += g->one[i].returns != 0;
		without += g->one[i].nr == 0;
	}
	assert_int_equal(returns, calls_of(8));
	assert_int_not_equal(without, 0);
	/* Each place is given back by the next call there. */
	head()->nr = 0;
	exit_hook = leave;
	leave_places(600);
	exit_hook = uni_trace_exit_value;
	stop(&m);
	m = start(&r, 1);
	work_fib(8);
	g = read_calls();
	for (size_t i = 0; i < g->nr; i++)
		assert_int_equal(g->one[i].nr, 1);
	stop(&m);
}

/* Records that no guest writes: nothing behind their words is read (its own memory, for ASan). */
static void words_are_bounded(void **state)
{
	const uint64_t good = UNI_TRACE_READ_WORD(0x1234, 1), text = 1 | 16 << 16;
	const uint64_t wide = UNI_TRACE_READ | 16 << 16;
	const struct {
		size_t nr, reads;
		uint64_t words[16];
	} all[] = {
		{ 0, 0, { 0 } },
		{ 3, 0, { 1, 2, 3 } },
		{ 4, 0, { 1, 2, good, 3 } },
		{ 5, 1, { 1, 2, good, 7, 3 } },
		{ 6, 1, { 1, 2, good, 7, good, 3 } },
		{ 8, 1, { 1, 2, text, 0, 0, good, 7, 3 } },
		{ 8, 1, { 1, 2, wide, 0, 0, good, 7, 3 } },
		{ 5, 0, { 1, 2, good | 0xffff << 16, 7, 3 } },
		{ 13, 4, { 1, 2, good, 7, good, 7, good, 7, good, 7, good, 7, 3 } },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct uni_trace_got got[UNI_TRACE_READS_OF];
		uint64_t *own = test_malloc(all[i].nr * sizeof(*own) + 1);

		for (size_t k = 0; k < all[i].nr; k++)
			own[k] = all[i].words[k];
		assert_int_equal(uni_trace_reads(own, all[i].nr, true, got), all[i].reads);
		for (size_t k = 0; k < all[i].reads; k++) {
			assert_int_equal(got[k].value, 7);
			assert_int_equal(got[k].address, 0x1234);
		}
		test_free(own);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_call_and_return),
		cmocka_unit_test(sizes_and_signs),
		cmocka_unit_test(there_is_an_end),
		cmocka_unit_test(entries_alone),
		cmocka_unit_test(places_run_out),
		cmocka_unit_test(words_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
