/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that links the tracer of guest/ (one CPU) and counts its own calls, in three functions.
 * proctraced ROUNDS [RING-MIB [CALLS-A-SECOND]]: says "ready", waits for a line, and does its
 * rounds (as many calls a second, on average). Then it prints "NAME COUNT" and "done", and stays
 * until its input ends. ROUNDS 0: rounds for ever. A second thread sleeps all the time.
 */
#include <asm/prctl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "uniscope/trace.h"

#define NS_A_SECOND 1000000000ull

uint64_t work_leaf(uint64_t n);
uint64_t work_fib(uint64_t n);
uint64_t work_round(uint64_t n);

/* Only where the work is of -pg alone. */
__attribute__((weak)) int uni_trace_return_table(void *mem, uint64_t size);

static struct uni_trace_cpu cpu __attribute__((aligned(64)));
static uint64_t returns[512];
volatile uint64_t count_leaf, count_fib, count_round;

static void *sleeper(void *arg)
{
	(void)poll(NULL, 0, -1);
	return arg;
}

static void set_up(uint64_t ring_size)
{
	struct uni_trace_cpu *const cpus[] = { &cpu };
	void *ring = mmap(NULL, ring_size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	pthread_t t;

	if (uni_trace_return_table != NULL)
		(void)uni_trace_return_table(returns, sizeof(returns));
	if (ring == MAP_FAILED || syscall(SYS_arch_prctl, ARCH_SET_GS, &cpu) != 0 ||
		uni_trace_init(ring, ring_size, 1, cpus, UNI_TRACE_OVERWRITE, 0) != 0 ||
		pthread_create(&t, NULL, sleeper, NULL) != 0)
		exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_A_SECOND + (uint64_t)t.tv_nsec;
}

static void wait_for_turn(uint64_t begin_ns, uint64_t rate)
{
	uint64_t calls = count_leaf + count_fib + count_round;
	uint64_t turn_ns = begin_ns + (uint64_t)((unsigned __int128)calls * NS_A_SECOND / rate);
	struct timespec turn = { .tv_sec = (time_t)(turn_ns / NS_A_SECOND),
		.tv_nsec = (long)(turn_ns % NS_A_SECOND) };

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &turn, NULL);
}

static uint64_t number(int argc, char **argv, int i, uint64_t otherwise)
{
	return argc > i ? strtoull(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	uint64_t rounds = number(argc, argv, 1, 0), rate = number(argc, argv, 3, 0), begin_ns;
	int c;

	set_up(number(argc, argv, 2, 4) << 20);
	(void)printf("ready\n");
	(void)fflush(stdout);
	(void)getchar();
	begin_ns = now_ns();
	for (uint64_t i = 0; rounds == 0 || i < rounds; i++) {
		(void)work_round(i);
		if (rate != 0)
			wait_for_turn(begin_ns, rate);
	}
	begin_ns = now_ns() - begin_ns;
	(void)printf("took %.3f\n", (double)begin_ns / NS_A_SECOND);
	(void)printf("work_leaf %lu\nwork_fib %lu\nwork_round %lu\ndone\n", count_leaf, count_fib,
		count_round);
	(void)fflush(stdout);
	do {
		c = getchar();
	} while (c != EOF);
	return 0;
}
