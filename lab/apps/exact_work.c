/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions whose calls and instructions others can count as well: no machine, no C library. */
#include "exact_work.h"

#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noinline, noclone, noipa))
#endif

uint64_t exact_calls[EXACT_NODES];
static volatile uint64_t sink;

KEEP uint64_t exact_fib(uint64_t n)
{
	return n < 2 ? n : exact_fib(n - 1) + exact_fib(n - 2);
}

KEEP uint64_t exact_ack(uint64_t m, uint64_t n)
{
	if (m == 0)
		return n + 1;
	return n == 0 ? exact_ack(m - 1, 1) : exact_ack(m - 1, exact_ack(m, n - 1));
}

/* A graph whose edges chance chooses: each function counts itself, calls up to three others. */
#define NODE(i)                                                                             \
	KEEP static uint64_t exact_node_##i(uint64_t x, uint64_t depth)                     \
	{                                                                                   \
		exact_calls[i]++;                                                           \
		x = x * 6364136223846793005u + 1442695040888963407u + (i);                  \
		for (uint64_t n = depth == 0 ? 0 : x >> 62; n != 0; n--)                    \
			x = nodes[x >> (32 + n) & (EXACT_NODES - 1)](x ^ n, depth - 1) + n; \
		sink = x;                                                                   \
		return x;                                                                   \
	}

static uint64_t (*const nodes[EXACT_NODES])(uint64_t x, uint64_t depth);
NODE(0)
NODE(1)
NODE(2)
NODE(3)
NODE(4)
NODE(5)
NODE(6)
NODE(7)
static uint64_t (*const nodes[EXACT_NODES])(uint64_t x, uint64_t depth) = { exact_node_0,
	exact_node_1, exact_node_2, exact_node_3, exact_node_4, exact_node_5, exact_node_6,
	exact_node_7 };

KEEP uint64_t exact_choose(uint64_t n)
{
	if (n > 100) {
		sink = 100;
		sink = n;
	}
	if (n < 3)
		sink = n;
	return n + 3;
}

KEEP void exact_graph(uint64_t seed, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		seed = nodes[seed >> 40 & (EXACT_NODES - 1)](seed + i, 24);
}
