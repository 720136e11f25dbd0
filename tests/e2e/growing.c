/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growing: a VMM that plugs in a second vCPU, with memory, when it is told to. Prints its process
 * id; the first line on standard input is for the vCPU, the end of it for the end.
 */
#include <stdio.h>

#include "tinyvmm.h"

int main(void)
{
	struct tiny t;

	if (!tiny_start(&t, TINY_GROWS, 1)) {
		(void)fprintf(stderr, "no VM can be made here\n");
		return 77;
	}
	(void)printf("%d\n", (int)t.pid);
	(void)fflush(stdout);
	if (getchar() != EOF)
		atomic_store(&t.shared->wake, true);
	while (getchar() != EOF)
		;
	tiny_end(&t);
	return 0;
}
