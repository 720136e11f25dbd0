/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a guest's trace rings (uniscope/trace_abi.h) while the guest writes them. Nothing is
 * written to the guest. Sub-buffers are copied, then validated, then given out: what the guest does
 * to them afterwards changes nothing. A guest that lies can only spoil its own trace: the geometry
 * is captured once, and work per poll is bounded by the size of the ring.
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
	 * read(), and a fence behind it. */
	int (*load)(void *ctx, uint64_t va, uint64_t *ret);
};

struct uni_ring; /* opaque */

struct uni_ring_info {
	uint32_t nr_cpus, machine, ring_mode;
	uint64_t text_window; /* upper half of traced functions' addresses */
	uint64_t tsc_hz;      /* 0: not known */
	uint64_t hooks;	      /* address of struct uni_trace_hooks */
	bool tells_gaps;      /* UNI_TRACE_TELLS_GAPS */
	bool tells_sessions;  /* UNI_TRACE_TELLS_SESSIONS */
	bool keeps_promises;  /* UNI_TRACE_KEEPS_PROMISES */
	uint8_t uuid[16], kinds[16];
	bool counts; /* packets tell how many events were before them, not words alone */
};

/* Of one CPU. Words are the 8-byte units of records: one a function event. */
struct uni_ring_stats {
	uint64_t packets, words; /* given out */
	uint64_t lapped;	 /* sub-buffers overwritten before they were read */
	uint64_t torn;		 /* of these, noticed after the copy */
	uint64_t lapped_words;	 /* their words, as far as later packets tell */
	uint64_t guest_lost;	 /* events that the guest itself had no room for */
	uint64_t after_freeze;	 /* and that came after the ring was frozen; of a drained ring */
};

/* Of a head's first UNI_TRACE_HEAD_OLD bytes: a version that is known, and large enough. */
static inline bool uni_ring_version_ok(const struct uni_trace_head *h)
{
	return (h->version == UNI_TRACE_VERSION && h->size >= sizeof(*h)) ||
	       (h->version == UNI_TRACE_VERSION_OLD && h->size >= UNI_TRACE_HEAD_OLD);
}

/* head: address of the guest's uni_trace_head. The source must outlive the ring. UNI_EFORMAT: no
 * ring there, or one that is malformed; the message says in what. */
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

/* Leaves out what was written until now: it is neither given out nor counted. */
int uni_ring_skip(struct uni_ring *r, unsigned cpu, struct uni_ring_now *ret);

/* From now on polls and drains leave out what was recorded before this session began, by the number
 * that the guest tells (info.tells_sessions); it counts as neither given out nor lost. */
void uni_ring_only(struct uni_ring *r, uint32_t session);
/* Where the session begins, in the packet that begins with sub-buffer `seq`. */
struct uni_ring_from {
	bool found; /* false: its first records were overwritten, or there are none */
	uint64_t seq, words, extra, lost, time; /* as struct uni_ring_now */
};
const struct uni_ring_from *uni_ring_from(const struct uni_ring *r, unsigned cpu);
/* Has it come to a record of the session? Also if none is asked for. */
bool uni_ring_has(const struct uni_ring *r, unsigned cpu);

/*
 * As soon as over() says so, which is asked before each sub-buffer, polls and drains end with
 * -UNI_EBUDGET, and a later call goes on: how long they take is up to the guest, which says how
 * large its rings are and how far they are written. `slow`: it is asked in the middle of a copy,
 * too, which is given up and later made anew: of a ring behind a slow line. NULL: never, as it is
 * at first.
 */
void uni_ring_until(struct uni_ring *r, bool slow, bool (*over)(void *ctx), void *ctx);

/* From now on polls pass over a sub-buffer that a writer holds open as soon as two were begun
 * behind it, not half a ring: before the last of them, so that little is left to uni_ring_drain().
 */
void uni_ring_hurry(struct uni_ring *r);

/* Gives out every sub-buffer of this CPU that was closed since the last poll, in order: the first
 * time all that the ring holds. Nothing is left out but what the guest overwrites meanwhile, or
 * overwrote since, and then up to a quarter of the ring, to be ahead of it. */
int uni_ring_poll(struct uni_ring *r, unsigned cpu, uni_ring_packet_fn fn, void *arg);

/*
 * What the sub-buffer that is written now holds already, without passing over it: a later call
 * gives it again, with what was added, and so does a poll when it is closed. Nothing while a record
 * in it is reserved and not written, or while older sub-buffers wait for a poll. Calls that were
 * only begun are left out at its end, for the guest may still take them back; `entries`: it does
 * not, for it records nothing else (UNI_TRACE_FUNCTION).
 */
int uni_ring_peek(struct uni_ring *r, unsigned cpu, bool entries, uni_ring_packet_fn fn, void *arg);

/* The same without the newest entries, and passing over it: later calls give what comes behind it,
 * as a packet of its own. Of a guest that fills its sub-buffers slowly. */
int uni_ring_take(struct uni_ring *r, unsigned cpu, uni_ring_packet_fn fn, void *arg);

/* After the last poll, with the guest stopped or dead: also what is not closed. Records that a
 * stopped writer has reserved and not written end it. Of memory that stands nothing is left out but
 * what cannot be read (UNI_EFAULT, UNI_ERANGE), which counts as overwritten. */
int uni_ring_drain(struct uni_ring *r, unsigned cpu, uni_ring_packet_fn fn, void *arg);

#endif
