/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine layer of apps that are built as a Linux process, as some unikernels can be: system
 * calls and nothing else. argv holds the words of the command line.
 */
#include "lab.h"

#define SYS_READ	  0
#define SYS_WRITE	  1
#define SYS_POLL	  7
#define SYS_EXIT_GROUP	  231
#define SYS_CLOCK_GETTIME 228
#define CLOCK_MONOTONIC	  1
#define CLOCK_CPU	  3 /* CLOCK_THREAD_CPUTIME_ID */
#define POLLIN		  1

void lab_setup(const uint64_t *stack);

static uint64_t stack_top;

static long call3(long nr, uint64_t a, uint64_t b, uint64_t c)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

static uint64_t rdtsc(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

static uint64_t clock_ns(uint64_t clock)
{
	uint64_t ts[2] = { 0, 0 };

	call3(SYS_CLOCK_GETTIME, clock, (uint64_t)ts, 0);
	return ts[0] * 1000000000 + ts[1];
}

/* The time that this process had a CPU, in cycles: the books judge samples, and none is taken while
 * it waits for one. The kernel is asked only after a millisecond without a look, for a system call
 * is where a busy host changes to another process. */
uint64_t lab_tsc(void)
{
	static uint64_t now, last, asked_now, asked_cpu;
	uint64_t tsc = rdtsc(), passed = tsc - last;

	if (passed > lab_truth.tsc_hz / 1000) {
		uint64_t cpu = clock_ns(CLOCK_CPU) * (lab_truth.tsc_hz / 1000000) / 1000,
			 counted = asked_cpu + (now - asked_now);

		passed = cpu > counted ? cpu - counted : 0;
		asked_now = now + passed;
		asked_cpu = cpu;
		tsc = rdtsc();
	}
	now += passed;
	last = tsc;
	return now;
}

unsigned lab_cpu_id(void)
{
	return 0;
}

void lab_relax(void)
{
	__asm__ volatile("pause");
}

/* There are no ticks: a hundredth of a second. */
LAB_FUNC void lab_halt(void)
{
	call3(SYS_POLL, 0, 0, 10);
}

LAB_FUNC void lab_putc(char c)
{
	call3(SYS_WRITE, 1, (uint64_t)&c, 1);
}

bool lab_serial_pending(void)
{
	struct {
		int fd;
		short events, revents;
	} p = { 0, POLLIN, 0 };

	return call3(SYS_POLL, (uint64_t)&p, 1, 0) > 0;
}

void lab_main_stack(uint64_t *low_ret, uint64_t *high_ret)
{
	*low_ret = stack_top - 65536;
	*high_ret = stack_top;
}

static void calibrate(void)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), tsc = rdtsc(), ns;

	do {
		ns = clock_ns(CLOCK_MONOTONIC) - begin;
	} while (ns < 20000000);
	lab_truth.tsc_hz = (rdtsc() - tsc) * 1000 / (ns / 1000000);
}

static void read_words(const uint64_t *stack)
{
	char text[512];
	size_t n = 0;

	for (uint64_t i = 1; i < stack[0]; i++) {
		const char *word = (const char *)stack[1 + i];

		for (; *word && n + 2 < sizeof(text); word++)
			text[n++] = *word;
		text[n++] = ' ';
	}
	text[n] = '\0';
	lab_cmdline_init(text);
}

LAB_FUNC void lab_setup(const uint64_t *stack)
{
	stack_top = (uint64_t)stack;
	lab_truth_init();
	read_words(stack);
	calibrate();
}

_Noreturn void lab_exit(unsigned code)
{
	for (;;)
		call3(SYS_EXIT_GROUP, code == LAB_EXIT_OK ? 0 : 1, 0, 0);
}

void lab_crash_if_asked(void)
{
	if (lab_arg_is("crash", "undefined"))
		__asm__ volatile("ud2");
}
