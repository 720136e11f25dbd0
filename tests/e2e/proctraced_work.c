/* SPDX-License-Identifier: BSD-2-Clause */
/* The traced part of proctraced.c: compiled with the tracer's flags. */
#include <stdint.h>

extern volatile uint64_t count_leaf, count_fib, count_round;

uint64_t work_leaf(uint64_t n);
uint64_t work_fib(uint64_t n);
uint64_t work_round(uint64_t n);

__attribute__((noinline)) uint64_t work_leaf(uint64_t n)
{
	count_leaf++;
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

__attribute__((noinline)) uint64_t work_fib(uint64_t n)
{
	count_fib++;
	return n < 2 ? work_leaf(n) : work_fib(n - 1) + work_fib(n - 2);
}

__attribute__((noinline)) uint64_t work_round(uint64_t n)
{
	count_round++;
	return work_fib(10) + n;
}
