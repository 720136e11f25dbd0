/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that dies in a known chain: main, crash_outer, four of crash_inner. */
#include <stdlib.h>

void crash_inner(unsigned depth);
void crash_outer(void);

static volatile unsigned turns;
static void (*volatile die)(void) = abort;

__attribute__((noinline)) void crash_inner(unsigned depth)
{
	if (depth == 0) {
		die();
		return;
	}
	turns = depth;
	crash_inner(depth - 1);
	turns++;
}

__attribute__((noinline)) void crash_outer(void)
{
	crash_inner(3);
	turns++;
}

int main(void)
{
	crash_outer();
	return (int)turns;
}
