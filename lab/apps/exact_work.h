/* SPDX-License-Identifier: BSD-2-Clause */
/* The work that the guest and a Linux process both run. */
#ifndef EXACT_WORK_H
#define EXACT_WORK_H

#include <stdint.h>

#define EXACT_NODES 8

extern uint64_t exact_calls[EXACT_NODES]; /* of exact_node_0 ... */

uint64_t exact_fib(uint64_t n);
uint64_t exact_ack(uint64_t m, uint64_t n);
uint64_t exact_choose(uint64_t n); /* lines that run for n > 100, or n < 3 */
void exact_graph(uint64_t seed, uint64_t rounds);

#endif
