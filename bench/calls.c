/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls [SLICES]: what tracing costs a call. The guest's tracer is linked into this process, whose
 * own functions are patched as a guest's are. Each mode takes turns with the plain build, in random
 * order. Prints the cost of reading the clock. Then, for each mode and program: ns a call more than
 * plain (the quickest slices, and the lower quartile) and bytes a call. bench/run calls runs it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "calls_work.h"
#include "obj/sites.h"
#include "uniscope/trace.h"

#define ARCH_SET_GS 0x1001
#define RING_SIZE   (4u << 20)

enum mode { PLAIN, OFF, GRAPH, LITE, FUNCTION, CALLERS, MINIMUM, NR_MODES };

static const char *const mode_names[NR_MODES] = { "plain", "off", "graph", "lite", "function",
	"callers", "1us or longer" };
static const char *const work_names[NR_WORK] = { "fib", "json", "sort" };
static work_fn *const plain[NR_WORK] = { plain_fib, plain_json, plain_sort };
static work_fn *const traced[NR_WORK] = { traced_fib, traced_json, traced_sort };

static struct uni_trace_cpu cpu __attribute__((aligned(64)));
static volatile unsigned long sink;
static struct uni_sites *sites;

static void fail(const char *what)
{
	(void)fprintf(stderr, "calls: %s\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t clock_ns_x100(void)
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < 31; round++) {
		uint64_t t = now_ns();

		for (int i = 0; i < 20000; i++)
			__asm__ volatile("rdtsc" ::: "rax", "rdx");
		t = now_ns() - t;
		best = t < best ? t : best;
	}
	return best / 200;
}

static void write_bytes(uint64_t addr, const uint8_t *bytes)
{
	memcpy((void *)addr, bytes, UNI_SITE_BYTES);
}

/* As `trace start` and `trace stop` leave a guest's text. */
static void patch(enum mode mode)
{
	const struct uni_trace_hooks *h = (const struct uni_trace_hooks *)uni_trace_head.hooks;
	const uint64_t exits[NR_MODES] = {
		[GRAPH] = h->exit, [LITE] = h->exit_lite, [MINIMUM] = h->exit_min
	};

	for (size_t i = 0; i < sites->nr_functions; i++) {
		const struct uni_site_function *fn = &sites->function[i];

		for (uint32_t k = 0; k < fn->nr; k++) {
			const struct uni_site *s = &sites->site[fn->first + k];
			uint64_t hook = s->kind == UNI_SITE_EXIT ? exits[mode]
					: mode == OFF		 ? 0
					: mode == FUNCTION	 ? h->entry_only
					: mode == CALLERS	 ? h->entry_caller
								 : h->entry;
			uint8_t b[UNI_SITE_BYTES];

			if (hook == 0)
				uni_site_free_bytes(s, b);
			else if (!uni_site_on(s, 0, hook, b))
				fail("a hook is too far away");
			write_bytes(s->addr, b);
		}
	}
}

static void set_up(void)
{
	struct uni_trace_cpu *const cpus[] = { &cpu };
	struct uni_err err = { 0 };
	struct uni_image *img;
	char self[4096];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	void *ring = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (len < 0 || ring == MAP_FAILED || syscall(SYS_arch_prctl, ARCH_SET_GS, &cpu) != 0)
		fail("cannot set up");
	self[len] = '\0';
	if (uni_image_load(self, &img, &err) != 0 || uni_sites_read(img, &sites, &err) != 0)
		fail(err.msg);
	for (size_t i = 0; i < uni_image_nr_segments(img); i++) {
		const struct uni_segment *seg = uni_image_segment(img, i);
		uint64_t start = seg->vaddr & ~UINT64_C(4095);

		if (seg->exec && mprotect((void *)start, seg->vaddr + seg->mem_size - start,
					 PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
			fail("cannot write to own code");
	}
	if (uni_trace_init(ring, RING_SIZE, 1, cpus, UNI_TRACE_OVERWRITE, 0) != 0)
		fail("no ring");
	uni_trace_set_min_time(2600);
}

static uint64_t words_written(void)
{
	const struct uni_trace_sub *s =
		(const struct uni_trace_sub *)(cpu.wptr & ~(uint64_t)(UNI_TRACE_SUB_SIZE - 1));

	return s->words_before + (cpu.wptr - (uint64_t)s - UNI_TRACE_SUB_HEAD) / 8;
}

static uint64_t slice(enum mode mode, int w)
{
	work_fn *fn = mode == PLAIN ? plain[w] : traced[w];
	uint64_t t;

	if (mode != PLAIN)
		patch(mode);
	sink += fn(); /* the patched code is decoded */
	t = now_ns();
	sink += fn();
	return now_ns() - t;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	unsigned long slices = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
	static uint64_t words[NR_MODES][NR_WORK];
	uint64_t *ns[NR_MODES][NR_WORK];
	uint64_t clock = clock_ns_x100();

	if (slices == 0 || slices > 100000)
		fail("how many slices? 1 to 100000");
	set_up();
	for (int m = 0; m < NR_MODES; m++) {
		for (int w = 0; w < NR_WORK; w++) {
			ns[m][w] = calloc(slices, sizeof(uint64_t));
			words[m][w] = words_written();
			if (ns[m][w] == NULL)
				fail("out of memory");
			(void)slice((enum mode)m, w);
			words[m][w] = (words_written() - words[m][w]) / 2;
		}
	}
	for (unsigned long i = 0; i < slices; i++) {
		int from = rand() % (NR_MODES * NR_WORK);

		for (int k = 0; k < NR_MODES * NR_WORK; k++) {
			int n = (from + k * 11) % (NR_MODES * NR_WORK); /* 11: of no factor of 21 */

			ns[n / NR_WORK][n % NR_WORK][i] =
				slice((enum mode)(n / NR_WORK), n % NR_WORK);
		}
	}
	printf("rdtsc %llu.%02llu\n", (unsigned long long)clock / 100,
		(unsigned long long)clock % 100);
	for (int m = 0; m < NR_MODES; m++) {
		for (int w = 0; w < NR_WORK; w++) {
			double calls = (double)words[FUNCTION][w];

			qsort(ns[m][w], slices, sizeof(uint64_t), ascending);
			printf("%s,%s,%.0f,%.2f,%.2f,%.1f\n", mode_names[m], work_names[w], calls,
				((double)ns[m][w][0] - (double)ns[PLAIN][w][0] * (m != PLAIN)) /
					calls,
				((double)ns[m][w][slices / 4] -
					(double)ns[PLAIN][w][slices / 4] * (m != PLAIN)) /
					calls,
				(double)words[m][w] * 8 / calls);
		}
	}
	return 0;
}
