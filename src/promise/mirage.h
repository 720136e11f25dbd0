/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace rings of MirageOS (mirage-profile): a file, or granted pages, of packets with a header of
 * 30 bytes each, of which the oldest is overwritten. The program may still be writing: of the
 * newest packet the last event can be torn, and is dropped if it makes no sense.
 *
 * All little-endian, no padding. Header: u32 magic, u8 uuid[16], u32 packet size in bits, u16
 * packet counter, u32 content size in bits (header included). Event: u64 time in ns, u8 id,
 * payload.
 */
#ifndef UNI_PROMISE_MIRAGE_H
#define UNI_PROMISE_MIRAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sink.h"
#include "promise/event.h"

struct uni_mirage_stats {
	uint64_t packets, events;
	uint64_t unused;	/* packets that never held an event */
	uint64_t missing;	/* packets that the counter says there were between those here */
	uint64_t damaged;	/* packets whose rest makes no sense */
	uint64_t damaged_bytes; /* not read of these */
	size_t first_damage;	/* offset in the data, if damaged */
};

/* A negative return ends the reading and is returned. */
typedef int (*uni_promise_event_fn)(void *arg, const struct uni_promise_event *event);

/* Does the data begin as such a ring? */
bool uni_mirage_is(const void *data, size_t size);

/*
 * Gives out all events, oldest packet first; a gap is told as UNI_PE_LOST with value -1: how many
 * is not known. Times never decrease: one that does within a packet is damage, and the rest of that
 * packet is not read; what other packets hold is given out whole. UNI_EFORMAT: no such ring.
 */
int uni_mirage_read(const void *data, size_t size, uni_promise_event_fn fn, void *arg,
	struct uni_mirage_stats *stats_ret, struct uni_err *err);

/* A trace of several CPUs is a file each. */
struct uni_mirage_file {
	const void *data; /* borrowed */
	size_t size;
	uint32_t cpu;
};

/* As uni_mirage_read(), the files' events merged by time; the statistics are sums. */
int uni_mirage_merge(const struct uni_mirage_file *files, size_t nr, uni_promise_event_fn fn,
	void *arg, struct uni_mirage_stats *stats_ret, struct uni_err *err);

/* Writes packets of at most `packet` bytes, in order: every viewer of the old format reads it. */
struct uni_mirage_writer;
int uni_mirage_writer_open(
	struct uni_sink *out, size_t packet, struct uni_mirage_writer **ret, struct uni_err *err);
/*
 * Events that the format has not are written as MirageOS does: should_resolve as a label, a hiatus
 * as a switch to nobody; its reason and its end are labels of nobody. Events must come in the order
 * of time. One that is larger than a packet is not written, and counted.
 */
int uni_mirage_writer_add(struct uni_mirage_writer *w, const struct uni_promise_event *event);
/* Writes the last packet and frees; *dropped_ret (may be NULL): events that fitted no packet. */
int uni_mirage_writer_close(struct uni_mirage_writer *w, uint64_t *dropped_ret);

/* The TSDL that describes such a file completely, ids 12 and 13 and all types included. */
void uni_mirage_metadata(struct uni_sink *out);

#endif
