/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counts of the guest `traced`, at the symbol lab_traced. Tests judge a tracer by them. Written
 * by the guest, each vCPU its own numbers; read by host tests.
 */
#ifndef LAB_TRACED_H
#define LAB_TRACED_H

#include <stddef.h>
#include <stdint.h>

#define LAB_TRACED_MAGIC 0x6465636172547562ULL
#define LAB_TRACED_FNS	 16
#define LAB_TRACED_CPUS	 4

enum lab_traced_state {
	LAB_TRACED_BEGIN = 0,
	LAB_TRACED_RUNNING = 1,
	LAB_TRACED_DONE = 2, /* all vCPUs; with hold=1 it stays so */
};

struct lab_traced {
	uint64_t magic;
	uint32_t total_size; /* sizeof(struct lab_traced) */
	uint32_t nr_fns;
	uint32_t nr_cpus; /* that run the work */
	uint32_t state;	  /* enum lab_traced_state */
	uint64_t rounds;  /* done by the first vCPU */
	uint64_t sum;	  /* what traced_sum() returned the last time */
	uint64_t pad[3];
	char name[LAB_TRACED_FNS][32]; /* of the functions, as in the symbol table */
	uint64_t calls[LAB_TRACED_CPUS][LAB_TRACED_FNS];
};

_Static_assert(offsetof(struct lab_traced, name) == 64, "layout");
_Static_assert(offsetof(struct lab_traced, calls) == 576, "layout");
_Static_assert(sizeof(struct lab_traced) == 1088, "layout");

#endif
