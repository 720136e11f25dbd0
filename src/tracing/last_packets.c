/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/last_packets.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"

#define TRIES 4 /* a record may just be written */

struct seen {
	size_t content; /* 0: nothing */
	/* number of packets that polls had passed on by then: the next one would be this */
	uint64_t packets;
	union {
		struct uni_trace_sub head;
		uint8_t bytes[UNI_TRACE_SUB_SIZE];
	} copy;
};

struct uni_tlast {
	struct uni_ring *ring;
	uint64_t looked_ns; /* 0: not yet */
	struct seen cpu[];
};

struct uni_tlast *uni_tlast_create(struct uni_ring *r)
{
	size_t nr = uni_ring_info(r)->nr_cpus;
	struct uni_tlast *l = calloc(1, sizeof(*l) + nr * sizeof(l->cpu[0]));

	if (l != NULL)
		l->ring = r;
	return l;
}

void uni_tlast_destroy(struct uni_tlast *l)
{
	free(l);
}

static int keep_packet(void *arg, unsigned cpu, const struct uni_trace_sub *packet, size_t content)
{
	struct uni_tlast *l = arg;
	struct seen *s = &l->cpu[cpu];

	memcpy(s->copy.bytes, packet, content);
	s->content = content;
	s->packets = uni_ring_stats(l->ring, cpu)->packets;
	return 0;
}

/* Its stats count a peeked packet only during the callback. */
static bool is_newest(const struct uni_tlast *l, unsigned cpu)
{
	return l->cpu[cpu].content != 0 &&
	       l->cpu[cpu].packets == uni_ring_stats(l->ring, cpu)->packets + 1;
}

void uni_tlast_look(struct uni_tlast *l, bool again)
{
	uint64_t now_ns = uni_now_ns();

	if (!again && l->looked_ns != 0 && now_ns - l->looked_ns < UNI_TLAST_EACH_NS)
		return;
	l->looked_ns = now_ns;
	for (uint32_t i = 0; i < uni_ring_info(l->ring)->nr_cpus; i++) {
		struct seen *s = &l->cpu[i];

		if (!is_newest(l, i))
			s->content = 0;
		/* A guest dies inside calls that were only begun. The reader of these packets knows
		 * that none of them was taken back by then. */
		for (int n = 0; n < TRIES; n++) {
			size_t before = s->content;

			if (uni_ring_peek(l->ring, i, true, keep_packet, l) != 0 ||
				s->content != before)
				break;
		}
	}
}

int uni_tlast_put(struct uni_tlast *l, uni_ring_packet_fn fn, void *arg, uint64_t *unseen_ns_ret)
{
	int rc = 0;

	*unseen_ns_ret = l->looked_ns != 0 ? uni_now_ns() - l->looked_ns : 0;
	for (uint32_t i = 0; rc == 0 && i < uni_ring_info(l->ring)->nr_cpus; i++) {
		struct seen *s = &l->cpu[i];

		if (is_newest(l, i))
			rc = fn(arg, i, &s->copy.head, s->content);
		s->content = 0;
	}
	return rc;
}
