/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the tests of the guest's tracer: a ring in this process, and its contents. */
#ifndef GUESTTRACE_H
#define GUESTTRACE_H

#include <stddef.h>
#include <stdint.h>

#include "guesttrace_work.h"
#include "trace/record.h"
#include "trace/ring.h"
#include "uniscope/trace.h"

#define CPUS_MAX 4

void uni_trace_entry(void);
void uni_trace_entry_only(void);
void uni_trace_entry_caller(void);
void uni_trace_entry_any(void);
void uni_trace_entry_args(void);
void uni_trace_entry_start(void);
void uni_trace_entry_stop(void);
void uni_trace_entry_freeze(void);
void uni_trace_exit(void);
void uni_trace_exit_lite(void);
void uni_trace_exit_min(void);
void uni_trace_exit_any(void);
void uni_trace_exit_value(void);

/* The traced work calls these hooks: the sites of a guest are patched, these jump through a
 * variable. */
extern void (*entry_hook)(void), (*exit_hook)(void);
void work_skip_entry(void);
void work_skip_exit(void);

struct ring_memory {
	void *mem;
	char *start;
	size_t size;
};

extern struct uni_trace_cpu cpus[CPUS_MAX];
#define cpu (cpus[0])

/* Makes this thread CPU `nr` of the tracer. */
void be_cpu(unsigned nr);
/* As a CPU that has no area yet. */
void be_cpu_early(void);
/* Rings of `subs` sub-buffers for nr CPUs; this thread is the first. */
struct ring_memory trace_start_cpus(
	unsigned nr, unsigned subs, enum uni_trace_ring_mode mode, void (*exit)(void));
struct ring_memory trace_start(unsigned subs, enum uni_trace_ring_mode mode, void (*exit)(void));
void trace_end(struct ring_memory *m);

/* The contents of a trace, found by walking its records as the host will. */
struct seen {
	uint64_t entries, exits, leaves, records, syncs;
	uint64_t calls;	    /* entries that no exit will follow */
	uint64_t ext_words; /* that follow extended records */
	uint64_t last;	    /* time */
	uint64_t backwards;
	int64_t depth, lowest, deepest;
};

extern const struct uni_ring_source self_source;
extern const struct uni_ring_info *info; /* of the ring opened last */
struct uni_ring *open_ring(void);
int count(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content);
struct seen read_cpu(unsigned nr, struct uni_ring_stats *stats);
struct seen read_all(struct uni_ring_stats *stats);

/*
 * Instructions until the next interrupt, `mean` on average. With equal gaps, each interrupt could
 * come at the same place of a loop that tries again after an interrupt, for ever.
 */
static inline unsigned long trace_next_gap(uint64_t *seed, unsigned long mean)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
	return 1 + (unsigned long)(*seed >> 33) % (2 * mean - 1);
}

#endif
