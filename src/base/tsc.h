/* SPDX-License-Identifier: BSD-2-Clause */
/* This host's time-stamp counter. */
#ifndef UNI_BASE_TSC_H
#define UNI_BASE_TSC_H

#include <stdint.h>

#if defined(__x86_64__)
static inline uint64_t uni_host_tsc(void)
{
	uint32_t lo, hi;

	__asm__ volatile("lfence; rdtsc" : "=a"(lo), "=d"(hi)::"memory");
	return (uint64_t)hi << 32 | lo;
}
#else
/* 0: this host has no counter that a guest would share. */
static inline uint64_t uni_host_tsc(void)
{
	return 0;
}
#endif

#endif
