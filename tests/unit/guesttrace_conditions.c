/* SPDX-License-Identifier: BSD-2-Clause */
/* Conditions on arguments in this process: calls that do not hold them have no record, their
 * returns neither. Each is judged by what fib() returns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "guesttrace.h"

static struct uni_trace_conditions *head(void)
{
	return (struct uni_trace_conditions *)uni_trace_head.conditions;
}

static struct uni_trace_condition *table(void)
{
	return (struct uni_trace_condition *)(head() + 1);
}

static struct uni_trace_condition on(
	uint64_t function, uint8_t argument, uint8_t order, int bits, int is_signed, uint64_t value)
{
	return (struct uni_trace_condition){ (uint32_t)function, argument, order, (uint8_t)bits,
		(uint8_t)is_signed, value };
}

static struct uni_trace_condition on_fib(uint8_t order, int64_t value)
{
	return on((uint64_t)work_fib, 0, order, 32, 1, (uint64_t)value);
}

static struct ring_memory start(const struct uni_trace_condition *all, uint32_t nr)
{
	struct ring_memory m = trace_start(64, UNI_TRACE_STOP, uni_trace_exit_value);

	entry_hook = uni_trace_entry_args;
	assert_int_equal(head()->room, UNI_TRACE_CONDITIONS);
	for (uint32_t i = 0; i < nr; i++)
		table()[i] = all[i];
	head()->nr = nr;
	return m;
}

static void stop(struct ring_memory *m)
{
	head()->nr = 0;
	trace_end(m);
}

/* The calls of the ring: each return is that of the newest call. */
struct got {
	uint64_t calls, depth, arg[64];
};

static int fib(uint64_t n)
{
	int a = 0, b = 1;

	for (; n > 0; n--) {
		int c = a + b;

		a = b;
		b = c;
	}
	return a;
}

static int judge_calls(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	struct uni_trace_cursor c = uni_trace_records(info, s, content);
	struct uni_trace_record rec;
	struct got *g = arg;

	while (uni_trace_next(&c, &rec)) {
		if (rec.kind != UNI_TRACE_KIND_EXT)
			continue;
		if (rec.cls == UNI_TRACE_CLASS_ENTRY_ARGS) {
			g->arg[g->depth++] = rec.words[0];
			g->calls++;
		} else if (rec.cls == UNI_TRACE_CLASS_EXIT_VALUE) {
			assert_true(g->depth > 0);
			assert_int_equal(rec.words[0], fib(g->arg[--g->depth]));
		}
	}
	return 0;
}

static struct got *read_calls(void)
{
	static struct got got;
	struct uni_ring *r = open_ring();

	got = (struct got){ 0 };
	assert_int_equal(uni_ring_drain(r, 0, judge_calls, &got), 0);
	uni_ring_close(r);
	assert_int_equal(got.depth, 0);
	assert_int_equal(cpu.lost, 0);
	return &got;
}

/* Calls of fib(n) with an argument from `low` to `high`. */
static uint64_t between(int n, int low, int high)
{
	return (n >= low && n <= high) +
	       (n < 2 ? 0 : between(n - 1, low, high) + between(n - 2, low, high));
}

static void calls_are_left_out(void **state)
{
	static const struct {
		uint8_t order;
		int value, low, high;
	} all[] = {
		{ UNI_TRACE_IF_EQUAL, 5, 5, 5 },
		{ UNI_TRACE_IF_LESS, 3, 0, 2 },
		{ UNI_TRACE_IF_LESS | UNI_TRACE_IF_EQUAL, 3, 0, 3 },
		{ UNI_TRACE_IF_GREATER, 9, 10, 14 },
		{ UNI_TRACE_IF_GREATER | UNI_TRACE_IF_EQUAL, 9, 9, 14 },
		{ UNI_TRACE_IF_GREATER, -1, 0, 14 },
		{ UNI_TRACE_IF_LESS, -1, 1, 0 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct uni_trace_condition c = on_fib(all[i].order, all[i].value);
		struct ring_memory m = start(&c, 1);

		assert_int_equal(work_fib(14), 377);
		assert_int_equal(read_calls()->calls, between(14, all[i].low, all[i].high));
		stop(&m);
	}
}

/* Others' functions before and behind; several of one function all have to hold. */
static void every_condition_holds(void **state)
{
	const uint64_t f = (uint64_t)work_fib;
	const struct uni_trace_condition all[] = {
		on(f - 16, 0, UNI_TRACE_IF_EQUAL, 64, 0, 999),
		on_fib(UNI_TRACE_IF_GREATER, 3),
		on_fib(UNI_TRACE_IF_LESS | UNI_TRACE_IF_GREATER, 6),
		on_fib(UNI_TRACE_IF_LESS, 9),
		on(f + 16, 0, UNI_TRACE_IF_EQUAL, 64, 0, 999),
	};
	struct ring_memory m = start(all, 5);

	work_fib(12);
	assert_int_equal(read_calls()->calls, between(12, 4, 5) + between(12, 7, 8));
	stop(&m);
	m = start(all, 1);
	work_fib(12);
	assert_int_equal(read_calls()->calls, between(12, 0, 12));
	stop(&m);
}

static uint64_t sums(uint8_t order, int bits, int is_signed, uint64_t value, long argument)
{
	struct uni_trace_condition c = on((uint64_t)work_sum, 4, order, bits, is_signed, value);
	struct ring_memory m = start(&c, 1);
	uint64_t records;

	assert_int_equal(work_sum(1, 2, 3, 4, argument, 6), 1 + 6 + 4 * argument + 6);
	records = read_all(&(struct uni_ring_stats){ 0 }).records;
	stop(&m);
	return records;
}

/* Bits above the argument's size are anything; its sign counts if it has one. */
static void numbers_have_a_size(void **state)
{
	assert_int_not_equal(sums(UNI_TRACE_IF_EQUAL, 32, 0, 7, 0x500000007), 0);
	assert_int_equal(sums(UNI_TRACE_IF_EQUAL, 64, 0, 7, 0x500000007), 0);
	assert_int_not_equal(sums(UNI_TRACE_IF_LESS, 16, 1, 0, 0x1ffff), 0);
	assert_int_equal(sums(UNI_TRACE_IF_LESS, 16, 0, 0, 0x1ffff), 0);
	assert_int_not_equal(sums(UNI_TRACE_IF_GREATER, 16, 0, 0xfffe, 0x1ffff), 0);
	assert_int_not_equal(sums(UNI_TRACE_IF_EQUAL, 8, 1, (uint64_t)-2, 0xfe), 0);
	assert_int_equal(sums(UNI_TRACE_IF_GREATER, 64, 1, 0, -5), 0);
	assert_int_not_equal(sums(UNI_TRACE_IF_GREATER, 64, 0, 0, -5), 0);
	/* Conditions that no host writes leave nothing out. */
	assert_int_not_equal(sums(UNI_TRACE_IF_EQUAL, 0, 0, 7, 1), 0);
	assert_int_not_equal(sums(UNI_TRACE_IF_EQUAL, 65, 0, 7, 1), 0);
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

/* With no room for another place, calls are recorded, whole. */
static void places_run_out(void **state)
{
	struct uni_trace_condition c = on_fib(UNI_TRACE_IF_LESS, 0);
	struct ring_memory m = start(&c, 1);
	uint64_t entries;
	struct seen seen;

	exit_hook = leave;
	leave_places(100);
	assert_int_equal(read_all(&(struct uni_ring_stats){ 0 }).entries, 0);
	leave_places(600);
	entries = read_all(&(struct uni_ring_stats){ 0 }).entries;
	assert_int_not_equal(entries, 0);
	exit_hook = uni_trace_exit_value;
	work_fib(8);
	seen = read_all(&(struct uni_ring_stats){ 0 });
	assert_int_equal(seen.entries - entries, seen.exits);
	/* They are given back by the next calls there. */
	c = on_fib(UNI_TRACE_IF_GREATER, 100);
	exit_hook = leave;
	head()->nr = 0;
	leave_places(600);
	entries = read_all(&(struct uni_ring_stats){ 0 }).entries;
	exit_hook = uni_trace_exit_value;
	table()[0] = c;
	head()->nr = 1;
	work_fib(8);
	assert_int_equal(read_all(&(struct uni_ring_stats){ 0 }).entries, entries);
	stop(&m);
}

/* A call that is left out never returns: the next one at its place is another one. */
static void jumps_leave_nothing_behind(void **state)
{
	struct uni_trace_condition c = on_fib(UNI_TRACE_IF_GREATER, 100);
	struct ring_memory m = start(&c, 1);

	if (setjmp(out) == 0) {
		exit_hook = leave;
		work_fib(3);
	}
	exit_hook = uni_trace_exit_value;
	assert_int_equal(read_calls()->calls, 0);
	head()->nr = 0;
	work_fib(3);
	assert_int_equal(read_calls()->calls, 5);
	stop(&m);
}

static void entries_alone(void **state)
{
	struct uni_trace_condition c = on_fib(UNI_TRACE_IF_GREATER, 4);
	struct ring_memory m = start(&c, 1);

	uni_trace_set_mode(UNI_TRACE_FUNCTION);
	exit_hook = work_skip_exit;
	work_fib(9);
	assert_int_equal(read_all(&(struct uni_ring_stats){ 0 }).ext_words, 7 * between(9, 5, 9));
	stop(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_left_out),
		cmocka_unit_test(every_condition_holds),
		cmocka_unit_test(numbers_have_a_size),
		cmocka_unit_test(places_run_out),
		cmocka_unit_test(jumps_leave_nothing_behind),
		cmocka_unit_test(entries_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
