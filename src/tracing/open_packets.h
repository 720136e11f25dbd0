/* SPDX-License-Identifier: BSD-2-Clause */
/* The content of open sub-buffers, for CPUs that fill them slowly. Otherwise a guest with few calls
 * would show nothing until it has filled 64 KiB. */
#ifndef UNI_TRACING_OPEN_PACKETS_H
#define UNI_TRACING_OPEN_PACKETS_H

#include <stdint.h>

#include "trace/ring.h"

#define UNI_TPARTS_EACH_NS 300000000 /* of a CPU, without a packet */

struct uni_tparts; /* opaque */

/* The ring must outlive it. NULL: out of memory. */
struct uni_tparts *uni_tparts_create(struct uni_ring *r);
void uni_tparts_destroy(struct uni_tparts *p); /* NULL-safe */

/* After a poll of all CPUs: passes on the data of CPUs that have passed on nothing for some time.
 * Waits for a record that is just being written. Returns the number of packets, or -UNI_E*. */
int uni_tparts_look(struct uni_tparts *p, uint64_t now_ns, uni_ring_packet_fn fn, void *arg);

#endif
