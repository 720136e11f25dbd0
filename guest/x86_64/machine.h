/* SPDX-License-Identifier: BSD-2-Clause */
/* The few instructions that the ring needs of an x86_64. None locks the bus: a ring belongs to one
 * CPU, and one instruction is whole to its interrupts (SDM vol. 3, 9.1.1 is about other CPUs). */
#ifndef UNI_GUEST_MACHINE_H
#define UNI_GUEST_MACHINE_H

#include <stdint.h>

#define UNI_TRACE_MACHINE 62 /* EM_X86_64 */

static inline uint64_t uni_machine_time(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi)::"memory");
	return (uint64_t)hi << 32 | lo;
}

/* Returns whether *p was `old` and is `new` now. */
static inline int uni_machine_swap(uint64_t *p, uint64_t old, uint64_t new)
{
	uint8_t done;

	__asm__ volatile("cmpxchgq %3, %1; sete %0"
			 : "=q"(done), "+m"(*p), "+a"(old)
			 : "r"(new)
			 : "memory", "cc");
	return done;
}

/* Adds n to *p and returns the value before. */
static inline uint64_t uni_machine_fetch_add(uint64_t *p, uint64_t n)
{
	__asm__ volatile("xaddq %0, %1" : "+r"(n), "+m"(*p)::"memory", "cc");
	return n;
}

/* Returns whether the sum is zero now. */
static inline int uni_machine_add(int32_t *p, int32_t n)
{
	uint8_t zero;

	__asm__ volatile("addl %2, %1; sete %0" : "=q"(zero), "+m"(*p) : "ri"(n) : "memory", "cc");
	return zero;
}

static inline void uni_machine_count(uint64_t *p)
{
	__asm__ volatile("incq %0" : "+m"(*p)::"memory", "cc");
}

/* Stores before it are seen before stores after it. x86 does so itself; this stops the compiler. */
static inline void uni_machine_release(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Stores before it are seen before loads after it are made. */
static inline void uni_machine_full(void)
{
	__asm__ volatile("mfence" ::: "memory");
}

#endif
