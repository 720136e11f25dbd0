/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two CPUs, as threads, each with its ring, are interrupted at every 23rd instruction within the
 * hooks. A third thread changes the tracer's control words. Each CPU's records and losses are its
 * calls, exactly. The hooks have some hundred instructions: 600 interrupts come several times at
 * each of them.
 */
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
#include <unistd.h>

#include "guesttrace.h"

#define NR	  2
#define TRAP_FLAG 0x100
#define SMALL	  4 /* sub-buffers, which FILLING calls between the interrupts fill */
#define FILLING	  15

static unsigned long times = 1;
static pthread_barrier_t begin;
static atomic_uint nr_running;
static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_ended = PTHREAD_COND_INITIALIZER;
static unsigned nr_turns; /* calls of the knob that have returned */

static __thread volatile int in_trap;
static __thread volatile unsigned long nr_interrupts;
static __thread unsigned long until_next = 1;
static __thread uint64_t gap_seed;

static void on_trap(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)si;
	(void)uc;
	if (in_trap || --until_next != 0)
		return;
	in_trap = 1;
	until_next = trace_next_gap(&gap_seed, 23);
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

struct one {
	pthread_t thread;
	unsigned nr;
	unsigned long interrupts; /* wanted */
	int between;		  /* calls without an interrupt, as work_fib() makes them */
	bool turned;		  /* a knob is turned meanwhile */
	unsigned long calls, got; /* when it ended */
	unsigned long rounds;
};

/* Until the knob was called and has returned. The call that may be under way does not count. */
static void await_turn(void)
{
	unsigned from;

	pthread_mutex_lock(&turn_lock);
	from = nr_turns;
	while (nr_turns - from < 2)
		pthread_cond_wait(&turn_ended, &turn_lock);
	pthread_mutex_unlock(&turn_lock);
}

static void *run_cpu(void *arg)
{
	struct one *o = arg;

	be_cpu(o->nr);
	pthread_barrier_wait(&begin);
	while (nr_interrupts < o->interrupts) {
		work_fib(o->between);
		work_odd(1);
		set_trap_flag(1);
		work_fib(4);
		set_trap_flag(0);
		o->rounds++;
		if (o->turned)
			await_turn();
	}
	o->calls = work_calls;
	o->got = nr_interrupts;
	atomic_fetch_sub(&nr_running, 1);
	return NULL;
}

/* Runs both; knob() is called again and again meanwhile. */
static void run_both(struct one *o, unsigned long interrupts, int between, void (*knob)(void))
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	sigaction(SIGTRAP, &sa, NULL);
	assert_int_equal(pthread_barrier_init(&begin, NULL, NR), 0);
	atomic_store(&nr_running, NR);
	for (unsigned i = 0; i < NR; i++) {
		o[i] = (struct one){ .nr = i,
			.interrupts = interrupts * times,
			.between = between,
			.turned = knob != NULL };
		assert_int_equal(pthread_create(&o[i].thread, NULL, run_cpu, &o[i]), 0);
	}
	while (knob != NULL && atomic_load(&nr_running) != 0) {
		knob();
		pthread_mutex_lock(&turn_lock);
		nr_turns++;
		pthread_cond_broadcast(&turn_ended);
		pthread_mutex_unlock(&turn_lock);
		usleep(100);
	}
	for (unsigned i = 0; i < NR; i++)
		pthread_join(o[i].thread, NULL);
	pthread_barrier_destroy(&begin);
}

static struct seen drain(unsigned nr, struct uni_ring_stats *stats)
{
	struct seen seen = read_cpu(nr, stats);

	assert_int_equal(seen.backwards, 0);
	assert_int_equal(stats->torn, 0);
	return seen;
}

/* exits: of how many records a call consists when nothing is turned meanwhile. */
static void exact(
	void (*entry)(void), void (*exit)(void), enum uni_trace_ring_mode mode, unsigned subs)
{
	struct ring_memory m = trace_start_cpus(NR, subs, mode, exit);
	struct one o[NR];

	entry_hook = entry;
	run_both(o, 600, subs == SMALL ? FILLING : 8, NULL);
	for (unsigned i = 0; i < NR; i++) {
		struct uni_ring_stats stats;
		struct seen seen = drain(i, &stats);
		uint64_t events;

		seen.entries += seen.calls;
		events = seen.entries + seen.exits + seen.leaves * 2;
		if (mode == UNI_TRACE_STOP)
			assert_int_equal(stats.lapped, 0);
		if (exit == work_skip_exit)
			assert_int_equal(seen.entries + cpus[i].lost, o[i].calls);
		else if (cpus[i].lost == 0)
			assert_int_equal(seen.entries + seen.leaves, o[i].calls);
		if (exit == uni_trace_exit || cpus[i].lost == 0)
			assert_int_equal(events + cpus[i].lost,
				exit == work_skip_exit ? o[i].calls : o[i].calls * 2);
		if (subs == SMALL)
			assert_true(cpus[i].lost > 0);
		print_message("CPU %u: %lu interrupts, %lu calls, %llu records, %llu lost\n", i,
			o[i].got, o[i].calls, (unsigned long long)seen.records,
			(unsigned long long)cpus[i].lost);
	}
	trace_end(&m);
}

static void both_in_full(void **state)
{
	exact(uni_trace_entry_any, uni_trace_exit, UNI_TRACE_STOP, 512);
}

static void both_lite(void **state)
{
	exact(uni_trace_entry_any, uni_trace_exit_lite, UNI_TRACE_STOP, 512);
}

static void both_entries(void **state)
{
	exact(uni_trace_entry_any, work_skip_exit, UNI_TRACE_STOP, 512);
}

static void both_with_callers(void **state)
{
	exact(uni_trace_entry_caller, work_skip_exit, UNI_TRACE_STOP, 1024);
	exact(uni_trace_entry_caller, work_skip_exit, UNI_TRACE_STOP, SMALL);
}

static void both_by_the_control(void **state)
{
	exact(uni_trace_entry_any, uni_trace_exit_any, UNI_TRACE_STOP, 512);
}

static void both_with_arguments(void **state)
{
	exact(uni_trace_entry_args, uni_trace_exit_value, UNI_TRACE_STOP, 2048);
}

static void both_full_rings(void **state)
{
	exact(uni_trace_entry_any, uni_trace_exit, UNI_TRACE_STOP, SMALL);
	exact(uni_trace_entry_any, work_skip_exit, UNI_TRACE_STOP, SMALL);
}

/* --- what was overwritten ----------------------------------------------------------------------
 */

struct tally {
	struct seen seen;
	uint64_t words, extra; /* up to where it was read */
	uint64_t lost, lost_words;
};

static int tally(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	struct tally *t = arg;

	t->lost_words += s->words_before - t->words;
	t->lost += s->words_before - t->words - (s->extra_before - t->extra);
	t->words = s->words_before + (content - UNI_TRACE_SUB_HEAD) / 8;
	t->extra = s->extra_after;
	return count(&t->seen, nr, s, content);
}

/* A small ring, read now and then: of what was overwritten the number of events is known. */
static void overwritten(void (*entry)(void), void (*exit)(void))
{
	struct ring_memory m = trace_start_cpus(NR, SMALL, UNI_TRACE_OVERWRITE, exit);
	struct uni_ring *r = open_ring();
	struct tally t[NR] = { 0 };
	struct one o[NR];

	assert_true(info->counts);
	entry_hook = entry;
	run_both(o, 600, FILLING, NULL);
	for (unsigned i = 0; i < NR; i++) {
		struct uni_ring_now now;

		assert_int_equal(uni_ring_now(r, i, &now), 0);
		assert_int_equal(uni_ring_drain(r, i, tally, &t[i]), 0);
		assert_int_equal(t[i].words, now.words);
		assert_int_equal(t[i].extra, now.extra);
		assert_true(t[i].lost > 0 && t[i].lost < t[i].lost_words);
		assert_int_equal(t[i].seen.records - t[i].seen.syncs + t[i].lost + cpus[i].lost,
			o[i].calls * (exit == work_skip_exit ? 1 : 2));
		print_message("CPU %u: %llu records, %llu of %llu words overwritten\n", i,
			(unsigned long long)t[i].seen.records, (unsigned long long)t[i].lost,
			(unsigned long long)t[i].lost_words);
	}
	uni_ring_close(r);
	trace_end(&m);
}

static void overwritten_arguments(void **state)
{
	overwritten(uni_trace_entry_args, uni_trace_exit_value);
	overwritten(uni_trace_entry_args, uni_trace_exit);
}

static void overwritten_callers(void **state)
{
	overwritten(uni_trace_entry_caller, work_skip_exit);
}

/* Entries of two words that are taken back are not counted any more. */
static void taken_back(void **state)
{
	struct ring_memory m = trace_start_cpus(NR, 512, UNI_TRACE_STOP, uni_trace_exit_min);
	struct uni_ring *r = open_ring();
	struct one o[NR];

	uni_trace_set_min_time(4000);
	entry_hook = uni_trace_entry_any;
	run_both(o, 500, 8, NULL);
	for (unsigned i = 0; i < NR; i++) {
		struct uni_ring_stats stats;
		struct seen seen = drain(i, &stats);
		struct uni_ring_now now;

		assert_int_equal(uni_ring_now(r, i, &now), 0);
		assert_true(seen.entries < o[i].calls);
		assert_int_equal(now.extra, seen.ext_words + 3 * seen.syncs);
	}
	uni_ring_close(r);
	trace_end(&m);
}

/* --- while knobs are turned ------------------------------------------------------------------- */

static void turn(void)
{
	static unsigned turns;

	switch (turns++ % 8) {
	case 0:
		uni_trace_enable(0);
		break;
	case 1:
		uni_trace_enable(1);
		break;
	case 2:
		uni_trace_set_max_depth(3);
		break;
	case 3:
		uni_trace_set_mode(UNI_TRACE_LITE);
		break;
	case 4:
		uni_trace_set_max_depth(0);
		break;
	case 5:
		uni_trace_set_min_time(5000);
		break;
	case 6:
		uni_trace_set_mode(UNI_TRACE_GRAPH);
		break;
	default:
		uni_trace_set_min_time(0);
		break;
	}
}

/* Nothing is counted twice or torn, every record is whole, and afterwards all is exact again. */
static void knobs_turn_meanwhile(void **state)
{
	struct ring_memory m = trace_start_cpus(NR, 1024, UNI_TRACE_STOP, uni_trace_exit_any);
	struct one o[NR];

	entry_hook = uni_trace_entry_any;
	run_both(o, 1200, 8, turn);
	for (unsigned i = 0; i < NR; i++) {
		struct uni_ring_stats stats;
		struct seen seen = drain(i, &stats);

		assert_true(seen.entries + seen.leaves <= o[i].calls);
		assert_true(seen.exits <= o[i].calls);
		print_message("CPU %u: %llu of %lu calls\n", i,
			(unsigned long long)(seen.entries + seen.leaves), o[i].calls);
	}
	trace_end(&m);
	both_by_the_control(state);
}

static void freeze_and_thaw(void)
{
	usleep(200);
	uni_trace_freeze();
	usleep(200);
	uni_trace_thaw();
}

/* From another CPU: each event is in the ring or counted, whenever the freeze comes. */
static void frozen_from_elsewhere(void **state)
{
	struct ring_memory m = trace_start_cpus(NR + 1, 512, UNI_TRACE_STOP, uni_trace_exit);
	struct one o[NR];

	entry_hook = uni_trace_entry_any;
	be_cpu(NR);
	run_both(o, 1200, 8, freeze_and_thaw);
	for (unsigned i = 0; i < NR; i++) {
		struct uni_ring_stats stats;
		struct seen seen = drain(i, &stats);

		assert_int_equal(seen.entries + seen.exits + cpus[i].lost + stats.after_freeze,
			o[i].calls * 2);
		print_message("CPU %u: %llu of %lu events lost to freezing\n", i,
			(unsigned long long)cpus[i].lost, o[i].calls * 2);
	}
	be_cpu(0);
	trace_end(&m);
}

/* --- what is taken before a sub-buffer is full ------------------------------------------------ */

struct taken {
	uint64_t *words;
	size_t nr, packets;
	uint64_t extra;
};

static struct uni_ring *taker;
static struct taken taken[NR];

static int keep_words(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	struct taken *t = arg;
	size_t n = (content - UNI_TRACE_SUB_HEAD) / 8;

	/* Nothing twice, nothing left out. */
	assert_int_equal(s->words_before, t->nr);
	assert_int_equal(s->extra_before, t->extra);
	t->words = realloc(t->words, (t->nr + n) * 8);
	assert_non_null(t->words);
	memcpy(t->words + t->nr, s + 1, n * 8);
	t->nr += n;
	t->extra = s->extra_after;
	t->packets++;
	return 0;
}

static void take_meanwhile(void)
{
	for (unsigned i = 0; i < NR; i++) {
		assert_int_equal(uni_ring_poll(taker, i, keep_words, &taken[i]), 0);
		assert_int_equal(uni_ring_take(taker, i, keep_words, &taken[i]), 0);
	}
}

/* The words that came in parts are those of who reads all in the end. */
static void taken_in_parts(void (*entry)(void), void (*exit)(void))
{
	struct ring_memory m = trace_start_cpus(NR, 512, UNI_TRACE_STOP, exit);
	struct one o[NR];

	entry_hook = entry;
	uni_trace_set_min_time(exit == uni_trace_exit_min ? 4000 : 0);
	taker = open_ring();
	run_both(o, 600, 8, take_meanwhile);
	for (unsigned i = 0; i < NR; i++) {
		struct taken all = { 0 };
		struct uni_ring *whole = open_ring();

		assert_int_equal(uni_ring_drain(taker, i, keep_words, &taken[i]), 0);
		assert_int_equal(uni_ring_drain(whole, i, keep_words, &all), 0);
		assert_int_equal(taken[i].nr, all.nr);
		assert_memory_equal(taken[i].words, all.words, all.nr * 8);
		/* Each round wrote a record that cannot be taken back. */
		assert_true(taken[i].packets >= o[i].rounds && o[i].rounds > 1);
		assert_int_equal(uni_ring_stats(taker, i)->lapped, 0);
		print_message("CPU %u: %zu words in %zu parts after %lu rounds, not %zu\n", i,
			all.nr, taken[i].packets, o[i].rounds, all.packets);
		free(taken[i].words);
		free(all.words);
		taken[i] = (struct taken){ 0 };
		uni_ring_close(whole);
	}
	uni_ring_close(taker);
	trace_end(&m);
}

static void taken_before_it_is_full(void **state)
{
	taken_in_parts(uni_trace_entry_any, uni_trace_exit);
	taken_in_parts(uni_trace_entry_any, uni_trace_exit_lite);
	taken_in_parts(uni_trace_entry_any, uni_trace_exit_min);
	taken_in_parts(uni_trace_entry_any, work_skip_exit);
	taken_in_parts(uni_trace_entry_args, uni_trace_exit_value);
}

/* argument: how many times the usual number of interrupts */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_in_full),
		cmocka_unit_test(both_lite),
		cmocka_unit_test(both_entries),
		cmocka_unit_test(both_with_callers),
		cmocka_unit_test(both_by_the_control),
		cmocka_unit_test(both_with_arguments),
		cmocka_unit_test(both_full_rings),
		cmocka_unit_test(overwritten_arguments),
		cmocka_unit_test(overwritten_callers),
		cmocka_unit_test(taken_back),
		cmocka_unit_test(knobs_turn_meanwhile),
		cmocka_unit_test(frozen_from_elsewhere),
		cmocka_unit_test(taken_before_it_is_full),
	};

	if (argc > 1)
		times = strtoul(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
