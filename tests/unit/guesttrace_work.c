/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that counts its own calls; built with the tracer's entry and exit. */
#include "guesttrace_work.h"

unsigned long work_calls;

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
