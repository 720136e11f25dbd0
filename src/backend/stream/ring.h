/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection through a page that a guest of Xen shares with us. It has two rings of bytes and
 * their indexes, in the layout of a PV console's page (Xen's public header io/console.h).
 */
#ifndef UNI_BACKEND_STREAM_RING_H
#define UNI_BACKEND_STREAM_RING_H

#include <stddef.h>
#include <stdint.h>

#include "backend/grant.h"
#include "backend/stream/line.h"

/*
 * Indexes grow without end, modulo 2^32. The guest moves in_cons and out_prod; we move the other
 * two.
 */
struct uni_ring_page {
	uint8_t in[1024];  /* to the guest */
	uint8_t out[2048]; /* from the guest */
	uint32_t in_cons, in_prod;
	uint32_t out_cons, out_prod;
};

_Static_assert(offsetof(struct uni_ring_page, in_cons) == 3072, "layout");
_Static_assert(sizeof(struct uni_ring_page) == 3088, "layout");

/* Takes over a page, also on failure. Skips bytes that were left for an earlier reader. */
int uni_line_open_ring(
	const struct uni_grant_page *page, struct uni_line *ret, struct uni_err *err);

#endif
