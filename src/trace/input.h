/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace as all its consumers get it: for each CPU its packets (uniscope/trace_abi.h) one after
 * the other. It also has data from the guest's head, and relates counters to host time. A session
 * makes one (recording/call_input.h), tests make their own. The packets may hold anything: reading
 * them is safe, but nobody may change them meanwhile.
 */
#ifndef UNI_TRACE_INPUT_H
#define UNI_TRACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/ring.h"

enum uni_trace_mode {
	/* For guests whose entries do not show it themselves (UNI_TRACE_KIND_CALL): */
	UNI_TRACE_MODE_AUTO,	 /* look at the first packets */
	UNI_TRACE_MODE_GRAPH,	 /* calls and returns, some calls maybe without an end (lite) */
	UNI_TRACE_MODE_FUNCTION, /* calls only: no stacks, no durations */
};

/* At this value of a CPU's counter it was that time on the host's CLOCK_MONOTONIC. */
struct uni_trace_clock {
	uint64_t tsc, ns;
	uint64_t error_ns; /* at most so far off */
};

/*
 * One CPU. A packet is packet_size bits long (struct uni_trace_sub); when it is stored, it may be
 * cut to its content. Its `lost` counts all events of this CPU that are missing until its end. Some
 * had no room in the guest, others were overwritten before the host read them (each word counts as
 * one event).
 */
struct uni_trace_stream {
	const void *data; /* 8-byte aligned; borrowed */
	size_t size;
	struct uni_trace_clock clock;
};

/* Properties of a guest's thread besides the number in switch records. */
struct uni_trace_thread_name {
	uint64_t id;	  /* as in switch records */
	uint64_t number;  /* the guest's own; of none: the id */
	const char *name; /* clean; "" none */
};

struct uni_trace_input {
	struct uni_ring_info info;	    /* nr_cpus: of `cpu` */
	const struct uni_trace_stream *cpu; /* borrowed, as all that is pointed to */
	enum uni_trace_mode mode;
	const struct uni_trace_thread_name *thread;
	size_t nr_threads;
	bool live; /* more may come when these are read: uni_calls_more() */
};

#define UNI_TRACE_HZ_MIN 1000000 /* below it is no counter's rate, and ns would not fit */

/* Counter differences to ns: 1 cycle counts as 1 ns if the counter's rate is not known. */
struct uni_trace_rate {
	uint64_t mult; /* ns << 32 a cycle */
};

static inline struct uni_trace_rate uni_trace_rate(const struct uni_trace_input *in)
{
	uint64_t hz = in->info.tsc_hz;

	if (hz < UNI_TRACE_HZ_MIN)
		return (struct uni_trace_rate){ UINT64_C(1) << 32 };
	return (struct uni_trace_rate){ (uint64_t)(((unsigned __int128)1000000000 << 32) / hz) };
}

static inline uint64_t uni_trace_ns(struct uni_trace_rate r, uint64_t cycles)
{
	return (uint64_t)((unsigned __int128)cycles * r.mult >> 32);
}

/* Host time of a counter's value. */
static inline uint64_t uni_trace_clock_ns(
	const struct uni_trace_clock *c, struct uni_trace_rate rate, uint64_t tsc)
{
	return tsc >= c->tsc ? c->ns + uni_trace_ns(rate, tsc - c->tsc)
			     : c->ns - uni_trace_ns(rate, c->tsc - tsc);
}

/* The difference from this CPU's counter to CPU 0's at the same moment, by their clocks. 0: they
 * agree within their errors, so it is one counter. */
uint64_t uni_trace_offset(const struct uni_trace_input *in, unsigned cpu);

/* Host time of the first record; 0: there is none. */
uint64_t uni_trace_begin_ns(const struct uni_trace_input *in);

/* Host time of the last record that is more than a time; 0: there is none. */
uint64_t uni_trace_end_ns(const struct uni_trace_input *in);

/* A packet of a stream, checked: everything up to `content` may be read. */
struct uni_trace_packet {
	const struct uni_trace_sub *head;
	size_t content;	      /* bytes that are valid, header included */
	size_t next;	      /* offset of the next packet */
	uint64_t lapped;      /* events missing before it; if that is not known, words */
	uint64_t lost;	      /* events missing within it or right after it */
	uint64_t words_after; /* as words_before of the next packet, if nothing is missing */
	uint64_t extra_after; /* of these: no events */
	uint64_t lost_total;  /* its header's */
};

/* Bytes of the packet that begins like this, by its own header; 0: invalid. */
size_t uni_trace_packet_size(const struct uni_trace_sub *s);

/* The packet at *offset or the next valid one. prev: the one before, NULL at first. Returns 1, or 0
 * at the end. Adds the number of skipped bytes to *damaged_ret. */
int uni_trace_packet(const struct uni_trace_input *in, unsigned cpu, size_t offset,
	const struct uni_trace_packet *prev, struct uni_trace_packet *ret, uint64_t *damaged_ret);

/* UNI_TRACE_MODE_GRAPH or _FUNCTION. */
enum uni_trace_mode uni_trace_mode_of(const struct uni_trace_input *in);

/* -UNI_EINVAL: an input that its maker got wrong (alignment, number of CPUs). */
int uni_trace_input_check(const struct uni_trace_input *in, struct uni_err *err);

#endif
