/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The newest part of a trace that goes on. It has the sub-buffers that were read from a guest's
 * rings, up to a size; new ones replace the oldest. A sub-buffer may be put while it is still open,
 * and again when it has more: the rest becomes a packet of its own.
 */
#ifndef UNI_SERVE_STORE_H
#define UNI_SERVE_STORE_H

#include <stddef.h>

#include "base/err.h"
#include "trace/input.h"

struct uni_tstore; /* opaque */

/* max_bytes is for all CPUs together; each has room for at least one sub-buffer. */
int uni_tstore_create(const struct uni_ring_info *info, size_t max_bytes, struct uni_tstore **ret,
	struct uni_err *err);
void uni_tstore_destroy(struct uni_tstore *s); /* NULL-safe */
/* As uni_ring_packet_fn; arg is the store. 0 or -UNI_ENOMEM. */
int uni_tstore_put(void *arg, unsigned cpu, const struct uni_trace_sub *packet, size_t content);
/*
 * From now on the ring has another session. The next packet of each CPU starts anew, and what it
 * leaves out does not count as missing.
 */
void uni_tstore_restart(struct uni_tstore *s);
/* Drops its contents; records that were already put are not given again. */
void uni_tstore_clear(struct uni_tstore *s);

/* The newest position of a CPU. */
struct uni_tstore_newest {
	uint64_t words; /* since the guest's boot; 0: nothing was put */
	uint64_t time;	/* its own counter */
	size_t held;	/* bytes in the store */
};
struct uni_tstore_newest uni_tstore_newest(const struct uni_tstore *s, unsigned cpu);

/* Streams of a struct uni_trace_input, owned; clocks are not filled. */
struct uni_tstore_copy {
	struct uni_trace_stream *cpu;
	unsigned nr_cpus;
};

/* Gives all contents; with `take` they are moved, not copied. */
int uni_tstore_copy(struct uni_tstore *s, bool take, struct uni_tstore_copy *ret);
/*
 * Moves out all that was recorded until these times, of each CPU's own counter; the rest stays.
 * until NULL: all.
 */
int uni_tstore_take(struct uni_tstore *s, const uint64_t *until, struct uni_tstore_copy *ret);
void uni_tstore_copy_free(struct uni_tstore_copy *c); /* also if zeroed */

#endif
