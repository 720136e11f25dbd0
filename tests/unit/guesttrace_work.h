/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GUESTTRACE_WORK_H
#define GUESTTRACE_WORK_H

extern unsigned long work_calls; /* of functions below, each traced */

int work_fib(int n);
int work_interrupt(int n); /* three calls */

#endif
