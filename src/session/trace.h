/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Function tracing in a session: what session.json says of a guest's rings, and the streams
 * guest-N/events-vcpuN, whose packets are the guest's sub-buffers. docs/formats/session.md.
 */
#ifndef UNI_SESSION_TRACE_H
#define UNI_SESSION_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "target/target.h"
#include "trace/ring.h"

/* How a CPU's counter goes with the host's CLOCK_MONOTONIC: at `cycles` it was `ns`. */
struct uni_record_clock {
	uint64_t cycles, ns;
	uint64_t hz;	   /* cycles a second, not 0 */
	uint64_t error_ns; /* the relation is off by no more; UINT64_MAX: nothing is known */
	char source[24];   /* "tsc-offset", "ring", "guest", "none": how it was found */
};

/* What is known of one CPU's trace. Words are the 8-byte units of records: one a function event. */
struct uni_record_trace_cpu {
	uint64_t nr_subs;	 /* of its ring */
	uint64_t packets, words; /* in the stream */
	uint64_t lost;		 /* events that found no room in the ring */
	uint64_t lost_words;	 /* overwritten before they were read */
	uint64_t lapped, torn;	 /* sub-buffers that this were; torn: noticed after the copy */
	struct uni_record_clock clock;
};

struct uni_record_trace {
	uint32_t nr_cpus; /* 0: this guest was not traced */
	bool snapshot;	  /* of the flight recorder, not streamed */
	struct uni_ring_info info;
	uint32_t nr_functions, nr_sites; /* that were patched for it; 0: unknown */
	char mode[16];			 /* "graph", "lite", "function"; "" unknown */
	char filter[256];		 /* which functions; "" unknown */
	struct uni_record_trace_cpu cpu[UNI_VCPU_MAX];
};

/* A guest's counter at t cycles on the host's clock, ns; saturates. */
uint64_t uni_record_clock_ns(const struct uni_record_clock *c, uint64_t cycles);

/* Events that are not in the stream of this CPU. */
static inline uint64_t uni_record_trace_lost(const struct uni_record_trace_cpu *c)
{
	return c->lost + c->lost_words;
}

#endif
