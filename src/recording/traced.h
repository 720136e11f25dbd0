/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Function tracing in a session: the description of a guest's rings in session.json, and the
 * streams guest-N/events-vcpuN, whose packets are the guest's sub-buffers.
 * docs/formats/session.md.
 */
#ifndef UNI_RECORDING_TRACED_H
#define UNI_RECORDING_TRACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "backend/target.h"
#include "trace/ring.h"

/* How a CPU's counter goes with the host's CLOCK_MONOTONIC: at `cycles` it was `ns`. */
struct uni_record_clock {
	uint64_t cycles, ns;
	uint64_t hz;	   /* cycles a second, not 0 */
	uint64_t error_ns; /* the relation is off by no more; UINT64_MAX: nothing is known */
	char source[24];   /* "tsc-offset", "ring", "guest", "none": how it was found */
};

/*
 * Numbers of one CPU's trace. Words are the 8-byte units of records: a function's event is one,
 * unless it has arguments. For lost records, their words are counted, and how many of these are no
 * events. The guest wrote words + lost_words.
 */
struct uni_record_trace_cpu {
	uint64_t nr_subs;	 /* of its ring */
	uint64_t packets, words; /* in the stream */
	uint64_t events, others; /* of these words: calls and returns; switches and the like */
	uint64_t told;		 /* of the others: events of threads and promises */
	uint64_t lost;		 /* events that found no room in the ring */
	uint64_t after_freeze;	 /* that came after a trigger had stopped it: not lost */
	uint64_t lost_words;	 /* overwritten before they were read */
	uint64_t lost_extra;	 /* of these: no events; 0 where info.counts is not set */
	uint64_t lapped, torn;	 /* sub-buffers that this were; torn: noticed after the copy */
	struct uni_record_clock clock;
};

#define UNI_RECORD_ON_CPU 512

/* Checks of the time that the host had run a guest with one vCPU: each may be a host tick late. */
struct uni_record_on_cpu {
	uint32_t nr;
	struct {
		uint64_t ns;	    /* when, on the session's clock */
		uint64_t on_ns;	    /* its thread had a CPU of the host */
		uint64_t stolen_ns; /* a hypervisor below the host took from all its CPUs */
	} at[UNI_RECORD_ON_CPU];
};

struct uni_record_trace {
	uint32_t nr_cpus; /* 0: this guest was not traced */
	bool snapshot;	  /* of the flight recorder, not streamed */
	uint64_t end_ns;  /* on the session's clock: when nothing was recorded any more; 0: it is
			     not known, or CPU 0's counter cannot be compared with that clock */
	struct uni_ring_info info;
	uint32_t nr_functions, nr_sites; /* that were patched for it; 0: unknown */
	char mode[16];			 /* "graph", "lite", "function"; "" unknown */
	char filter[256];		 /* which functions; "" unknown */
	char only[256]; /* which of their calls, "f(len>1000) --depth 3"; "" all, or unknown */
	/* array of nr_cpus; owned, unless the holder says otherwise */
	struct uni_record_trace_cpu *cpu;
	struct uni_record_on_cpu on_cpu;
	/* While it was streamed, all vCPUs together; both 0: not known. */
	uint64_t host_on_ns;	/* they had a CPU of the host */
	uint64_t host_ready_ns; /* they could run, and the host ran something else */
};

/* Replaces the array by a zeroed one for that many CPUs. False: out of memory; it has none then. */
bool uni_record_trace_room(struct uni_record_trace *t, uint32_t nr_cpus);
/* All of it into *to, which has its own. False: out of memory, and *to has no CPUs. */
bool uni_record_trace_copy(struct uni_record_trace *to, const struct uni_record_trace *from);
void uni_record_trace_deinit(struct uni_record_trace *t);

/* A guest's counter at t cycles on the host's clock, ns; saturates. */
uint64_t uni_record_clock_ns(const struct uni_record_clock *c, uint64_t cycles);

/* Events that are missing in the stream of this CPU. It is an upper limit if any were overwritten
 * and the guest is an older one that counted only their words. */
static inline uint64_t uni_record_trace_lost(const struct uni_record_trace_cpu *c)
{
	return c->lost + c->lost_words -
	       (c->lost_extra < c->lost_words ? c->lost_extra : c->lost_words);
}

/* Were some overwritten of which the words are known only? */
static inline bool uni_record_trace_lost_at_most(const struct uni_record_trace *t)
{
	for (uint32_t i = 0; !t->info.counts && i < t->nr_cpus; i++) {
		if (t->cpu[i].lost_words != 0)
			return true;
	}
	return false;
}

#endif
