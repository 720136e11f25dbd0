/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a guest's open sub-buffers held when they were looked at last: of a guest that dies its
 * memory is gone, and with it what no poll (trace/ring.h) gave out, for as long as it takes to fill
 * 64 KiB. A look costs the guest nothing, and this program a copy of them.
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

/* Looks, if it is time to; after a poll of all CPUs. again: in any case, for parts were given out
 * (uni_ring_take()) of what was seen, but not the calls that were only begun. */
void uni_tlast_look(struct uni_tlast *l, bool again);

/* The guest is gone: gives out what was seen and came with no poll since, as a poll would. Returns
 * what fn does. *unseen_ns_ret: the guest may have been recording for so long since. */
int uni_tlast_put(struct uni_tlast *l, uni_ring_packet_fn fn, void *arg, uint64_t *unseen_ns_ret);

#endif
