/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a guest's trace rings (uniscope/trace_abi.h) while the guest writes them. Nothing is
 * written to the guest. Sub-buffers are copied, then validated, then passed on: later writes of the
 * guest change nothing. A malicious guest can only spoil its own trace: the geometry is read once,
 * and the size of the ring bounds the work per poll. The guest's memory bounds the rings: they are
 * apart, and together not larger.
 */
#ifndef UNI_TRACE_RING_H
#define UNI_TRACE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "uniscope/trace_abi.h"

#define UNI_RING_CPUS_MAX 1024
#define UNI_RING_SUBS_MAX (1u << 20) /* of one CPU: 64 GiB */

/* Guest memory by virtual address. Returns 0, or -UNI_E* with buf undefined. */
struct uni_ring_source {
	int (*read)(void *ctx, uint64_t va, void *buf, size_t len);
	void *ctx;
	/* Optional: an aligned word by an acquire load, of memory that is mapped here. NULL:
	 * read(), and a fence after it. */
	int (*load)(void *ctx, uint64_t va, uint64_t *ret);
	uint64_t memory_bytes; /* the guest has no more; 0: not known */
	uint64_t counter_hz;   /* for a head without it; 0: not known */
};

struct uni_ring; /* opaque */

struct uni_ring_info {
	uint32_t nr_cpus, machine, ring_mode;
	uint64_t text_window; /* upper half of traced functions' addresses */
	uint64_t tsc_hz;      /* 0: not known */
	uint64_t hooks;	      /* address of struct uni_trace_hooks */
	uint64_t text_rules;  /* of struct uni_trace_text_rules; 0: it copies no text */
	uint64_t conditions;  /* of struct uni_trace_conditions; 0: it heeds none */
	uint64_t reads;	      /* of struct uni_trace_reads; 0: it reads no variables */
	bool tells_gaps;      /* UNI_TRACE_TELLS_GAPS */
	bool tells_sessions;  /* UNI_TRACE_TELLS_SESSIONS */
	bool keeps_promises;  /* UNI_TRACE_KEEPS_PROMISES */
	bool boots;	      /* UNI_TRACE_BOOTS */
	uint8_t uuid[16], kinds[16];
	bool counts; /* packets have the number of events before them, not only words */
};

/* For one CPU. Words are the 8-byte units of records: one for each function event. */
struct uni_ring_stats {
	uint64_t packets, words; /* passed on */
	uint64_t lapped;	 /* sub-buffers overwritten before they were read */
	uint64_t torn;		 /* of these, noticed after the copy */
	uint64_t lapped_words;	 /* their words, as far as later packets show */
	uint64_t guest_lost;	 /* events that the guest itself had no room for */
	uint64_t after_freeze;	 /* and that came after the ring was frozen; of a drained ring */
};

/* Checks a head's first UNI_TRACE_HEAD_OLD bytes: a known version, and a sufficient size. */
static inline bool uni_ring_version_ok(const struct uni_trace_head *h)
{
	return (h->version == UNI_TRACE_VERSION && h->size >= sizeof(*h)) ||
	       (h->version == UNI_TRACE_VERSION_OLD && h->size >= UNI_TRACE_HEAD_OLD);
}

/* head: address of the guest's uni_trace_head. The source must outlive the ring. UNI_EFORMAT: no
 * ring there, or a malformed one; the message names the error. */
int uni_ring_open(const struct uni_ring_source *source, uint64_t head, struct uni_ring **ret,
	struct uni_err *err);
void uni_ring_close(struct uni_ring *r); /* NULL-safe */
const struct uni_ring_info *uni_ring_info(const struct uni_ring *r);
uint64_t uni_ring_nr_subs(const struct uni_ring *r, unsigned cpu);
/* Address of its struct uni_trace_cpu. */
uint64_t uni_ring_area(const struct uni_ring *r, unsigned cpu);
const struct uni_ring_stats *uni_ring_stats(const struct uni_ring *r, unsigned cpu);

/* packet: UNI_TRACE_SUB_SIZE bytes, a copy; content: its valid bytes, header included. A negative
 * return ends the poll and is returned. */
typedef int (*uni_ring_packet_fn)(
	void *arg, unsigned cpu, const struct uni_trace_sub *packet, size_t content);

/* How far a CPU has written. */
struct uni_ring_now {
	uint64_t seq;	 /* of the sub-buffer that it writes */
	uint64_t words;	 /* of records, since the boot */
	uint64_t extra;	 /* of these: no events (extra_before); 0 where info.counts is not set */
	uint64_t lost;	 /* events that found no room, since the boot */
	uint64_t time;	 /* of the newest record, or when the sub-buffer was begun */
	uint64_t before; /* the same of the record before it; 0: not known */
	bool timed;	 /* it is that of a record */
	bool sure;  /* it is the newest: none is being written, or was overwritten while read */
	bool whole; /* no record of it is reserved and not written */
};
int uni_ring_now(struct uni_ring *r, unsigned cpu, struct uni_ring_now *ret);

/* Skips everything written until now: it is neither passed on nor counted. */
int uni_ring_skip(struct uni_ring *r, unsigned cpu, struct uni_ring_now *ret);

/* From now on polls and drains skip records from before this session, by the session number in the
 * records (info.tells_sessions). Such records count as neither passed on nor lost. */
void uni_ring_only(struct uni_ring *r, uint32_t session);
/* The beginning of the session, in the packet that begins with sub-buffer `seq`. */
struct uni_ring_from {
	bool found; /* false: its first records were overwritten, or there are none */
	uint64_t seq, words, extra, lost, time; /* as struct uni_ring_now */
};
const struct uni_ring_from *uni_ring_from(const struct uni_ring *r, unsigned cpu);
/* Has it come to a record of the session? Also if none is asked for. */
bool uni_ring_has(const struct uni_ring *r, unsigned cpu);

/*
 * Sets a function that is called before each sub-buffer. If it returns true, polls and drains end
 * with -UNI_EBUDGET; a later call goes on. Otherwise the guest could make them last as long as it
 * likes, by the size of its rings and its write position. `slow`: for a ring behind a slow line.
 * over() is then also called during a copy; a copy that is given up is made again later. NULL, the
 * default: never ends them.
 */
void uni_ring_until(struct uni_ring *r, bool slow, bool (*over)(void *ctx), void *ctx);

/* From now on polls skip a sub-buffer that a writer holds open once two newer ones were begun, not
 * half a ring. For use before the last polls, so that little is left to uni_ring_drain(). */
void uni_ring_hurry(struct uni_ring *r);

/*
 * Passes on every sub-buffer of this CPU that was closed since the last poll, in order; the first
 * time, all that the ring holds. It skips only data that the guest overwrites meanwhile, or has
 * overwritten. After an overwrite it skips up to a quarter of the ring, to stay ahead of the
 * guest.
 */
int uni_ring_poll(struct uni_ring *r, unsigned cpu, uni_ring_packet_fn fn, void *arg);

/*
 * Passes on the present records of the current sub-buffer without consuming it. A later call passes
 * them on again, with newer ones, and so does a poll when the sub-buffer is closed. Passes on
 * nothing if a reserved record is unwritten, or while older sub-buffers wait for a poll. Calls at
 * the end that were only begun are left out, because the guest may still take them back. `entries`:
 * it never does, because it records nothing else (UNI_TRACE_FUNCTION).
 */
int uni_ring_peek(struct uni_ring *r, unsigned cpu, bool entries, uni_ring_packet_fn fn, void *arg);

/* The same without the newest entries, but consumes the records: later calls pass on the records
 * after them, as a packet of its own. For a guest that fills its sub-buffers slowly. */
int uni_ring_take(struct uni_ring *r, unsigned cpu, uni_ring_packet_fn fn, void *arg);

/* For use after the last poll, when the guest is stopped or dead: also passes on open sub-buffers.
 * A record that a stopped writer reserved but did not write ends them. In unchanging memory this
 * skips only unreadable parts (UNI_EFAULT, UNI_ERANGE), which count as overwritten. */
int uni_ring_drain(struct uni_ring *r, unsigned cpu, uni_ring_packet_fn fn, void *arg);

#endif
