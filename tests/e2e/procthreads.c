/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that tells of its threads and has no function that can be traced: guest/README.md,
 * "Threads and promises". procthreads [TURNS [MS]]: says "ready", waits for a line, lets two
 * threads wait for each other so many times (default 1) and says "done". Then it is silent until
 * its input ends. In each turn the first thread makes the other one wait, which could run. It
 * computes for MS milliseconds of a CPU's time, or sleeps for -MS.
 */
#include <asm/prctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "uniscope/promise.h"
#include "uniscope/trace.h"

#define RING (4u << 20)

enum { HOG = 1, VICTIM, FIRST_REQUEST };

static int64_t used_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void pass(int64_t ms)
{
	const struct timespec nap = { .tv_sec = -ms / 1000, .tv_nsec = -ms % 1000 * 1000000 };
	int64_t until = used_ms() + ms;

	if (ms < 0)
		(void)nanosleep(&nap, NULL);
	while (used_ms() < until)
		;
}

static void turn(uint64_t request, int64_t ms)
{
	uni_promise_named_wait(HOG, request, "request");
	uni_promise_switch(VICTIM);
	uni_promise_try_read(VICTIM, request);
	uni_promise_switch(HOG);
	uni_promise_resolve(HOG, request);
	pass(ms);
	uni_promise_switch(VICTIM);
	uni_promise_read(VICTIM, request);
	uni_promise_switch(HOG);
}

static struct uni_trace_cpu cpu __attribute__((aligned(64)));

int main(int argc, char **argv)
{
	static unsigned char ring[RING];
	struct uni_trace_cpu *const cpus[] = { &cpu };
	uint64_t turns = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	int64_t ms = argc > 2 ? strtoll(argv[2], NULL, 10) : 0;
	int c;

	if (syscall(SYS_arch_prctl, ARCH_SET_GS, &cpu) != 0 ||
		uni_trace_init(ring, sizeof(ring), 1, cpus, UNI_TRACE_OVERWRITE, 0) != 0)
		return 1;
	(void)printf("ready\n");
	(void)fflush(stdout);
	(void)getchar();
	uni_promise_named(UNI_PROMISE_NOBODY, HOG, UNI_PROMISE_THREAD, "hog");
	uni_promise_named(UNI_PROMISE_NOBODY, VICTIM, UNI_PROMISE_THREAD, "victim");
	for (uint64_t i = 0; i < turns; i++)
		turn(FIRST_REQUEST + i, ms);
	(void)printf("done\n");
	(void)fflush(stdout);
	do {
		c = getchar();
	} while (c != EOF);
	return 0;
}
