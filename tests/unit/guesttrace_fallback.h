/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GUESTTRACE_FALLBACK_H
#define GUESTTRACE_FALLBACK_H

#include <setjmp.h>

#define DECLARE(way)                                     \
	extern unsigned long way##_calls;                \
	int way##_fib(int n);                            \
	int way##_deep(int n);		     /* n + 1 */ \
	void way##_leave(int n, jmp_buf out) /* n + 1 calls that never return */

DECLARE(instrument);
DECLARE(fentry);
DECLARE(mcount);

#endif
