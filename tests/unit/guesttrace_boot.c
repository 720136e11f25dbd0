/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls before uni_trace_init(), as an image of `trace prepare --on` makes them. Each case is a
 * process of its own: a guest boots once. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guesttrace.h"

#define TRAP_FLAG 0x100
#define SUBS	  8 /* of boot.c's ring */
#define SHORTER	  1 /* the status of a case that did not come to its trap */

int uni_trace_boot(struct uni_trace_cpu *c); /* not weak: boot.c is linked for it */

/* Its exit status. */
static int in_child(void (*boot)(unsigned long), unsigned long arg)
{
	int status;
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		boot(arg);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) > SHORTER)
		fail_msg("the guest of case %lu ended with status %#x", arg, (unsigned)status);
	return WEXITSTATUS(status);
}

#define REQUIRE(what)                                                           \
	do {                                                                    \
		if (!(what)) {                                                  \
			(void)fprintf(stderr, "%d: not %s\n", __LINE__, #what); \
			_exit(2);                                               \
		}                                                               \
	} while (0)

/* As the file has it: the areas of two CPUs, the tracer on. */
static void switch_on(void)
{
	cpus[0] = (struct uni_trace_cpu)UNI_TRACE_AREA(&cpus[0]);
	uni_trace_head.control.enable = uni_trace_head.control.enable_asked = 1;
	entry_hook = uni_trace_entry;
	exit_hook = uni_trace_exit;
	be_cpu(0);
}

static void init_rest(unsigned subs)
{
	struct uni_trace_cpu *const areas[] = { &cpus[0], &cpus[1] };
	size_t size = (2 * subs + 1) * UNI_TRACE_SUB_SIZE;

	REQUIRE(uni_trace_init(malloc(size), size, 2, areas, UNI_TRACE_OVERWRITE, 1000) == 0);
}

static void require_calls(unsigned nr, unsigned long calls)
{
	struct uni_ring_stats stats;
	struct seen seen = read_cpu(nr, &stats);
	uint64_t lost = stats.lapped_words + cpus[nr].lost;

	REQUIRE(seen.backwards == 0);
	/* A SYNC that was overwritten counts as three words. */
	REQUIRE(seen.records - seen.syncs + lost >= 2 * calls);
	REQUIRE(seen.records - seen.syncs + lost <= 2 * calls + (stats.lapped_words != 0 ? 30 : 0));
	REQUIRE(lost != 0 || (seen.entries == calls && seen.exits == calls && seen.lowest == 0));
}

static void record_all(unsigned long turns)
{
	struct uni_trace_cpu *const wrong[] = { &cpus[1], &cpus[0] };
	unsigned long first;
	struct uni_ring *r;

	switch_on();
	for (unsigned long i = 0; i < turns; i++)
		work_fib(6);
	r = open_ring();
	REQUIRE(info->boots && info->nr_cpus == 1 && uni_ring_nr_subs(r, 0) == SUBS);
	require_calls(0, work_calls);
	/* A further CPU that starts has no ring yet. */
	first = work_calls;
	be_cpu_early();
	work_fib(6);
	REQUIRE(uni_trace_early.wptr == UNI_TRACE_SUB_SIZE - 8);
	work_calls = first;
	be_cpu(0);
	work_fib(6);
	REQUIRE(uni_trace_init(malloc(1 << 20), 1 << 20, 2, wrong, UNI_TRACE_OVERWRITE, 0) == -1);
	init_rest(4);
	work_fib(6);
	require_calls(0, work_calls);
	uni_ring_close(r);
	r = open_ring();
	REQUIRE(!info->boots && info->nr_cpus == 2 && info->tsc_hz == 1000);
	REQUIRE(uni_ring_nr_subs(r, 0) == SUBS && uni_ring_nr_subs(r, 1) == 4);
	uni_ring_close(r);
	first = work_calls;
	be_cpu(1);
	work_fib(6);
	require_calls(1, work_calls - first);
	require_calls(0, first);
}

/* Not prepared: nothing is recorded, and the ring is the guest's. */
static void record_none(unsigned long unused)
{
	struct uni_ring *r;

	(void)unused;
	switch_on();
	uni_trace_head.control.enable = 0;
	work_fib(6);
	REQUIRE(!uni_trace_boot(&cpus[0]) && uni_trace_head.magic[0] == 0);
	init_rest(4);
	work_calls = 0;
	work_fib(6);
	r = open_ring();
	REQUIRE(!info->boots && uni_ring_nr_subs(r, 0) == 4);
	require_calls(0, work_calls);
	uni_ring_close(r);
}

static volatile unsigned long nr_traps, at_trap;

static void on_trap(int sig, siginfo_t *si, void *uc)
{
	ucontext_t *at = uc;

	(void)sig;
	(void)si;
	if (nr_traps++ < at_trap)
		return;
	work_interrupt(3);
	at->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG; /* each trap costs up to 0.3 ms */
}

/* An interrupt after this instruction of the first call makes traced calls. */
static void interrupted(unsigned long at)
{
	const struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	REQUIRE(sigaction(SIGTRAP, &sa, NULL) == 0);
	switch_on();
	at_trap = at;
	__asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG) : "memory", "cc");
	work_fib(1);
	__asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG) : "memory", "cc");
	work_fib(4);
	if (nr_traps <= at)
		_exit(SHORTER);
	require_calls(0, work_calls);
}

static void calls_of_a_boot(void **state)
{
	assert_int_equal(in_child(record_all, 1), 0);
	assert_int_equal(in_child(record_all, 400), 0);	 /* sub-buffers close */
	assert_int_equal(in_child(record_all, 4000), 0); /* and the first ones are overwritten */
}

static void nothing_unless_prepared(void **state)
{
	assert_int_equal(in_child(record_none, 0), 0);
}

static void interrupts_of_a_boot(void **state)
{
	unsigned long at = 0;

	while (in_child(interrupted, at) == 0)
		at += 49;
	print_message("%lu instructions\n", at);
	assert_true(at > 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_a_boot),
		cmocka_unit_test(nothing_unless_prepared),
		cmocka_unit_test(interrupts_of_a_boot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
