/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that counts its calls; built for each WAY with the flags of that one. */
#include "guesttrace_fallback.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)
#define NAME(name)  JOIN(WAY, name)

unsigned long NAME(calls);

int NAME(fib)(int n)
{
	NAME(calls)++;
	return n < 2 ? n : NAME(fib)(n - 1) + NAME(fib)(n - 2);
}

int NAME(deep)(int n)
{
	NAME(calls)++;
	return n == 0 ? 0 : 1 + NAME(deep)(n - 1);
}

void NAME(leave)(int n, jmp_buf out)
{
	NAME(calls)++;
	if (n == 0)
		longjmp(out, 1);
	NAME(leave)(n - 1, out);
	__asm__ volatile("");
}
