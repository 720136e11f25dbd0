/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time that passes only when the code under test looks at it or sleeps. Each thread has a time of
 * its own. These functions stand in for the C library's. Nothing depends on the host's other work.
 * A test makes a wake-up late if it wants one.
 */
#ifndef UNI_TESTS_FAKE_TIME_H
#define UNI_TESTS_FAKE_TIME_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define FAKE_LOOK_NS 1000u /* that one look at the clock takes */

static _Thread_local uint64_t fake_ns = 1000000000;
static uint64_t fake_late_ns, fake_seed = 1;

static inline uint64_t fake_random(void)
{
	fake_seed = fake_seed * 6364136223846793005u + 1442695040888963407u;
	return fake_seed >> 33;
}

/* From now on each sleep may end up to late_ns too late, which the seed decides. */
static inline void fake_time_begin(uint64_t seed, uint64_t late_ns)
{
	fake_seed = seed;
	fake_late_ns = late_ns;
}

static inline void fake_sleep_until(uint64_t ns)
{
	if (ns > fake_ns)
		fake_ns = ns;
	/* Most are on time, as on a host that is busy now and then. */
	if (fake_late_ns != 0 && fake_random() % 4 == 0)
		fake_ns += fake_random() % fake_late_ns;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	fake_ns += FAKE_LOOK_NS;
	*ret = (struct timespec){ (time_t)(fake_ns / 1000000000), (long)(fake_ns % 1000000000) };
	return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *ts, struct timespec *left)
{
	uint64_t ns = (uint64_t)ts->tv_sec * 1000000000 + (uint64_t)ts->tv_nsec;

	fake_sleep_until((flags & TIMER_ABSTIME) != 0 ? ns : fake_ns + ns);
	return 0;
}

int nanosleep(const struct timespec *ts, struct timespec *left)
{
	return clock_nanosleep(CLOCK_MONOTONIC, 0, ts, left);
}

/* This process had a CPU for a tenth of the time that passed. */
int getrusage(__rusage_who_t who, struct rusage *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->ru_utime.tv_sec = (time_t)(fake_ns / 10 / 1000000000);
	ret->ru_utime.tv_usec = (suseconds_t)(fake_ns / 10 / 1000 % 1000000);
	return 0;
}

#endif
