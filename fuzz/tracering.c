/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest's trace ring: one byte of options, then uni_trace_head at address 0 and what it names,
 * and what every sub-buffer holds from SUBS on. Sub-buffers are numbered as an honest guest would,
 * or not, and may change between two reads. Whatever it says, reading ends, every packet given out
 * lies within its sub-buffer, and so does every record.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "trace/record.h"
#include "trace/ring.h"
#include "told.h"

#define SUBS	512 /* bytes in front of what the sub-buffers hold */
#define RING	8   /* in the seeds a ring begins there, in sub-buffers */
#define HONEST	1
#define MOVING	2
#define SKIPS	4
#define PEEKS	8
#define HURRIES 16
#define TAKES	32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct guest {
	const uint8_t *data;
	size_t size;
	unsigned options, reads;
	const struct uni_ring_info *info;
};

static int read_guest(void *ctx, uint64_t va, void *buf, size_t len)
{
	struct guest *g = ctx;
	uint64_t seq = va / UNI_TRACE_SUB_SIZE - RING;
	size_t at = (size_t)(va % UNI_TRACE_SUB_SIZE), n;

	memset(buf, 0, len);
	g->reads++;
	if (va < UNI_TRACE_SUB_SIZE) {
		if (!uni_range_contains(0, uni_min(g->size, SUBS), va, len))
			return -UNI_EFAULT;
		memcpy(buf, g->data + va, len);
		return 0;
	}
	n = g->size > SUBS ? uni_min(len, g->size - SUBS) : 0;
	if (at < n)
		memcpy(buf, g->data + SUBS + at, n - at);
	if ((g->options & HONEST) != 0 && at == 0 && len >= UNI_TRACE_SUB_HEAD) {
		memcpy((uint8_t *)buf + offsetof(struct uni_trace_sub, begin_seq), &seq, 8);
		memcpy((uint8_t *)buf + offsetof(struct uni_trace_sub, end_seq), &seq, 8);
	}
	if ((g->options & HONEST) != 0 && at == offsetof(struct uni_trace_sub, begin_seq) &&
		len == 8)
		memcpy(buf, &seq, 8);
	if ((g->options & MOVING) != 0 && g->reads % 4 == 0)
		((uint8_t *)buf)[g->reads * 7 % len] ^= (uint8_t)g->reads;
	return 0;
}

static int take(void *arg, unsigned cpu, const struct uni_trace_sub *packet, size_t content)
{
	const struct guest *g = arg;
	struct uni_trace_cursor c = uni_trace_records(g->info, packet, content);
	struct uni_trace_record rec;
	uint64_t last = 0;

	told_u64(content);
	if (content < UNI_TRACE_SUB_HEAD || content >= UNI_TRACE_SUB_SIZE || content % 8 != 0)
		abort();
	while (uni_trace_next(&c, &rec)) {
		if (rec.words + rec.nr > c.end ||
			(rec.kind != UNI_TRACE_KIND_SYNC && rec.time < last &&
				last - rec.time < UINT32_MAX))
			abort();
		last = rec.time;
		told_u64(rec.kind);
		told_u64(rec.time);
		told_u64(rec.nr);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct guest g = { .data = data + 1, .size = size - 1 };
	const struct uni_ring_source source = { read_guest, &g };
	struct uni_err err = { 0 };
	struct uni_ring *r;

	if (size == 0)
		return 0;
	g.options = data[0];
	if (uni_ring_open(&source, 0, &r, &err) != 0) {
		if (err.msg[0] == '\0')
			abort();
		told_text(err.msg);
		return 0;
	}
	g.info = uni_ring_info(r);
	if ((g.options & HURRIES) != 0)
		uni_ring_hurry(r);
	for (unsigned cpu = 0; cpu < uni_min(g.info->nr_cpus, 4); cpu++) {
		struct uni_ring_now now;

		(void)uni_ring_now(r, cpu, &now);
		if ((g.options & SKIPS) != 0)
			(void)uni_ring_skip(r, cpu, &now);
		(void)uni_ring_poll(r, cpu, take, &g);
		if ((g.options & PEEKS) != 0)
			(void)uni_ring_peek(r, cpu, (g.options & MOVING) != 0, take, &g);
		for (int i = 0; (g.options & TAKES) != 0 && i < 3; i++)
			(void)uni_ring_take(r, cpu, take, &g);
		(void)uni_ring_now(r, cpu, &now);
		(void)uni_ring_drain(r, cpu, take, &g);
	}
	uni_ring_close(r);
	return 0;
}
