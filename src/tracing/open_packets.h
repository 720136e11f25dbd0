/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a guest's open sub-buffers hold, of CPUs that take long to fill them: else nothing would be
 * seen of a guest that calls rarely until it has filled 64 KiB.
 */
#ifndef UNI_TRACING_OPEN_PACKETS_H
#define UNI_TRACING_OPEN_PACKETS_H

#include <stdint.h>

#include "trace/ring.h"

#define UNI_TPARTS_EACH_NS 300000000 /* of a CPU, without a packet */

struct uni_tparts; /* opaque */

/* The ring must outlive it. NULL: out of memory. */
struct uni_tparts *uni_tparts_create(struct uni_ring *r);
void uni_tparts_destroy(struct uni_tparts *p); /* NULL-safe */

/*
 * After a poll of all CPUs: gives out what is there of those that gave nothing for so long. A
 * record that is just being written is waited for. Returns how many packets, or -UNI_E*.
 */
int uni_tparts_look(struct uni_tparts *p, uint64_t now_ns, uni_ring_packet_fn fn, void *arg);

#endif
