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
#ifndef UNI_FORMAT_MIRAGE_MIRAGE_H
#define UNI_FORMAT_MIRAGE_MIRAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sink.h"
#include "promise/event.h"

#define UNI_MIRAGE_UUID "05883b8d-521a-487b-b397-456ab150680c" /* of all such traces */

struct uni_mirage_stats {
	uint64_t packets, events;
	uint64_t unused;	/* packets that never held an event */
	uint64_t missing;	/* packets that are missing here according to the counter */
	uint64_t damaged;	/* packets with invalid data, and places without a packet */
	uint64_t damaged_bytes; /* bytes of them that were not read */
	size_t first_damage;	/* offset in the data, if damaged */
};

/* A negative return ends the reading and is returned. */
typedef int (*uni_promise_event_fn)(void *arg, const struct uni_promise_event *event);

/* Is there a packet of such a ring, anywhere? Its first bytes may be damaged. */
bool uni_mirage_is(const void *data, size_t size);

/*
 * Passes all events to fn, oldest packet first. A gap is a UNI_PE_LOST with value -1, because its
 * size is not known. Damage is such a gap, too, and so is what a ring lost before its oldest
 * packet. Times never decrease: a time that decreases within a packet is damage. The rest of that
 * packet is not read; other packets are passed on whole. Returns -UNI_EFORMAT if data is no such
 * ring.
 */
int uni_mirage_read(const void *data, size_t size, uni_promise_event_fn fn, void *arg,
	struct uni_mirage_stats *stats_ret, struct uni_err *err);

#define UNI_MIRAGE_RING_MAX (64u << 20) /* bytes of a ring in memory */

/* A guest's memory. read() copies all or fails; stop(): the time is up. */
struct uni_mirage_memory {
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	bool (*stop)(void *ctx);
	void *ctx;
};

struct uni_mirage_found {
	uint64_t addr, size; /* size 0: none */
	uint64_t used;	     /* bytes of its events */
};

/*
 * Looks through [start, start + size), which does not wrap, for a ring: whole packets, one behind
 * the other. The one with the most events counts: *best is zeroed before the first range. Returns
 * 0 or -UNI_ENOMEM.
 */
int uni_mirage_search(const struct uni_mirage_memory *m, uint64_t start, uint64_t size,
	struct uni_mirage_found *best);

/* A trace of several CPUs is a file each. */
struct uni_mirage_file {
	const void *data; /* borrowed */
	size_t size;
	uint32_t cpu;
};

/* As uni_mirage_read(), the files' events merged by time; the statistics are sums. */
int uni_mirage_merge(const struct uni_mirage_file *files, size_t nr, uni_promise_event_fn fn,
	void *arg, struct uni_mirage_stats *stats_ret, struct uni_err *err);

/* Is it such a trace as a folder: the metadata that we write, and cpu0, cpu1 ... in it? */
bool uni_mirage_is_folder(const char *path);
/* As uni_mirage_merge(). */
int uni_mirage_read_folder(const char *path, uni_promise_event_fn fn, void *arg,
	struct uni_mirage_stats *stats_ret, struct uni_err *err);

/* Writes packets of at most `packet` bytes, in order: every viewer of the old format reads it. */
struct uni_mirage_writer;
int uni_mirage_writer_open(
	struct uni_sink *out, size_t packet, struct uni_mirage_writer **ret, struct uni_err *err);
/*
 * Events that the format lacks are written as MirageOS does: should_resolve as a label, a hiatus as
 * a switch to nobody. A hiatus' reason and end are labels of nobody. Events must come in the order
 * of time. An event larger than a packet is counted, not written.
 */
int uni_mirage_writer_add(struct uni_mirage_writer *w, const struct uni_promise_event *event);
/* An event that shows that a trace went on until then, though nothing happened: a label of
 * nobody. */
struct uni_promise_event uni_mirage_end(uint64_t time);
/* Writes the last packet and frees; *dropped_ret (may be NULL): events that fitted no packet. */
int uni_mirage_writer_close(struct uni_mirage_writer *w, uint64_t *dropped_ret);

/*
 * Old viewers end at an id that is created twice, or after it was named; guests take addresses for
 * ids, and use them again. Such a one, whatever the CPU, gets a new id from its second creation on.
 */
struct uni_mirage_ids;
struct uni_mirage_ids *uni_mirage_ids_create(void); /* NULL: out of memory */
/*
 * Replaces the ids of an event; events come in the order of time. Returns 0 or -UNI_ENOMEM.
 * *keep_ret is false for a promise that becomes itself, directly or through others: it would send
 * an old viewer into an endless loop. The creation of nobody would end the viewer, so it becomes a
 * switch to the thread that ran.
 */
int uni_mirage_ids_replace(struct uni_mirage_ids *ids, struct uni_promise_event *e, bool *keep_ret);
void uni_mirage_ids_destroy(struct uni_mirage_ids *ids); /* NULL-safe */

/* The TSDL that describes such a file completely, ids 12 and 13 and all types included. */
void uni_mirage_metadata(struct uni_sink *out);

#endif
