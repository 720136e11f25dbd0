/* SPDX-License-Identifier: BSD-2-Clause */
/* The inline part of lab.h that depends on the architecture. */
#ifndef LAB_X86_64_LAB_ARCH_H
#define LAB_X86_64_LAB_ARCH_H

#include <stddef.h>
#include <stdint.h>

/* x86 keeps stores in order: no more than the compiler's discipline is needed. */
#define LAB_BARRIER()  __asm__ volatile("" ::: "memory")
#define LAB_SAVED_REGS "rbx", "r12", "r13"

/*
 * n turns of exactly 4 instructions each, the same code wherever it is used: time spent is
 * proportional to n. Inline on purpose: the instructions belong to the function that burns.
 */
static inline __attribute__((always_inline)) void lab_burn(uint64_t n)
{
	uint64_t x = n;

	__asm__ volatile("1:	leaq	3(%1), %1\n"
			 "	xorq	%0, %1\n"
			 "	decq	%0\n"
			 "	jnz	1b\n"
			 : "+r"(n), "+r"(x)
			 :
			 : "cc");
}

/* As lab_switch() would have left it; lab_thread_entry finds its call in r12, r13. */
static inline uint64_t lab_first_frame(
	uint64_t top, void (*entry)(void), void (*fn)(void *arg), void *arg)
{
	uint64_t *rsp = (uint64_t *)top;

	*--rsp = 0; /* keeps rsp 16-byte aligned at the call */
	*--rsp = (uint64_t)entry;
	*--rsp = 0; /* rbp */
	*--rsp = 0; /* rbx */
	*--rsp = (uint64_t)fn;
	*--rsp = (uint64_t)arg;
	*--rsp = 0; /* r14 */
	*--rsp = 0; /* r15 */
	return (uint64_t)rsp;
}

static inline void lab_copy(void *dst, const void *src, size_t size)
{
	__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(size) : : "memory");
}

/* By words: a KVM that emulates takes half a microsecond for each turn. */
static inline void lab_fill(void *dst, int c, size_t size)
{
	uint64_t word = (uint8_t)c * 0x0101010101010101ULL;
	size_t words = size / sizeof(word);

	__asm__ volatile("rep stosq" : "+D"(dst), "+c"(words) : "a"(word) : "memory");
	size %= sizeof(word);
	__asm__ volatile("rep stosb" : "+D"(dst), "+c"(size) : "a"(word) : "memory");
}

#endif
