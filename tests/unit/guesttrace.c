/* SPDX-License-Identifier: BSD-2-Clause */
/* The guest's tracer as a native program. Real calls write its hooks and rings, interrupted at
 * every instruction, and overrun them; the host's reader reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "guesttrace.h"

#define TRAP_FLAG 0x100

static void graph_has_every_call(void **state)
{
	struct ring_memory m = trace_start(64, UNI_TRACE_STOP, uni_trace_exit);
	struct uni_ring_stats stats;
	struct seen seen;

	work_fib(21);
	seen = read_all(&stats);
	assert_int_equal(seen.entries, work_calls);
	assert_int_equal(seen.exits, work_calls);
	assert_int_equal(seen.depth, 0);
	assert_int_equal(seen.lowest, 0);
	assert_int_equal(seen.backwards, 0);
	assert_int_equal(stats.lapped + stats.torn + cpu.lost, 0);
	trace_end(&m);
}

static void lite_leaves_have_no_end(void **state)
{
	struct ring_memory m = trace_start(64, UNI_TRACE_STOP, uni_trace_exit_lite);
	struct uni_ring_stats stats;
	struct seen seen;

	work_fib(21);
	seen = read_all(&stats);
	assert_int_equal(seen.entries + seen.leaves, work_calls);
	assert_int_equal(seen.entries, seen.exits);
	/* Every call of fib(n) with n >= 2 makes two more; the others are leaves. Each edge of a
	 * sub-buffer may part one leaf from its entry. */
	assert_in_range(seen.leaves, (work_calls + 1) / 2 - stats.packets, (work_calls + 1) / 2);
	assert_int_equal(seen.backwards, 0);
	trace_end(&m);
}

static void function_has_entries_only(void **state)
{
	struct ring_memory m = trace_start(64, UNI_TRACE_STOP, work_skip_exit);
	struct uni_ring_stats stats;
	struct seen seen;

	work_fib(21);
	seen = read_all(&stats);
	assert_int_equal(seen.entries, work_calls);
	assert_int_equal(seen.exits, 0);
	trace_end(&m);
}

static void short_calls_vanish(void **state)
{
	struct ring_memory m = trace_start(64, UNI_TRACE_STOP, uni_trace_exit_min);
	struct uni_ring_stats stats;
	struct seen seen;

	uni_trace_set_min_time(0x7fffffff);
	work_fib(21);
	seen = read_all(&stats);
	assert_int_equal(
		seen.records - seen.syncs, 0); /* all of it is shorter, the outermost too */

	uni_trace_set_min_time(1); /* nothing is */
	work_calls = 0;
	work_fib(10);
	seen = read_all(&stats);
	assert_int_equal(seen.entries, work_calls);
	assert_int_equal(seen.exits, work_calls);
	trace_end(&m);
}

static void full_ring_stops_and_counts(void **state)
{
	struct ring_memory m = trace_start(8, UNI_TRACE_STOP, uni_trace_exit);
	struct uni_ring_stats stats;
	struct seen seen;

	work_fib(23);
	seen = read_all(&stats);
	assert_true(cpu.lost > 0);
	assert_int_equal(seen.records - seen.syncs + cpu.lost, work_calls * 2);
	assert_int_equal(stats.lapped, 0);
	assert_int_equal(stats.packets, 8); /* the first one, too */
	trace_end(&m);
}

static struct uni_trace_sub *open_sub(void)
{
	return (struct uni_trace_sub *)(cpu.wptr & ~(uint64_t)(UNI_TRACE_SUB_SIZE - 1));
}

/* All that the ring holds is there, but for the sub-buffer that is made ready ahead. */
static void old_sub_buffers_are_overwritten(void **state)
{
	struct ring_memory m = trace_start(16, UNI_TRACE_OVERWRITE, uni_trace_exit);
	struct uni_ring *r = open_ring();
	const struct uni_ring_stats *polled = uni_ring_stats(r, 0);
	struct uni_ring_stats stats;
	struct seen seen, first = { 0 };

	work_fib(23);
	seen = read_all(&stats);
	assert_int_equal(cpu.lost, 0);
	assert_int_equal(stats.packets, 15);
	assert_true(stats.lapped > 0);
	/* A clock's wrap, which tells the time in three words, may be among those overwritten. */
	assert_in_range(
		seen.records - seen.syncs + stats.lapped_words, work_calls * 2, work_calls * 2 + 3);
	assert_int_equal(seen.backwards, 0);
	assert_int_equal(uni_ring_poll(r, 0, count, &first), 0);
	assert_int_equal(polled->packets, 14);
	assert_int_equal(polled->lapped, stats.lapped);
	uni_ring_close(r);
	trace_end(&m);
}

/* A reader that comes to the end passes over what a writer may hold open for ever. */
static void open_sub_buffers_are_passed_over(void **state)
{
	struct ring_memory m = trace_start(64, UNI_TRACE_OVERWRITE, uni_trace_exit);
	struct uni_ring *r = open_ring();
	const struct uni_ring_stats *stats = uni_ring_stats(r, 0);
	struct seen seen = { 0 };
	uint64_t words;

	work_fib(10);
	open_sub()->open_bytes -= 8; /* somebody is not done yet */
	words = 8 * UNI_TRACE_SUB_SIZE / 8;
	while (work_calls * 2 < words)
		work_fib(10);
	assert_int_equal(uni_ring_poll(r, 0, count, &seen), 0);
	assert_int_equal(stats->packets, 0);
	uni_ring_hurry(r);
	assert_int_equal(uni_ring_poll(r, 0, count, &seen), 0);
	assert_int_equal(stats->packets, 7);
	assert_int_equal(stats->lapped, 1);
	assert_int_equal(uni_ring_drain(r, 0, count, &seen), 0);
	assert_int_equal(stats->packets, 8);
	assert_in_range(seen.records - seen.syncs + stats->lapped_words, work_calls * 2,
		work_calls * 2 + 3);
	uni_ring_close(r);
	trace_end(&m);
}

/* A writer that was interrupted in a record keeps its sub-buffer, however often the ring goes
 * round meanwhile. */
static void open_sub_buffers_are_not_overwritten(void **state)
{
	struct ring_memory m = trace_start(4, UNI_TRACE_OVERWRITE, uni_trace_exit);
	struct uni_trace_sub *held = open_sub();
	uint64_t seq = held->begin_seq;

	held->open_bytes -= 8;
	while (open_sub()->begin_seq < seq + 20) {
		work_fib(5);
		assert_int_equal(held->begin_seq, seq);
	}
	held->open_bytes += 8;
	while (open_sub()->begin_seq < seq + 40)
		work_fib(5);
	assert_int_not_equal(held->begin_seq, seq);
	assert_int_equal(cpu.lost, 0);
	trace_end(&m);
}

static int check_lost(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	uint64_t *lost = arg;

	assert_true(s->lost >= *lost);
	*lost = s->lost;
	return 0;
}

/* The sub-buffer that is open was made ready before what the one ahead of it lost. */
static void losses_never_go_back(void **state)
{
	struct ring_memory m = trace_start(8, UNI_TRACE_OVERWRITE, uni_trace_exit);
	struct uni_ring *r = open_ring();
	uint64_t last = 0, first;

	work_fib(10);
	uni_trace_freeze();
	work_fib(10);
	uni_trace_thaw();
	assert_true(cpu.lost > 0);
	first = open_sub()->begin_seq;
	while (open_sub()->begin_seq == first)
		work_fib(5);
	assert_int_equal(open_sub()->lost, 0);
	work_fib(5);
	assert_int_equal(uni_ring_poll(r, 0, check_lost, &last), 0);
	assert_int_equal(last, cpu.lost);
	assert_int_equal(uni_ring_peek(r, 0, true, check_lost, &last), 0);
	assert_int_equal(uni_ring_drain(r, 0, check_lost, &last), 0);
	assert_int_equal(last, cpu.lost);
	assert_int_equal(uni_ring_stats(r, 0)->packets, 2);
	uni_ring_close(r);
	trace_end(&m);
}

static void freezing_keeps_what_was(void **state)
{
	struct ring_memory m = trace_start(8, UNI_TRACE_OVERWRITE, uni_trace_exit);
	struct uni_ring_stats stats;
	struct seen seen;
	unsigned long before, during;

	work_fib(10);
	before = work_calls;
	uni_trace_freeze();
	work_fib(23);
	during = work_calls - before;
	seen = read_all(&stats);
	assert_int_equal(seen.entries, before);
	assert_int_equal(stats.after_freeze, during * 2);
	assert_int_equal(cpu.lost, 0);
	uni_trace_thaw();
	assert_int_equal(cpu.lost, during * 2);
	work_fib(10);
	seen = read_all(&stats);
	assert_int_equal(seen.entries, before * 2);
	trace_end(&m);
}

/* Records that the guest writes itself. */
static int extended(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	struct uni_trace_cursor c = uni_trace_records(info, s, content);
	struct uni_trace_record rec;
	uint64_t *sum = arg;

	while (uni_trace_next(&c, &rec)) {
		if (rec.kind == UNI_TRACE_KIND_SYNC)
			sum[1] += rec.words[1] == 1; /* the new epoch */
		if (rec.kind != UNI_TRACE_KIND_EXT)
			continue;
		if (rec.cls != UNI_TRACE_CLASS_SWITCH || rec.nr != 3)
			continue;
		sum[0] += rec.words[0] == 7 && rec.words[1] == 9 && rec.words[2] == 3;
		sum[2] += rec.words[0] == 9 && rec.words[1] == 9 && rec.words[2] == 0x200000003;
	}
	return 0;
}

static void other_records(void **state)
{
	struct ring_memory m = trace_start(8, UNI_TRACE_STOP, uni_trace_exit);
	struct uni_ring *r = open_ring();
	uint64_t sum[3] = { 0 };

	uni_trace_switch(7, 9, 3);
	uni_trace_switch_over(9, 9, 3);
	uni_trace_new_epoch();
	uni_trace_switch(7, 9, 3);
	assert_int_equal(uni_ring_drain(r, 0, extended, sum), 0);
	assert_int_equal(sum[0], 2);
	assert_int_equal(sum[1], 1);
	assert_int_equal(sum[2], 1);
	assert_int_equal(uni_trace_event(UNI_TRACE_CLASS_USER, NULL, UNI_TRACE_MAX_WORDS + 1), -1);
	uni_ring_close(r);
	trace_end(&m);
}

/* Kernels switch contexts before they have memory for rings. */
static void before_init(void **state)
{
	const uint64_t word = 0;
	struct ring_memory m;

	memset(cpus, 0, sizeof(cpus));
	be_cpu(0);
	uni_trace_switch(7, 9, 3);
	uni_trace_switch_over(9, 7, 3);
	assert_int_equal(uni_trace_event(UNI_TRACE_CLASS_USER, &word, 1), -1);
	assert_int_equal(uni_trace_swap_depth(5), 0);
	m = trace_start(8, UNI_TRACE_STOP, uni_trace_exit);
	assert_int_equal(uni_trace_event(UNI_TRACE_CLASS_USER, &word, 1), 0);
	trace_end(&m);
}

static int told_gaps(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	struct uni_trace_cursor c = uni_trace_records(info, s, content);
	struct uni_trace_record rec;
	uint64_t *last = arg;

	assert_true(last[0] == 0 || s->gaps == last[0]);
	last[0] = s->gaps;
	while (uni_trace_next(&c, &rec)) {
		if (rec.kind != UNI_TRACE_KIND_SYNC)
			continue;
		last[1] += last[0] != uni_trace_gaps(&rec);
		last[0] = uni_trace_gaps(&rec);
	}
	return 0;
}

/* Whoever switches the tracer off and on is told of, just before the next record; by the host that
 * is as here. */
static void gaps_are_told(void **state)
{
	struct ring_memory m = trace_start(16, UNI_TRACE_OVERWRITE, uni_trace_exit);
	struct uni_ring *r = open_ring();
	uint64_t gaps[2] = { 0 };

	assert_true(info->tells_gaps);
	for (unsigned i = 0; i < 6; i++) {
		work_fib(15);
		uni_trace_enable(1); /* it is */
		if (i % 2 != 0) {
			uni_trace_enable(0);
			work_fib(10);
			uni_trace_enable(1);
		} else {
			uni_trace_head.control.gaps++;
			*(volatile uint32_t *)(uni_ring_area(r, 0) + UNI_TRACE_CPU_HI) = ~0u;
		}
		assert_int_equal(uni_ring_poll(r, 0, told_gaps, gaps), 0);
	}
	work_fib(10);
	assert_int_equal(uni_ring_drain(r, 0, told_gaps, gaps), 0);
	assert_int_equal(gaps[1], 6);
	assert_int_equal(uni_ring_stats(r, 0)->lapped, 0);
	uni_ring_close(r);
	trace_end(&m);
}

/* The last word of such a record looks like an exit at the time 3: it has none. */
static void newest_record_has_the_time(void **state)
{
	struct ring_memory m = trace_start(8, UNI_TRACE_OVERWRITE, uni_trace_exit);
	struct uni_ring *r = open_ring();
	struct uni_ring_now now = { 0 }, later = { 0 };
	uint64_t before, last = 0;

	assert_int_equal(uni_ring_now(r, 0, &now), 0);
	assert_true(now.sure && !now.timed);
	/* Through two sub-buffers: in the middle of each, and where the next one begins. */
	for (unsigned i = 0; i < 2 * UNI_TRACE_SUB_SIZE / 32; i++) {
		before = __builtin_ia32_rdtsc();
		uni_trace_switch(7, 9, 3);
		assert_int_equal(uni_ring_now(r, 0, &now), 0);
		assert_true(now.sure && now.timed && now.whole);
		assert_true(now.time >= before && now.time <= __builtin_ia32_rdtsc());
		assert_true(now.time >= last);
		last = now.time;
	}
	/* An entry may be taken back, and what comes in its place be longer. */
	*(uint64_t *)cpu.wptr = (uint32_t)__builtin_ia32_rdtsc() | (uint64_t)UNI_TRACE_ENTRY << 32;
	cpu.wptr += 8;
	open_sub()->open_bytes += 8;
	assert_int_equal(uni_ring_now(r, 0, &later), 0);
	assert_true(later.time > last && later.words == now.words + 1);
	cpu.wptr -= 8;
	open_sub()->open_bytes -= 8;
	uni_trace_switch(7, 9, 3);
	assert_int_equal(uni_ring_now(r, 0, &now), 0);
	assert_true(now.sure && now.time > later.time && now.words == later.words + 3);
	/* One that is given out and not written yet: nothing is known. */
	open_sub()->open_bytes -= 8;
	uni_trace_switch(7, 9, 3);
	assert_int_equal(uni_ring_now(r, 0, &later), 0);
	assert_true(!later.sure && !later.whole);
	uni_ring_close(r);
	trace_end(&m);
}

/* --- interrupts at every instruction -----------------------------------------------------------
 */

static volatile int in_trap;
static unsigned long times = 1;
static volatile unsigned long nr_traps, nr_interrupts, period, until_next;
static uint64_t gap_seed;

/* A trap after each instruction while the flag is set: inside the tracer it makes traced calls, as
 * an interrupt there would. */
static void on_trap(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)si;
	(void)uc;
	nr_traps += !in_trap;
	if (in_trap || --until_next != 0)
		return;
	in_trap = 1;
	until_next = trace_next_gap(&gap_seed, period);
	nr_interrupts++;
	work_interrupt(3);
	in_trap = 0;
}

static inline void set_trap_flag(int on)
{
	if (on)
		__asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG)
				 : "memory", "cc");
	else
		__asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG)
				 : "memory", "cc");
}

static uint64_t room(void)
{
	return UNI_TRACE_SUB_SIZE - (cpu.wptr & (UNI_TRACE_SUB_SIZE - 1));
}

static void interrupts(void (*exit)(void), enum uni_trace_ring_mode mode, unsigned subs,
	int min_time, unsigned every, unsigned long number)
{
	struct ring_memory m = trace_start(subs, mode, exit);
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	struct seen seen = { 0 };
	struct uni_ring *r = open_ring();
	const struct uni_ring_stats *stats = uni_ring_stats(r, 0);
	uint64_t lost, others = 0;

	sigaction(SIGTRAP, &sa, NULL);
	uni_trace_set_min_time((uint32_t)min_time);
	nr_traps = nr_interrupts = 0;
	period = every;
	until_next = 1;
	while (nr_interrupts < number * times) {
		/* Traps are slow: go on without them until the sub-buffer's edge is near. */
		for (int i = 0; i < 9000 && nr_traps % 3 == 0 && room() > 256; i++)
			others++, uni_trace_event(UNI_TRACE_CLASS_USER, NULL, 0);
		set_trap_flag(1);
		work_fib(4);
		set_trap_flag(0);
		if (mode == UNI_TRACE_OVERWRITE)
			assert_int_equal(uni_ring_poll(r, 0, count, &seen), 0);
	}
	assert_int_equal(uni_ring_drain(r, 0, count, &seen), 0);
	lost = stats->lapped_words + cpu.lost;
	assert_int_equal(seen.backwards, 0);
	assert_int_equal(stats->torn, 0);
	if (mode == UNI_TRACE_OVERWRITE)
		assert_int_equal(lost + stats->lapped, 0); /* each round was read */
	if (exit == uni_trace_exit) {
		assert_int_equal(seen.records - seen.syncs + lost, work_calls * 2 + others);
	} else if (exit == uni_trace_exit_lite) {
		assert_int_equal(seen.entries + seen.leaves, work_calls);
	} else {
		assert_true(seen.entries <= work_calls);
	}
	if (mode == UNI_TRACE_OVERWRITE)
		assert_int_equal(seen.entries, seen.exits);
	print_message("%lu interrupts, %lu calls, %llu lost\n", nr_interrupts, work_calls,
		(unsigned long long)lost);
	uni_ring_close(r);
	trace_end(&m);
}

static void interrupted_graph(void **state)
{
	interrupts(uni_trace_exit, UNI_TRACE_OVERWRITE, 8, 0, 23, 3000);
}

static void interrupted_lite(void **state)
{
	interrupts(uni_trace_exit_lite, UNI_TRACE_OVERWRITE, 8, 0, 23, 3000);
}

static void interrupted_min(void **state)
{
	interrupts(uni_trace_exit_min, UNI_TRACE_OVERWRITE, 8, 1 << 18, 43, 2000);
}

static void interrupted_full(void **state)
{
	interrupts(uni_trace_exit, UNI_TRACE_STOP, 4, 0, 23, 2000);
}

/* --- a writer that laps its reader --------------------------------------------------------------
 */

static unsigned long overruns = 1;
static atomic_bool writer_ends;
static unsigned long writer_calls;

static void *writer(void *arg)
{
	be_cpu(0);
	while (!atomic_load_explicit(&writer_ends, memory_order_relaxed))
		work_fib(12);
	writer_calls = work_calls;
	return NULL;
}

/* Copies slowly, so that the writer comes round in the middle of it. */
static int read_slowly(void *ctx, uint64_t va, void *buf, size_t len)
{
	size_t half = len / 2 & ~(size_t)7;

	memcpy(buf, (const void *)va, half);
	if (len == UNI_TRACE_SUB_SIZE && rand() % 4 == 0)
		usleep(300);
	memcpy((char *)buf + half, (const char *)va + half, len - half);
	return 0;
}

static void overrun_is_noticed(void **state)
{
	const struct uni_ring_source slow = { read_slowly, NULL };
	struct ring_memory m = trace_start(8, UNI_TRACE_OVERWRITE, uni_trace_exit);
	const struct uni_ring_stats *stats;
	struct uni_ring *r = open_ring();
	struct seen seen = { 0 };
	struct uni_err err = { 0 };
	unsigned long want = 300 * overruns;
	pthread_t t;

	uni_ring_close(r);
	assert_int_equal(uni_ring_open(&slow, (uint64_t)&uni_trace_head, &r, &err), 0);
	info = uni_ring_info(r);
	stats = uni_ring_stats(r, 0);
	atomic_store(&writer_ends, false);
	assert_int_equal(pthread_create(&t, NULL, writer, NULL), 0);
	while (stats->packets < want || stats->torn < want / 10 || stats->lapped < want * 10)
		assert_int_equal(uni_ring_poll(r, 0, count, &seen), 0);
	atomic_store(&writer_ends, true);
	pthread_join(t, NULL);
	assert_int_equal(uni_ring_drain(r, 0, count, &seen), 0);
	assert_int_equal(seen.backwards, 0);
	/* Each wrap of the clock tells the time in three words, which may be among those
	 * overwritten. */
	assert_in_range(seen.records - seen.syncs + stats->lapped_words, writer_calls * 2,
		writer_calls * 2 + 3 * (writer_calls / 1000000 + 2));
	print_message("%llu packets read, %llu overwritten, of these %llu while they were copied\n",
		(unsigned long long)stats->packets, (unsigned long long)stats->lapped,
		(unsigned long long)stats->torn);
	uni_ring_close(r);
	trace_end(&m);
}

/* arguments: how many times the usual number of interrupts (10,000) and of overruns (3,000), and
 * which tests; docs/benchmarks.md has a long run */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graph_has_every_call),
		cmocka_unit_test(lite_leaves_have_no_end),
		cmocka_unit_test(function_has_entries_only),
		cmocka_unit_test(short_calls_vanish),
		cmocka_unit_test(full_ring_stops_and_counts),
		cmocka_unit_test(old_sub_buffers_are_overwritten),
		cmocka_unit_test(open_sub_buffers_are_passed_over),
		cmocka_unit_test(open_sub_buffers_are_not_overwritten),
		cmocka_unit_test(losses_never_go_back),
		cmocka_unit_test(freezing_keeps_what_was),
		cmocka_unit_test(other_records),
		cmocka_unit_test(before_init),
		cmocka_unit_test(gaps_are_told),
		cmocka_unit_test(newest_record_has_the_time),
		cmocka_unit_test(overrun_is_noticed),
		cmocka_unit_test(interrupted_graph),
		cmocka_unit_test(interrupted_lite),
		cmocka_unit_test(interrupted_min),
		cmocka_unit_test(interrupted_full),
	};

	if (argc > 1)
		times = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		overruns = strtoul(argv[2], NULL, 10);
	if (argc > 3)
		cmocka_set_test_filter(argv[3]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
