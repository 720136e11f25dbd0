/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tracer where returns cannot be patched: -finstrument-functions, and -pg with the return
 * address hooked. The same work, built with those flags, calls the library by itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "guesttrace.h"
#include "guesttrace_fallback.h"

static struct ring_memory start(void)
{
	return trace_start(64, UNI_TRACE_STOP, work_skip_exit);
}

static struct seen whole(uint64_t lost)
{
	struct uni_ring_stats stats;
	struct seen seen = read_all(&stats);

	assert_int_equal(stats.lapped + stats.torn, 0);
	assert_int_equal(cpu.lost, lost);
	assert_int_equal(seen.backwards, 0);
	return seen;
}

/* Calls that a function made, which has less than 512 bytes; 0: whose caller is not told. */
static int count_within(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	struct uni_trace_cursor c = uni_trace_records(info, s, content);
	struct uni_trace_record rec;
	uint64_t *of = arg;

	while (uni_trace_next(&c, &rec)) {
		if (rec.kind == UNI_TRACE_KIND_EXT && rec.cls == UNI_TRACE_CLASS_CALL)
			of[1] += of[0] != 0
					 ? UNI_TRACE_CALLER(rec.words[0]) - (uint32_t)of[0] < 0x200
					 : UNI_TRACE_CALLER(rec.words[0]) == 0;
	}
	return 0;
}

static uint64_t callers_within(uintptr_t function)
{
	uint64_t of[2] = { function, 0 };
	struct uni_ring *r = open_ring();

	assert_int_equal(uni_ring_drain(r, 0, count_within, of), 0);
	uni_ring_close(r);
	return of[1];
}

/* --- -finstrument-functions ------------------------------------------------------------------- */

static void instrumented(void **state)
{
	struct ring_memory m = start();
	struct seen seen;

	instrument_calls = 0;
	assert_int_equal(instrument_fib(15), 610);
	seen = whole(0);
	assert_int_equal(seen.entries, instrument_calls);
	assert_int_equal(seen.exits, instrument_calls);
	assert_int_equal(seen.lowest, 0);
	uni_trace_enable(0);
	instrument_fib(10);
	assert_int_equal(whole(0).records, seen.records);
	trace_end(&m);
}

static void instrumented_in_other_modes(void **state)
{
	struct ring_memory m = start();
	struct seen seen;

	instrument_calls = 0;
	uni_trace_set_mode(UNI_TRACE_LITE);
	instrument_fib(15);
	seen = whole(0);
	assert_int_equal(seen.leaves, (instrument_calls + 1) / 2);
	assert_int_equal(seen.entries, instrument_calls / 2);
	trace_end(&m);

	m = start();
	instrument_calls = 0;
	uni_trace_set_mode(UNI_TRACE_FUNCTION);
	instrument_fib(15);
	seen = whole(0);
	assert_int_equal(seen.calls, instrument_calls);
	assert_int_equal(seen.entries + seen.exits, 0);
	trace_end(&m);

	m = start();
	instrument_calls = 0;
	uni_trace_set_mode(UNI_TRACE_CALLERS);
	instrument_fib(15);
	seen = whole(0);
	assert_int_equal(seen.calls, instrument_calls);
	assert_int_equal(callers_within((uintptr_t)instrument_fib), instrument_calls - 1);
	trace_end(&m);

	m = start();
	uni_trace_set_max_depth(3);
	instrument_fib(15);
	seen = whole(0);
	assert_int_equal(seen.entries, 7);
	assert_int_equal(seen.exits, 7);
	assert_int_equal(seen.deepest, 3);
	trace_end(&m);
}

/* --- -pg -------------------------------------------------------------------------------------- */

static uint64_t table[1 << 10] __attribute__((aligned(16)));

static void returns_are_hooked(int (*fib)(int), unsigned long *calls)
{
	struct ring_memory m = start();
	struct seen seen;

	assert_int_equal(uni_trace_return_table(table, sizeof(table)), 0);
	*calls = 0;
	assert_int_equal(fib(15), 610);
	seen = whole(0);
	assert_int_equal(seen.entries, *calls);
	assert_int_equal(seen.exits, *calls);
	assert_int_equal(seen.lowest, 0);
	assert_int_equal(seen.depth, 0);

	uni_trace_enable(0);
	fib(10);
	assert_int_equal(whole(0).records, seen.records);
	uni_trace_enable(1);
	uni_trace_set_max_depth(2);
	*calls = 0;
	assert_int_equal(fib(15), 610);
	assert_int_equal(whole(0).entries, seen.entries + 3);
	assert_int_equal(whole(0).exits, seen.exits + 3);
	trace_end(&m);
}

static void fentry_returns(void **state)
{
	returns_are_hooked(fentry_fib, &fentry_calls);
}

static void mcount_returns(void **state)
{
	returns_are_hooked(mcount_fib, &mcount_calls);
}

/* No return address is hooked. That of mcount's caller is not where the others are: it is not
 * told. */
static void callers_without_returns(void **state)
{
	struct ring_memory m = start();

	assert_int_equal(uni_trace_return_table(table, sizeof(table)), 0);
	uni_trace_set_mode(UNI_TRACE_CALLERS);
	fentry_calls = mcount_calls = 0;
	assert_int_equal(fentry_fib(15), 610);
	assert_int_equal(whole(0).calls, fentry_calls);
	assert_int_equal(callers_within((uintptr_t)fentry_fib), fentry_calls - 1);
	assert_int_equal(mcount_fib(15), 610);
	assert_int_equal(whole(0).calls, fentry_calls + mcount_calls);
	assert_int_equal(callers_within(0), mcount_calls);
	trace_end(&m);
}

/* The next call at that place takes over the entry that longjmp leaves in the table. */
static void jumps_out_of_calls(void **state)
{
	struct ring_memory m = start();
	struct seen seen;

	assert_int_equal(uni_trace_return_table(table, 64 * 16), 0);
	fentry_calls = 0;
	for (int i = 0; i < 1000; i++) {
		jmp_buf out;

		if (setjmp(out) == 0)
			fentry_leave(5, out);
		assert_int_equal(fentry_fib(5), 5);
	}
	seen = whole(0);
	assert_int_equal(seen.entries, fentry_calls);
	assert_int_equal(seen.exits, fentry_calls - 6 * 1000); /* those jumped out of */
	trace_end(&m);
}

/* A full table: the calls have no exit, which counts as lost. */
static void full_table(void **state)
{
	struct ring_memory m = start();
	struct seen seen;

	assert_int_equal(uni_trace_return_table(table, 15 * 16), -1);
	assert_int_equal(uni_trace_return_table(table, 16 * 16), 0);
	fentry_calls = 0;
	assert_int_equal(fentry_deep(100), 100);
	assert_true(cpu.lost > 0);
	seen = whole(cpu.lost);
	assert_int_equal(seen.entries, fentry_calls);
	assert_int_equal(seen.entries, 101);
	assert_int_equal(seen.exits + cpu.lost, fentry_calls);
	trace_end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instrumented),
		cmocka_unit_test(instrumented_in_other_modes),
		cmocka_unit_test(fentry_returns),
		cmocka_unit_test(mcount_returns),
		cmocka_unit_test(callers_without_returns),
		cmocka_unit_test(jumps_out_of_calls),
		cmocka_unit_test(full_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
