/* SPDX-License-Identifier: BSD-2-Clause */
/* Host time, nanoseconds. CLOCK_MONOTONIC is the one clock of a recording. */
#ifndef UNI_BASE_CLOCK_H
#define UNI_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define UNI_NSEC_PER_SEC  1000000000ull
#define UNI_NSEC_PER_MSEC 1000000ull
#define UNI_NSEC_PER_USEC 1000ull

static inline uint64_t uni_timespec_ns(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * UNI_NSEC_PER_SEC + (uint64_t)ts->tv_nsec;
}

static inline uint64_t uni_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return uni_timespec_ns(&ts);
}

/* The time that this thread ran: a busy host does not make it longer. */
static inline uint64_t uni_thread_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return uni_timespec_ns(&ts);
}

static inline uint64_t uni_realtime_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return uni_timespec_ns(&ts);
}

/* CPU time of all threads of a process; 0: not known. */
static inline uint64_t uni_process_cpu_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
		return 0;
	return uni_timespec_ns(&ts);
}

static inline struct timespec uni_ns_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / UNI_NSEC_PER_SEC),
		.tv_nsec = (long)(ns % UNI_NSEC_PER_SEC) };
}

#endif
