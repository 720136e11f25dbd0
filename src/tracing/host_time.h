/* SPDX-License-Identifier: BSD-2-Clause */
/* How long the host had run a guest, at moments of a recording. This distinguishes a thread that
 * computes from one whose host ran something else. */
#ifndef UNI_TRACING_HOST_TIME_H
#define UNI_TRACING_HOST_TIME_H

#include "recording/traced.h"

/* All vCPUs together, ns. */
struct uni_thost_sum {
	uint64_t on_ns, ready_ns;
};

struct uni_thost {
	struct uni_record_on_cpu all;	 /* when it is full, every second one is dropped */
	uint64_t next_ns, each_ns;	 /* 0: at once, and often */
	struct uni_thost_sum first, sum; /* sum: since the first look */
	uint64_t sum_next_ns;
	bool has_first;
};

/* Looks, if it is time: `all` is of a guest with one vCPU, `sum` of any whose target has the times.
 * Cheap. */
void uni_thost_look(struct uni_thost *h, struct uni_target *t);
/* The same as if that had been seen; ns rises. */
void uni_thost_add(struct uni_thost *h, uint64_t ns, uint64_t on_ns, uint64_t stolen_ns);
/* data: /proc/stat, 0 at its end. False: it does not say. */
bool uni_thost_stolen(const char *text, uint64_t ticks_a_second, uint64_t *ret);

#endif
