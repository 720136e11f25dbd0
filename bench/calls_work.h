/* SPDX-License-Identifier: BSD-2-Clause */
/* Three programs with many calls; calls_work.c is built once for each PREFIX. */
#ifndef CALLS_WORK_H
#define CALLS_WORK_H

#define NR_WORK 3

typedef unsigned long work_fn(void);

#define DECLARE(prefix)                    \
	unsigned long prefix##_fib(void);  \
	unsigned long prefix##_json(void); \
	unsigned long prefix##_sort(void)

DECLARE(plain);
DECLARE(traced);

#endif
