/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that does the same work in two ways, again and again: below main(), and below 1,000
 * calls. The stack of the second way is some 400 KiB. It prints the CPU time of each, in ns, each
 * tenth of a second of it.
 */
#include <stdio.h>
#include <time.h>

#define CALLS 1000

static unsigned long now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (unsigned long)ts.tv_sec * 1000000000ul + (unsigned long)ts.tv_nsec;
}

__attribute__((noinline)) static void works(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		__asm__ volatile("");
	__asm__ volatile("");
}

__attribute__((noinline)) static int calls(int n)
{
	volatile char room[400];

	room[0] = (char)n;
	if (n == 0)
		works(300000);
	else
		(void)calls(n - 1);
	return room[0];
}

__attribute__((noinline)) static void in_the_depth(void)
{
	(void)calls(CALLS);
	__asm__ volatile("");
}

__attribute__((noinline)) static void at_the_top(void)
{
	works(600000);
	__asm__ volatile("");
}

int main(void)
{
	unsigned long depth = 0, top = 0, told = 0, begin = now(), between, end;

	for (;;) {
		in_the_depth();
		between = now();
		at_the_top();
		end = now();
		depth += between - begin;
		top += end - between;
		begin = end;
		if (end - told < 100000000ul)
			continue;
		told = end;
		(void)printf("%lu %lu\n", depth, top);
		(void)fflush(stdout);
	}
}
