/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads and promises that are open now, from a guest's table (struct uni_trace_promises). A
 * recording begins with them, so that it shows threads that already hang. The guest is stopped
 * while the table is copied.
 */
#ifndef UNI_TRACING_OPEN_PROMISES_H
#define UNI_TRACING_OPEN_PROMISES_H

#include <stdbool.h>

#include "guest/guest.h"
#include "recording/ring_stream.h"
#include "trace/ring.h"

struct uni_topen; /* opaque */

/* head: address of the guest's uni_trace_head. Returns 0 with *ret NULL if the guest keeps no
 * table, or an invalid one; or -UNI_ENOMEM. The source must outlive it. */
int uni_topen_create(const struct uni_ring_source *source, uint64_t head,
	const struct uni_ring_info *info, struct uni_topen **ret);
void uni_topen_destroy(struct uni_topen *o); /* NULL-safe */

/* With the guest stopped. False: it was just changing the table. */
bool uni_topen_read(struct uni_topen *o);
/* Puts the copied table at the beginning of the stream. Returns 0 or -UNI_ENOMEM. */
int uni_topen_put(const struct uni_topen *o, struct uni_tstream *out);

/* Names what a thread waits for; "" if it cannot. */
struct uni_topen_namer {
	void (*waits_for)(void *ctx, const struct uni_guest_thread *t, char *ret, size_t cap);
	void *ctx;
};

/* For a guest without a table: puts its threads there, and what each waits for, as far as its list
 * of threads tells. Promises that are no threads stay unknown. Returns 0 or -UNI_ENOMEM. */
int uni_topen_put_threads(const struct uni_thread_list *list, const struct uni_ring_info *info,
	const struct uni_topen_namer *namer, struct uni_tstream *out);

/* Each waiting thread, and its object, at the end: for uni_tstream_last(). Returns 0 or
 * -UNI_ENOMEM. */
int uni_topen_put_waits(const struct uni_thread_list *list, const struct uni_ring_info *info,
	const struct uni_topen_namer *namer, struct uni_tstream *out);

#endif
