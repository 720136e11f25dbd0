/* SPDX-License-Identifier: BSD-2-Clause */
/* calls_peer SLICES: the three programs as another tracer's build; the quickest ns of each. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "calls_work.h"

static volatile unsigned long sink;

static __attribute__((no_instrument_function)) uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	work_fn *const work[NR_WORK] = { plain_fib, plain_json, plain_sort };
	unsigned long slices = argc > 1 ? strtoul(argv[1], NULL, 10) : 20;

	for (int w = 0; w < NR_WORK; w++) {
		uint64_t best = UINT64_MAX;

		for (unsigned long i = 0; i < slices; i++) {
			uint64_t t = now_ns();

			sink += work[w]();
			t = now_ns() - t;
			best = t < best ? t : best;
		}
		printf("%llu\n", (unsigned long long)best);
	}
	return 0;
}
