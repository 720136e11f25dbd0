/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread is stopped where it is by chance, and one that sleeps is left alone (base/catch.h). */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/catch.h"
#include "base/stop.h"

#define TRIES_MAX 10000u /* a busy host has little time for a child */

/* All of one loop: its addresses are those of the two labels. */
extern const char catch_spin_begin[], catch_spin_end[], catch_ask_begin[], catch_ask_end[];

__asm__(".pushsection .text\n"
	"catch_spin_begin: pause\n"
	"	jmp catch_spin_begin\n"
	"catch_spin_end:\n"
	"catch_ask_begin: mov $110, %eax\n" /* getppid */
	"	syscall\n"
	"	jmp catch_ask_begin\n"
	"catch_ask_end:\n"
	".popsection\n");

static pid_t begin_child(int cpu, int nice, const char *code)
{
	pid_t child = fork();
	cpu_set_t one;

	if (child != 0)
		return child;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
	(void)setpriority(PRIO_PROCESS, 0, nice);
	if (code != NULL)
		((void (*)(void))(uintptr_t)code)();
	for (;;)
		(void)pause();
}

static void end_child(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, __WALL), child);
}

static int first_cpu(void)
{
	cpu_set_t all;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET((size_t)cpu, &all))
		cpu++;
	return cpu;
}

/* The next result that is known. A stopped thread goes on. */
static struct uni_there look_at(pid_t child, int cpu)
{
	struct uni_thread_stop s = { .tid = child };
	struct uni_there r = { .what = UNI_THERE_AWAY };

	for (unsigned i = 0; i < TRIES_MAX && r.what == UNI_THERE_AWAY; i++) {
		int rc = uni_catch_there(child, &s, cpu, &r);

		assert_int_equal(s.held, rc == 0 && r.what <= UNI_THERE_WAITED);
		if (rc != 0)
			r.what = UNI_THERE_AWAY;
		uni_thread_stop_end(&s);
	}
	return r;
}

/* Stops until 20 of them found it on the CPU; returns how many were in a call. */
static unsigned stops_between(pid_t child, int cpu, const char *begin, const char *end)
{
	unsigned ran = 0, calls = 0;

	for (unsigned i = 0; i < TRIES_MAX && ran < 20; i++) {
		struct uni_there r = look_at(child, cpu);

		assert_true(r.what <= UNI_THERE_WAITED);
		assert_in_range(r.regs.rip, (uintptr_t)begin, (uintptr_t)end - 1);
		if (r.what != UNI_THERE_RAN)
			continue;
		ran++;
		calls += (int64_t)r.regs.orig_rax >= 0;
	}
	assert_int_equal(ran, 20);
	return calls;
}

static void own_code(void **state)
{
	int cpu = first_cpu();
	pid_t child = begin_child(cpu, 0, catch_spin_begin);

	(void)state;
	while (look_at(child, cpu).regs.rip - (uintptr_t)catch_spin_begin > 8) /* it begins */
		;
	assert_int_equal(stops_between(child, cpu, catch_spin_begin, catch_spin_end), 0);
	end_child(child);
}

static void calls(void **state)
{
	int cpu = first_cpu();
	pid_t child = begin_child(cpu, 0, catch_ask_begin);

	(void)state;
	while (look_at(child, cpu).regs.rip - (uintptr_t)catch_ask_begin > 8)
		;
	assert_true(stops_between(child, cpu, catch_ask_begin, catch_ask_end) > 0);
	end_child(child);
}

static void sleeper_is_left_alone(void **state)
{
	int cpu = first_cpu();
	pid_t child = begin_child(cpu, 0, NULL);

	(void)state;
	while (look_at(child, cpu).what != UNI_THERE_ASLEEP) /* it begins */
		;
	for (int i = 0; i < 10; i++)
		assert_int_equal(look_at(child, cpu).what, UNI_THERE_ASLEEP);
	end_child(child);
}

static void one_that_waits(void **state)
{
	int cpu = first_cpu();
	pid_t first = begin_child(cpu, 0, catch_spin_begin);
	pid_t child = begin_child(cpu, 5, catch_spin_begin);
	unsigned waited = 0;

	(void)state;
	for (unsigned i = 0; i < TRIES_MAX && waited < 3; i++)
		waited += look_at(child, cpu).what == UNI_THERE_WAITED;
	assert_int_equal(waited, 3);
	end_child(child);
	end_child(first);
}

static void stopped_one_is_away(void **state)
{
	struct uni_there r = { .what = UNI_THERE_RAN };
	int cpu = first_cpu();
	pid_t child = begin_child(cpu, 0, catch_spin_begin);
	struct uni_thread_stop s = { .tid = child };

	(void)state;
	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
	assert_int_equal(uni_catch_there(child, &s, cpu, &r), 0);
	assert_int_equal(r.what, UNI_THERE_AWAY);
	assert_false(s.held);
	end_child(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_code),
		cmocka_unit_test(calls),
		cmocka_unit_test(sleeper_is_left_alone),
		cmocka_unit_test(one_that_waits),
		cmocka_unit_test(stopped_one_is_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
