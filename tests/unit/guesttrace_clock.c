/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks at a ring give intervals of the clock, while the vCPU is set aside after each instruction
 * of the tracer, for long. No interval may miss the moment at which the guest read its counter.
 * Judged by the counter alone, so it does not matter how long anything takes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/tsc.h"
#include "tracing/clock.h"

#include "guesttrace.h"

#define TRAP_FLAG 0x100
#define LOOKS	  20000
#define CYCLES	  20000 /* that the vCPU is set aside for, each time */

static struct {
	uint64_t began_ns, tsc;
} looked[LOOKS];
static struct uni_ring *ring;
static struct uni_tclock_look at;
static unsigned nr_looks, nr_points, nr_missed, nr_unknown, every, traps;
static int in_trap;

/* The counter when that look began. */
static uint64_t tsc_at(uint64_t began_ns)
{
	for (unsigned i = nr_looks; i-- > 0;) {
		if (looked[i].began_ns == began_ns)
			return looked[i].tsc;
	}
	nr_unknown++;
	return 0;
}

static void look_at_ring(void)
{
	uint64_t tsc = uni_host_tsc();
	struct uni_tclock_point p;

	if (nr_looks == LOOKS || uni_tclock_look_once(ring, 0, &at, &p) != 0)
		return;
	if (p.to_ns != 0) {
		nr_points++;
		nr_missed += p.cycles < tsc_at(p.from_ns) || p.cycles > uni_host_tsc();
	}
	looked[nr_looks].began_ns = at.before_ns;
	looked[nr_looks++].tsc = tsc;
}

static void on_trap(int sig, siginfo_t *si, void *uc)
{
	uint64_t from = uni_host_tsc();

	(void)sig;
	(void)si;
	(void)uc;
	if (in_trap)
		return;
	in_trap = 1;
	/* Now and then an interrupt comes, which makes records of its own. */
	if (++traps % 97 == 0)
		work_interrupt(3);
	if (traps % every == 0) {
		look_at_ring();
		while (uni_host_tsc() - from < CYCLES)
			;
	}
	in_trap = 0;
}

static void set_trap_flag(int on)
{
	if (on)
		__asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG)
				 : "memory", "cc");
	else
		__asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG)
				 : "memory", "cc");
}

static void set_aside(void (*exit_by)(void), unsigned looks_every)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	struct ring_memory m = trace_start(8, UNI_TRACE_OVERWRITE, exit_by);

	ring = open_ring();
	memset(&at, 0, sizeof(at));
	nr_looks = nr_points = nr_missed = nr_unknown = traps = 0;
	every = looks_every;
	sigaction(SIGTRAP, &sa, NULL);
	set_trap_flag(1);
	for (int i = 0; i < 8; i++) {
		work_fib(4);
		uni_trace_switch(7, 9, 3);
	}
	set_trap_flag(0);
	print_message("%u traps, %u looks, %u intervals, %u missed\n", traps, nr_looks, nr_points,
		nr_missed);
	assert_int_equal(nr_missed, 0);
	assert_int_equal(nr_unknown, 0);
	assert_true(nr_looks < LOOKS && nr_points >= 5);
	uni_ring_close(ring);
	trace_end(&m);
}

static void after_each_instruction(void **state)
{
	(void)state;
	set_aside(uni_trace_exit, 1);
	set_aside(uni_trace_exit_lite, 1);
	set_aside(uni_trace_exit_min, 1);
}

/* Several records come between two looks. */
static void now_and_then(void **state)
{
	(void)state;
	for (unsigned n = 5; n < 300; n += 31)
		set_aside(uni_trace_exit, n);
}

/* Nothing is recorded while it looks: the newest record was written before it was first seen. */
static void only_the_newest(void **state)
{
	struct ring_memory m = trace_start(8, UNI_TRACE_OVERWRITE, uni_trace_exit);
	struct uni_tclock c = { 0 };
	struct uni_record_clock r;
	struct uni_ring_now now;
	uint64_t begin_ns, end_ns;

	(void)state;
	work_fib(4);
	ring = open_ring();
	assert_int_equal(uni_ring_now(ring, 0, &now), 0);
	assert_int_equal(uni_tclock_open(&c, 0, 1, NULL, NULL), 0);
	begin_ns = uni_now_ns();
	assert_false(uni_tclock_look(&c, ring, 0, 1));
	end_ns = uni_now_ns();
	assert_false(uni_tclock_look(&c, ring, 0, 1)); /* seen already */
	uni_tclock_result(&c, uni_ring_info(ring), 0, &r);
	assert_int_equal(r.error_ns, UINT64_MAX);
	assert_int_equal(r.cycles, now.time);
	assert_in_range(r.ns, begin_ns, end_ns);
	uni_tclock_close(&c);
	uni_ring_close(ring);
	trace_end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_each_instruction),
		cmocka_unit_test(now_and_then),
		cmocka_unit_test(only_the_newest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
