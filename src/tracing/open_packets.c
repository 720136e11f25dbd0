/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/open_packets.h"

#include <stdlib.h>

struct uni_tparts {
	struct uni_ring *ring;
	struct {
		uint64_t packets; /* that it had given by then */
		uint64_t since_ns;
	} cpu[];
};

struct uni_tparts *uni_tparts_create(struct uni_ring *r)
{
	size_t nr = uni_ring_info(r)->nr_cpus;
	struct uni_tparts *p = calloc(1, sizeof(*p) + nr * sizeof(p->cpu[0]));

	if (p != NULL)
		p->ring = r;
	return p;
}

void uni_tparts_destroy(struct uni_tparts *p)
{
	free(p);
}

int uni_tparts_look(struct uni_tparts *p, uint64_t now_ns, uni_ring_packet_fn fn, void *arg)
{
	int given = 0;

	for (uint32_t i = 0; i < uni_ring_info(p->ring)->nr_cpus; i++) {
		const struct uni_ring_stats *st = uni_ring_stats(p->ring, i);
		uint64_t packets = st->packets;
		int rc = 0;

		if (p->cpu[i].since_ns != 0 && p->cpu[i].packets == packets) {
			if (now_ns - p->cpu[i].since_ns < UNI_TPARTS_EACH_NS)
				continue;
			rc = uni_ring_take(p->ring, i, fn, arg);
		}
		if (rc != 0)
			return rc;
		given += st->packets != packets;
		p->cpu[i].since_ns = now_ns;
		p->cpu[i].packets = st->packets;
	}
	return given;
}
