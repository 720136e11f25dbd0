/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LD_PRELOAD this into a program that asks for CLOCK_MONOTONIC before and after each unit of its
 * work, as uniprof does around a trace. At its end it writes the times between two questions to the
 * file that STAMPS names, as "NUMBER P10 P50 P90" in us. Times below SHORT_NS lie between two
 * units, not within one, and are left out.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STAMPS_MAX 200000u
#define SHORT_NS   5000u
#define START	   200u /* the first ones are of the program's start */

static uint64_t stamp[STAMPS_MAX];
static unsigned nr;

int clock_gettime(clockid_t id, struct timespec *ret)
{
	static int (*real)(clockid_t, struct timespec *);
	int r;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	r = real(id, ret);
	if (id == CLOCK_MONOTONIC && nr < STAMPS_MAX)
		stamp[nr++] = (uint64_t)ret->tv_sec * 1000000000u + (uint64_t)ret->tv_nsec;
	return r;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

__attribute__((destructor)) static void report(void)
{
	const char *path = getenv("STAMPS");
	FILE *f = path != NULL ? fopen(path, "w") : NULL;
	unsigned n = 0;

	if (f == NULL)
		return;
	for (unsigned i = START; i + 1 < nr; i++) {
		uint64_t ns = stamp[i + 1] - stamp[i];

		if (ns >= SHORT_NS)
			stamp[n++] = ns;
	}
	qsort(stamp, n, sizeof(stamp[0]), ascending);
	if (n != 0)
		(void)fprintf(f, "%u %.2f %.2f %.2f\n", n, (double)stamp[n / 10] / 1e3,
			(double)stamp[n / 2] / 1e3, (double)stamp[n - 1 - n / 10] / 1e3);
	(void)fclose(f);
}
