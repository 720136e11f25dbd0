/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GUESTTRACE_WORK_H
#define GUESTTRACE_WORK_H

extern __thread unsigned long work_calls; /* of functions below, each traced */

int work_fib(int n);
int work_interrupt(int n);				       /* three calls */
int work_odd(int n);					       /* not aligned; two calls */
long work_sum(long a, long b, long c, long d, long e, long f); /* one call */

#endif
