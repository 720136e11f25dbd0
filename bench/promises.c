/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * promises [SLICES]: the cost of an event of threads. The guest's tracer is linked into this
 * process. Each event takes turns with the same loop without it, and with a function's entry as a
 * patched guest records it. If it was built with LTTng, it also takes turns with an LTTng
 * tracepoint of the same fields. Prints the clock's cost, then for each ns an event more than the
 * empty loop: the quickest slices, and the lower quartile. bench/run promises runs it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "uniscope/promise.h"
#ifdef HAVE_LTTNG
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "promises_lttng.h"
#endif

#define ARCH_SET_GS 0x1001
#define RING_SIZE   (4u << 20)
#define EVENTS	    2000u

/* As a function whose entry is patched, and as one whose entry is not. */
__asm__(".text\n.p2align 4\nbench_entry:\n\tcall uni_trace_entry\n\tret\n"
	".p2align 4\nbench_plain:\n\t.byte 0x0f, 0x1f, 0x44, 0, 0\n\tret\n");
void bench_entry(void);
void bench_plain(void);

static struct uni_trace_cpu cpu __attribute__((aligned(64)));

static void fail(const char *what)
{
	(void)fprintf(stderr, "promises: %s\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void set_up(void)
{
	struct uni_trace_cpu *const cpus[] = { &cpu };
	void *ring = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (ring == MAP_FAILED || syscall(SYS_arch_prctl, ARCH_SET_GS, &cpu) != 0 ||
		uni_trace_init(ring, RING_SIZE, 1, cpus, UNI_TRACE_OVERWRITE, 0) != 0)
		fail("cannot set up");
	uni_trace_head.control.promises = 1;
}

/* One slice: ns of EVENTS times the event. */
#define SLICE(name, event)                              \
	static uint64_t name(void)                      \
	{                                               \
		uint64_t t = now_ns();                  \
                                                        \
		for (uint64_t i = 0; i < EVENTS; i++) { \
			__asm__ volatile("" : "+r"(i)); \
			event;                          \
		}                                       \
		return now_ns() - t;                    \
	}

SLICE(empty, (void)0)
SLICE(plain, bench_plain())
SLICE(entry, bench_entry())
SLICE(create, uni_promise_create(7, i, UNI_PROMISE_TASK))
SLICE(resolve, uni_promise_resolve(7, i))
SLICE(change, uni_promise_switch(i))
SLICE(label, uni_promise_label(i, "a name"))
#ifdef HAVE_LTTNG
SLICE(lttng_create, lttng_ust_tracepoint(uniscope_bench, create, 7, i, 1))
SLICE(lttng_resolve, lttng_ust_tracepoint(uniscope_bench, resolve, 7, i))
SLICE(lttng_switch, lttng_ust_tracepoint(uniscope_bench, change, i))
#endif

static uint64_t create_off(void)
{
	uint64_t ns;

	uni_trace_head.control.promises = 0;
	ns = create();
	uni_trace_head.control.promises = 1;
	return ns;
}

static const struct {
	const char *name;
	uint64_t (*slice)(void);
	uint64_t (*without)(void);
} ways[] = {
	{ "create", create, empty },
	{ "resolve", resolve, empty },
	{ "switch", change, empty },
	{ "label of 6 letters", label, empty },
	{ "create while off", create_off, empty },
	{ "entry of a function", entry, plain },
#ifdef HAVE_LTTNG
	{ "LTTng create", lttng_create, empty },
	{ "LTTng resolve", lttng_resolve, empty },
	{ "LTTng switch", lttng_switch, empty },
#endif
};
#define NR (sizeof(ways) / sizeof(ways[0]))

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double clock_ns(void)
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < 31; round++) {
		uint64_t t = now_ns();

		for (int i = 0; i < 20000; i++)
			__asm__ volatile("rdtsc" ::: "rax", "rdx");
		t = now_ns() - t;
		best = t < best ? t : best;
	}
	return (double)best / 20000;
}

int main(int argc, char **argv)
{
	unsigned long slices = argc > 1 ? strtoul(argv[1], NULL, 10) : 400;
	uint64_t *ns[NR], *base[NR];

	if (slices == 0 || slices > 100000)
		fail("how many slices? 1 to 100000");
	set_up();
	for (size_t w = 0; w < NR; w++) {
		ns[w] = calloc(slices, sizeof(uint64_t));
		base[w] = calloc(slices, sizeof(uint64_t));
		if (ns[w] == NULL || base[w] == NULL)
			fail("out of memory");
	}
	for (unsigned long i = 0; i < slices; i++) {
		for (size_t k = 0, from = (size_t)rand(); k < NR; k++) {
			size_t w = (from + k) % NR;

			(void)ways[w].slice(); /* what is not in the caches is not the event's */
			ns[w][i] = ways[w].slice();
			base[w][i] = ways[w].without();
		}
	}
	printf("rdtsc %.2f\n", clock_ns());
	for (size_t w = 0; w < NR; w++) {
		qsort(ns[w], slices, sizeof(uint64_t), ascending);
		qsort(base[w], slices, sizeof(uint64_t), ascending);
		printf("%s,%.2f,%.2f\n", ways[w].name,
			((double)ns[w][0] - (double)base[w][0]) / EVENTS,
			((double)ns[w][slices / 4] - (double)base[w][slices / 4]) / EVENTS);
	}
	return 0;
}
