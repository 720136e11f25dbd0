/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inside [SLICES]: the native cost of a guest's own sampler. It times a tick while nobody wants
 * samples, a tick that takes no sample, and a sample by depth of the stack. Prints ns each: of the
 * quickest of the slices, and the lower quartile. bench/run inside runs it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "uniscope/sample.h"
#include "uniscope/trace.h"

#define ARCH_SET_GS 0x1001
#define RING_SIZE   (4u << 20)
#define TURNS	    2000
#define SLICES_MAX  1000

static struct uni_trace_cpu cpu __attribute__((aligned(64)));
static struct uni_trace_sampler sampler __attribute__((aligned(64)));
static uint64_t stack[2 * UNI_SAMPLE_DEPTH];

static void fail(const char *what)
{
	(void)fprintf(stderr, "inside: %s\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A chain of so many frames, of the size that they are in real code. */
static struct uni_sample_at at_depth(unsigned depth)
{
	for (unsigned i = 0; i < depth; i++) {
		stack[2 * i] = i + 1 < depth ? (uint64_t)&stack[2 * i + 2] : 0;
		stack[2 * i + 1] = 0xffffffff80200000u + i;
	}
	return (struct uni_sample_at){ .pc = 0xffffffff80200000u,
		.sp = (uint64_t)stack,
		.fp = (uint64_t)stack,
		.stack_low = (uint64_t)stack,
		.stack_high = (uint64_t)(stack + 2 * UNI_SAMPLE_DEPTH) };
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void measure(const char *what, const struct uni_sample_at *at, unsigned slices)
{
	static double ns[SLICES_MAX];

	for (unsigned s = 0; s < slices; s++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < TURNS; i++)
			uni_sample_tick(at);
		ns[s] = (double)(now_ns() - begin) / TURNS;
	}
	qsort(ns, slices, sizeof(ns[0]), compare);
	(void)printf("%-28s %8.2f %8.2f\n", what, ns[0], ns[slices / 4]);
}

int main(int argc, char **argv)
{
	static const unsigned depths[] = { 8, 35, 100 };
	struct uni_trace_cpu *const cpus[] = { &cpu };
	unsigned slices = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 400;
	struct uni_sample_at at = at_depth(depths[0]);
	void *mem = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	char what[48];

	if (slices == 0 || slices > SLICES_MAX)
		fail("1 to 1000 slices");
	if (mem == MAP_FAILED || syscall(SYS_arch_prctl, ARCH_SET_GS, &cpu) != 0 ||
		uni_trace_init(mem, RING_SIZE, 1, cpus, UNI_TRACE_OVERWRITE, 0) != 0)
		fail("no ring");
	(void)printf("%-28s %8s %8s\n", "ns", "quickest", "quartile");
	uni_sample_init(&sampler, 1u << 30);
	measure("tick, off", &at, slices);
	uni_sample_set_hz(1);
	measure("tick between two samples", &at, slices);
	uni_sample_init(&sampler, 0);
	for (unsigned i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		at = at_depth(depths[i]);
		(void)snprintf(what, sizeof(what), "sample, %u frames", depths[i] + 1);
		measure(what, &at, slices);
	}
	return 0;
}
