/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that links the tracer of guest/ (one CPU) and counts its own calls, in three functions.
 * proctraced ROUNDS: says "ready", waits for a line, does its rounds, prints "NAME COUNT" and
 * "done", and stays until its input ends. ROUNDS 0: rounds for ever. A second thread sleeps all the
 * time.
 */
#include <asm/prctl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "uniscope/trace.h"

#define RING_SIZE (4u << 20)

uint64_t work_leaf(uint64_t n);
uint64_t work_fib(uint64_t n);
uint64_t work_round(uint64_t n);

static struct uni_trace_cpu cpu __attribute__((aligned(64)));
volatile uint64_t count_leaf, count_fib, count_round;

static void *sleeper(void *arg)
{
	(void)poll(NULL, 0, -1);
	return arg;
}

static void set_up(void)
{
	struct uni_trace_cpu *const cpus[] = { &cpu };
	void *ring = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	pthread_t t;

	if (ring == MAP_FAILED || syscall(SYS_arch_prctl, ARCH_SET_GS, &cpu) != 0 ||
		uni_trace_init(ring, RING_SIZE, 1, cpus, UNI_TRACE_OVERWRITE, 0) != 0 ||
		pthread_create(&t, NULL, sleeper, NULL) != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	int c;

	set_up();
	(void)printf("ready\n");
	(void)fflush(stdout);
	(void)getchar();
	for (uint64_t i = 0; rounds == 0 || i < rounds; i++)
		(void)work_round(i);
	(void)printf("work_leaf %lu\nwork_fib %lu\nwork_round %lu\ndone\n", count_leaf, count_fib,
		count_round);
	(void)fflush(stdout);
	do {
		c = getchar();
	} while (c != EOF);
	return 0;
}
