/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of lab/apps/exact_work.c in a Linux process, for callgrind and gcov. */
#include <stdio.h>
#include <stdlib.h>

#include "exact_work.h"

int main(int argc, char **argv)
{
	uint64_t fib = argc > 1 ? strtoull(argv[1], NULL, 10) : 20;
	uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 200;

	printf("fib %lu, ack %lu\n", exact_fib(fib), exact_ack(2, 9));
	exact_graph(1, rounds);
	for (unsigned i = 0; i < 10; i++)
		exact_choose(i);
	for (unsigned i = 0; i < EXACT_NODES; i++)
		printf("node_%u %lu\n", i, exact_calls[i]);
	return 0;
}
