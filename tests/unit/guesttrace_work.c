/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that counts its own calls; built with the tracer's entry and exit. */
#include "guesttrace_work.h"

__thread unsigned long work_calls;

int work_fib(int n)
{
	work_calls++;
	return n < 2 ? n : work_fib(n - 1) + work_fib(n - 2);
}

static __attribute__((noinline)) int work_leaf(int n)
{
	work_calls++;
	__asm__ volatile("");
	return n + 1;
}

int work_interrupt(int n)
{
	work_calls++;
	return work_leaf(n) + work_leaf(n + 1);
}

/* GCC 12 does not align what is cold; the two bytes see to that it does not happen to be so. */
__asm__(".section .text.unlikely,\"ax\",@progbits\n.balign 16\n.skip 2, 0xcc\n.text\n");

__attribute__((cold)) int work_odd(int n)
{
	work_calls++;
	return work_leaf(n);
}

long work_sum(long a, long b, long c, long d, long e, long f)
{
	work_calls++;
	return a + b * c + d * e + f;
}
