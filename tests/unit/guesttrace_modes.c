/* SPDX-License-Identifier: BSD-2-Clause */
/* The tracer's control, in this process: enable, depth, mode, arguments and values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "guesttrace.h"

static struct ring_memory start(void (*entry)(void), void (*exit)(void))
{
	struct ring_memory m = trace_start(64, UNI_TRACE_STOP, exit);

	entry_hook = entry;
	return m;
}

static struct seen whole(void)
{
	struct uni_ring_stats stats;
	struct seen seen = read_all(&stats);

	assert_int_equal(stats.lapped + stats.torn + cpu.lost, 0);
	assert_int_equal(seen.backwards, 0);
	return seen;
}

/* Every hook, off and on again. */
static void nothing_while_off(void **state)
{
	void (*const entries[])(void) = { uni_trace_entry, uni_trace_entry_any,
		uni_trace_entry_args, uni_trace_entry_stop, uni_trace_entry_freeze,
		uni_trace_entry_caller };
	void (*const exits[])(void) = { uni_trace_exit, uni_trace_exit_lite, uni_trace_exit_min,
		uni_trace_exit_any, uni_trace_exit_value, uni_trace_exit };
	struct seen seen;

	for (unsigned i = 0; i < 6; i++) {
		struct ring_memory m = start(entries[i], exits[i]);

		uni_trace_enable(0);
		work_fib(10);
		seen = whole();
		assert_int_equal(seen.records, 0);
		assert_int_equal(work_fib(10), 55);
		entry_hook = i < 3 ? entries[i] : uni_trace_entry;
		uni_trace_enable(1);
		work_calls = 0;
		assert_int_equal(work_fib(10), 55);
		seen = whole();
		assert_int_equal(seen.entries + seen.leaves, work_calls);
		trace_end(&m);
	}
}

/* Calls of fib(n) that are at most `depth` deep. */
static unsigned long shallow(int n, unsigned depth)
{
	if (depth == 0)
		return 0;
	return 1 + (n < 2 ? 0 : shallow(n - 1, depth - 1) + shallow(n - 2, depth - 1));
}

static void depth_is_limited(void **state)
{
	struct ring_memory m = start(uni_trace_entry_any, uni_trace_exit_any);
	struct seen seen;

	uni_trace_set_max_depth(4);
	work_fib(15);
	seen = whole();
	assert_int_equal(seen.entries, shallow(15, 4));
	assert_int_equal(seen.exits, shallow(15, 4));
	assert_int_equal(seen.deepest, 4);
	assert_int_equal(seen.depth, 0);
	assert_int_equal(cpu.depth, 0);
	trace_end(&m);
}

/* Set within a call, it ends what was counted; calls that began before have no record of an end. */
static void new_limit_counts_anew(void **state)
{
	struct ring_memory m = start(uni_trace_entry_any, uni_trace_exit_any);
	struct seen seen;

	uni_trace_set_max_depth(2);
	cpu.depth = 77; /* of calls that will never return */
	work_fib(9);
	assert_int_equal(whole().entries, shallow(9, 2)); /* another run: 77 is void */
	cpu.depth = 5;
	uni_trace_set_max_depth(3);
	work_fib(9);
	seen = whole();
	assert_int_equal(seen.entries, shallow(9, 2) + shallow(9, 3));
	assert_int_equal(seen.exits, seen.entries);
	trace_end(&m);
}

static void threads_have_their_depth(void **state)
{
	struct ring_memory m = start(uni_trace_entry_any, uni_trace_exit_any);
	uint64_t kept;

	uni_trace_set_max_depth(3);
	work_fib(1);
	kept = uni_trace_swap_depth(0);
	assert_int_equal(cpu.depth, 0);
	work_fib(9);
	kept = uni_trace_swap_depth(kept + 2); /* that one is two calls deep */
	work_fib(9);
	uni_trace_swap_depth(kept);
	assert_int_equal(cpu.depth, 0);
	assert_int_equal(whole().entries, 1 + shallow(9, 3) + shallow(9, 1));
	trace_end(&m);
}

static void exit_any_obeys_the_mode(void **state)
{
	struct ring_memory m = start(uni_trace_entry_any, uni_trace_exit_any);
	struct seen seen;

	uni_trace_set_mode(UNI_TRACE_FUNCTION);
	work_fib(12);
	seen = whole();
	assert_int_equal(seen.calls, work_calls);
	assert_int_equal(seen.entries + seen.exits, 0);
	trace_end(&m);

	m = start(uni_trace_entry_any, uni_trace_exit_any);
	uni_trace_set_mode(UNI_TRACE_LITE);
	work_fib(12);
	seen = whole();
	assert_int_equal(seen.leaves, (work_calls + 1) / 2);
	assert_int_equal(seen.entries, work_calls / 2);
	assert_int_equal(seen.exits, work_calls / 2);
	trace_end(&m);

	m = start(uni_trace_entry_any, uni_trace_exit_any);
	uni_trace_set_min_time(0x7fffffff);
	work_fib(12);
	assert_int_equal(whole().entries, 0);
	uni_trace_set_min_time(0);
	work_fib(12);
	assert_int_equal(whole().exits, work_calls / 2);
	trace_end(&m);
}

struct words {
	uint64_t odd, args, values, sum;
};

static int look(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	struct uni_trace_cursor c = uni_trace_records(info, s, content);
	struct uni_trace_record rec;
	struct words *w = arg;

	while (uni_trace_next(&c, &rec)) {
		if (rec.kind != UNI_TRACE_KIND_EXT)
			continue;
		if (rec.cls == UNI_TRACE_CLASS_ENTRY && rec.nr == 1)
			w->odd +=
				rec.words[0] >> 32 == UNI_TRACE_ODD_ENTRY &&
				(info->text_window | (uint32_t)rec.words[0]) == (uint64_t)work_odd;
		if (rec.cls == UNI_TRACE_CLASS_ENTRY_ARGS && rec.nr == 7 &&
			(info->text_window | rec.words[6]) == (uint64_t)work_sum) {
			w->args++;
			for (unsigned i = 0; i < 6; i++)
				assert_int_equal(rec.words[i], 11 + i);
		}
		if (rec.cls == UNI_TRACE_CLASS_EXIT_VALUE && rec.nr == 3) {
			w->values++;
			w->sum += rec.words[0];
			assert_int_equal(rec.words[2] >> 32, 0);
		}
	}
	return 0;
}

static struct words words(void)
{
	struct words w = { 0 };
	struct uni_ring *r = open_ring();

	assert_int_equal(uni_ring_drain(r, 0, look, &w), 0);
	uni_ring_close(r);
	return w;
}

static void misaligned_functions_are_traced(void **state)
{
	struct ring_memory m = start(uni_trace_entry_any, uni_trace_exit_lite);
	struct seen seen;

	assert_int_not_equal((uint64_t)work_odd & 15, 0);
	for (int i = 0; i < 1000; i++)
		work_odd(i);
	seen = whole();
	assert_int_equal(words().odd, 1000);
	assert_int_equal(seen.entries + seen.leaves, work_calls);
	/* Two words: the newest is no entry, so that the exit is recorded. */
	assert_int_equal(seen.exits, 1000);
	trace_end(&m);
}

/* Each hook with a least duration removes the calls of functions that are not aligned, and so those
 * of their callers. A lite trace does so, too. */
static void short_calls_vanish(void **state)
{
	void (*const exits[])(
		void) = { uni_trace_exit_min, uni_trace_exit_any, uni_trace_exit_any };
	uint64_t was, before;
	struct seen seen;

	for (unsigned i = 0; i < 3; i++) {
		struct ring_memory m = start(uni_trace_entry_any, exits[i]);

		uni_trace_set_mode(i == 2 ? UNI_TRACE_LITE : UNI_TRACE_GRAPH);
		uni_trace_set_min_time(0x7fffffff);
		for (int k = 0; k < 10000; k++)
			work_odd(k);
		work_fib(12);
		seen = whole();
		/* 20000 calls were made: only those stay that are open when the counter's upper
		 * half changes. */
		assert_in_range(seen.entries + seen.exits + seen.leaves + words().odd, 0, 30);
		was = words().odd;
		uni_trace_set_min_time(1);
		before = seen.exits;
		work_odd(1);
		seen = whole();
		assert_int_equal(seen.exits - before, 2);
		assert_int_equal(words().odd - was, 1);
		trace_end(&m);
	}
}

/* A record stays whole if its last words only look like such a call. */
static void what_is_no_call_stays(void **state)
{
	const uint64_t like[] = { (uint64_t)UNI_TRACE_ODD_FIRST << 32, 4 };
	struct ring_memory m = start(uni_trace_entry_args, uni_trace_exit_min);
	struct seen seen;

	uni_trace_set_min_time(0x7fffffff);
	assert_int_equal(uni_trace_event(UNI_TRACE_CLASS_USER, like, 2), 0);
	entry_hook = work_skip_entry;
	work_sum(1, 2, 3, 4, 5, 6);
	seen = whole();
	assert_int_equal(seen.exits, 1);
	assert_int_equal(seen.ext_words, 2);
	trace_end(&m);
}

static void arguments_and_values(void **state)
{
	struct ring_memory m = start(uni_trace_entry_args, uni_trace_exit_value);
	long sum = 0;
	struct words w;

	for (int i = 0; i < 1000; i++)
		sum += work_sum(11, 12, 13, 14, 15, 16);
	w = words();
	assert_int_equal(w.args, 1000);
	assert_int_equal(w.values, 1000);
	assert_int_equal(w.sum, sum);
	assert_int_equal(sum, 1000 * (11 + 12 * 13 + 14 * 15 + 16));
	trace_end(&m);

	/* Nor are they deeper than the limit. */
	m = start(uni_trace_entry_args, uni_trace_exit_value);
	uni_trace_set_max_depth(3);
	work_fib(9);
	assert_int_equal(whole().entries, shallow(9, 3));
	assert_int_equal(words().values, shallow(9, 3));
	trace_end(&m);
}

/* A ring may be read when its mode is another one: each record tells that no exit will follow. Also
 * where it is written by the slow way: at the edges of sub-buffers, of functions that are not
 * aligned, and with arguments. */
static void function_mode_tells_itself(void **state)
{
	void (*const entries[])(
		void) = { uni_trace_entry_only, uni_trace_entry_any, uni_trace_entry_args };
	uint64_t n = 0;

	for (unsigned i = 0; i < 3; i++) {
		struct ring_memory m = start(entries[i], work_skip_exit);
		struct uni_ring_stats st;
		struct seen seen;

		uni_trace_set_mode(UNI_TRACE_FUNCTION);
		work_fib(20);
		if (i != 0)
			work_odd(1);
		n = work_calls;
		uni_trace_set_mode(UNI_TRACE_GRAPH);
		entry_hook = uni_trace_entry;
		exit_hook = uni_trace_exit;
		work_calls = 0;
		work_fib(10);
		seen = read_all(&st);
		assert_true(st.packets > 2);
		assert_int_equal(seen.calls, n);
		assert_int_equal(seen.entries, work_calls);
		assert_int_equal(seen.exits, work_calls);
		trace_end(&m);
	}
}

/* Frozen for so long that the time's upper half is another one: it is told before what comes. */
static void thawed_much_later(void **state)
{
	struct ring_memory m = trace_start(8, UNI_TRACE_OVERWRITE, uni_trace_exit);
	struct uni_ring_stats stats;
	struct seen seen;

	work_fib(3);
	uni_trace_freeze();
	work_fib(3);
	assert_true(cpu.frozen != 0);
	uni_trace_head.frozen = 0; /* as a host does it, which asks no CPU */
	cpu.hi -= 2;
	work_fib(3);
	assert_int_equal(cpu.frozen, 0);
	seen = read_all(&stats);
	assert_true(seen.records > 0);
	assert_true(seen.syncs >= 1);
	assert_int_equal(seen.backwards, 0);
	trace_end(&m);
}

static void nothing_without_a_cpu(void **state)
{
	void (*const entries[])(void) = { uni_trace_entry, uni_trace_entry_any,
		uni_trace_entry_args, uni_trace_entry_start, uni_trace_entry_freeze,
		uni_trace_entry_caller };
	void (*const exits[])(void) = { uni_trace_exit, uni_trace_exit_lite, uni_trace_exit_min,
		uni_trace_exit_any, uni_trace_exit_value };

	for (unsigned i = 0; i < 30; i++) {
		struct ring_memory m = start(entries[i / 5], exits[i % 5]);

		uni_trace_set_max_depth(i % 2 ? 3 : 0);
		be_cpu_early();
		assert_int_equal(work_fib(10), 55);
		work_sum(1, 2, 3, 4, 5, 6);
		uni_trace_switch(1, 2, 3);
		uni_trace_thaw();
		work_odd(10);
		uni_trace_thaw();
		uni_trace_set_max_depth(0);
		be_cpu(0);
		assert_int_equal(whole().records, 0);
		/* As if nothing had been. */
		entry_hook = uni_trace_entry;
		exit_hook = uni_trace_exit;
		work_calls = 0;
		assert_int_equal(work_fib(10), 55);
		assert_int_equal(whole().entries, work_calls);
		trace_end(&m);
	}
}

static uint64_t missing_from, missing_to;

static int read_cut(void *ctx, uint64_t va, void *buf, size_t len)
{
	if (va < missing_to && va + len > missing_from)
		return -UNI_ERANGE;
	return self_source.read(self_source.ctx, va, buf, len);
}

static int nothing(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	return 0;
}

/* A core that is cut off: what is there is read, and what is not is counted. */
static void part_of_the_ring_is_missing(void **state)
{
	const struct uni_ring_source cut = { read_cut, NULL };
	struct ring_memory m = trace_start(8, UNI_TRACE_STOP, uni_trace_exit);
	const struct uni_ring_stats *stats;
	struct uni_err err = { 0 };
	struct uni_ring *r;

	work_fib(23);
	missing_from = (cpu.wptr & ~(uint64_t)(UNI_TRACE_SUB_SIZE - 1)) + 3 * UNI_TRACE_SUB_SIZE;
	missing_to = missing_from + UNI_TRACE_SUB_SIZE + 300;
	assert_int_equal(uni_ring_open(&cut, (uint64_t)&uni_trace_head, &r, &err), 0);
	stats = uni_ring_stats(r, 0);
	assert_int_equal(uni_ring_poll(r, 0, nothing, NULL), 0);
	assert_int_equal(uni_ring_drain(r, 0, nothing, NULL), 0);
	assert_int_equal(stats->packets, 6);
	assert_int_equal(stats->lapped, 2);
	assert_in_range(stats->lapped_words, 2 * 8000, 2 * 8191);
	uni_ring_close(r);
	trace_end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_while_off),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(new_limit_counts_anew),
		cmocka_unit_test(threads_have_their_depth),
		cmocka_unit_test(exit_any_obeys_the_mode),
		cmocka_unit_test(misaligned_functions_are_traced),
		cmocka_unit_test(short_calls_vanish),
		cmocka_unit_test(what_is_no_call_stays),
		cmocka_unit_test(arguments_and_values),
		cmocka_unit_test(function_mode_tells_itself),
		cmocka_unit_test(thawed_much_later),
		cmocka_unit_test(nothing_without_a_cpu),
		cmocka_unit_test(part_of_the_ring_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
