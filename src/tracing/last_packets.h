/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The content of a guest's open sub-buffers at the last look. When a guest dies, its memory is
 * gone, and with it all that no poll (trace/ring.h) has passed on, up to 64 KiB for each CPU. A
 * look costs the guest nothing, and this program a copy of them.
 */
#ifndef UNI_TRACING_LAST_PACKETS_H
#define UNI_TRACING_LAST_PACKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/ring.h"

#define UNI_TLAST_EACH_NS 250000000 /* between looks */

struct uni_tlast; /* opaque */

/* The ring must outlive it. NULL: out of memory. */
struct uni_tlast *uni_tlast_create(struct uni_ring *r);
void uni_tlast_destroy(struct uni_tlast *l); /* NULL-safe */

/* Looks, if it is time to; after a poll of all CPUs. again: looks in any case, because
 * uni_ring_take() passed on parts of the seen packets, but not the calls that were only begun. */
void uni_tlast_look(struct uni_tlast *l, bool again);

/* The guest is gone: passes on the seen data that no later poll passed on, as a poll would. Returns
 * fn's result. *unseen_ns_ret: the guest may have recorded for this long since the last look. */
int uni_tlast_put(struct uni_tlast *l, uni_ring_packet_fn fn, void *arg, uint64_t *unseen_ns_ret);

#endif
