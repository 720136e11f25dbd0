/* SPDX-License-Identifier: BSD-2-Clause */
/* The inline part of lab.h that depends on the architecture. */
#ifndef LAB_AARCH64_LAB_ARCH_H
#define LAB_AARCH64_LAB_ARCH_H

#include <stddef.h>
#include <stdint.h>

#define LAB_BARRIER()  __asm__ volatile("dmb ish" ::: "memory")
#define LAB_SAVED_REGS "x19", "x20", "x21"

/*
 * n turns of exactly 4 instructions each, the same code wherever it is used: time spent is
 * proportional to n. Inline on purpose: the instructions belong to the function that burns.
 */
static inline __attribute__((always_inline)) void lab_burn(uint64_t n)
{
	uint64_t x = n;

	__asm__ volatile("1:	add	%1, %1, #3\n"
			 "	eor	%1, %1, %0\n"
			 "	subs	%0, %0, #1\n"
			 "	b.ne	1b\n"
			 : "+r"(n), "+r"(x)
			 :
			 : "cc");
}

/* As lab_switch() would have left it; lab_thread_entry finds its call in x19, x20. */
static inline uint64_t lab_first_frame(
	uint64_t top, void (*entry)(void), void (*fn)(void *arg), void *arg)
{
	uint64_t *sp = (uint64_t *)(top - 96);

	for (unsigned i = 0; i < 12; i++)
		sp[i] = 0;
	sp[1] = (uint64_t)entry;
	sp[2] = (uint64_t)fn;
	sp[3] = (uint64_t)arg;
	return (uint64_t)sp;
}

static inline void lab_copy(void *dst, const void *src, size_t size)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	for (; size != 0; size--) {
		*d++ = *s++;
		__asm__ volatile("" : "+r"(d)); /* no call of memcpy is made of it */
	}
}

static inline void lab_fill(void *dst, int c, size_t size)
{
	uint8_t *d = dst;

	for (; size != 0; size--) {
		*d++ = (uint8_t)c;
		__asm__ volatile("" : "+r"(d));
	}
}

#endif
