/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/stream/ring.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"

/* Nothing reports the other side's progress: we check again, less and less often. */
#define PAUSE_MIN_NS (50 * UNI_NSEC_PER_USEC)
#define PAUSE_MAX_NS UNI_NSEC_PER_MSEC

struct ring {
	struct uni_ring_page *page;
	uint32_t in_prod, out_cons; /* our own copies: the guest can overwrite those in the page */
	struct uni_grant_page grant;
};

static int wait_a_little(uint64_t *pause_ns, uint64_t deadline_ns)
{
	struct timespec ts = uni_ns_timespec(*pause_ns);

	if (uni_now_ns() >= deadline_ns)
		return -UNI_ETIMEDOUT;
	(void)nanosleep(&ts, NULL);
	*pause_ns = uni_min(*pause_ns * 2, PAUSE_MAX_NS);
	return 0;
}

/* Puts up to size bytes; the room ends at the array's end. */
static size_t put_bytes(struct ring *r, const uint8_t *from, size_t size, uint32_t used)
{
	size_t room = sizeof(r->page->in) - used, at = r->in_prod % sizeof(r->page->in);
	size_t n = uni_min(uni_min(room, size), sizeof(r->page->in) - at);

	memcpy(r->page->in + at, from, n);
	r->in_prod += (uint32_t)n;
	__atomic_store_n(&r->page->in_prod, r->in_prod, __ATOMIC_RELEASE);
	return n;
}

static int ring_send(void *ctx, const void *data, size_t size, uint64_t deadline_ns)
{
	struct ring *r = ctx;
	const uint8_t *from = data;
	uint64_t pause_ns = PAUSE_MIN_NS;
	int rc = 0;

	while (size != 0 && rc == 0) {
		uint32_t used = r->in_prod - __atomic_load_n(&r->page->in_cons, __ATOMIC_ACQUIRE);
		size_t n;

		if (used > sizeof(r->page->in))
			return -UNI_EGONE;
		n = put_bytes(r, from, size, used);
		from += n;
		size -= n;
		if (n == 0)
			rc = wait_a_little(&pause_ns, deadline_ns);
		else
			pause_ns = PAUSE_MIN_NS;
	}
	return rc;
}

static int ring_receive(void *ctx, void *buf, size_t size, uint64_t deadline_ns)
{
	struct ring *r = ctx;
	uint64_t pause_ns = PAUSE_MIN_NS;

	for (;;) {
		uint32_t have = __atomic_load_n(&r->page->out_prod, __ATOMIC_ACQUIRE) - r->out_cons;
		size_t at = r->out_cons % sizeof(r->page->out);
		size_t n = uni_min(uni_min((size_t)have, size), sizeof(r->page->out) - at);
		int rc;

		if (have > sizeof(r->page->out))
			return -UNI_EGONE;
		if (n != 0) {
			memcpy(buf, r->page->out + at, n);
			r->out_cons += (uint32_t)n;
			__atomic_store_n(&r->page->out_cons, r->out_cons, __ATOMIC_RELEASE);
			return (int)n;
		}
		rc = wait_a_little(&pause_ns, deadline_ns);
		if (rc != 0)
			return rc;
	}
}

static void ring_close(void *ctx)
{
	struct ring *r = ctx;

	uni_grant_unmap(&r->grant);
	free(r);
}

static const struct uni_line_ops ring_ops = {
	.send = ring_send,
	.receive = ring_receive,
	.close = ring_close,
};

int uni_line_open_ring(const struct uni_grant_page *page, struct uni_line *ret, struct uni_err *err)
{
	struct ring *r = calloc(1, sizeof(*r));
	struct uni_grant_page mine = *page;
	uint32_t in_cons;

	if (r == NULL) {
		uni_grant_unmap(&mine);
		return uni_err_nomem(err);
	}
	r->grant = mine;
	r->page = mine.at;
	in_cons = __atomic_load_n(&r->page->in_cons, __ATOMIC_ACQUIRE);
	r->in_prod = __atomic_load_n(&r->page->in_prod, __ATOMIC_RELAXED);
	if (r->in_prod - in_cons > sizeof(r->page->in)) /* invalid: start anew */
		r->in_prod = in_cons;
	r->out_cons = __atomic_load_n(&r->page->out_prod, __ATOMIC_ACQUIRE);
	__atomic_store_n(&r->page->out_cons, r->out_cons, __ATOMIC_RELEASE);
	(void)snprintf(ret->text, sizeof(ret->text), "domain %" PRIu32 "'s grant %" PRIu32,
		mine.domid, mine.ref);
	ret->ops = &ring_ops;
	ret->ctx = r;
	return 0;
}
