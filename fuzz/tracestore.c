/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts sub-buffers of a guest's ring into the store of a live trace one by one: two bytes of CPU,
 * number and size, then words. For any input, the store holds packets one after the other. A reader
 * finds no damaged byte in what was a record, and no more packets than the store had to keep.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "serve/store.h"
#include "trace/record.h"
#include "told.h"

#define CPUS	2
#define MAX	(4 * UNI_TRACE_SUB_SIZE)
#define PUTS	64
#define SIZE(n) (UNI_TRACE_SUB_HEAD + (size_t)(n)*8)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static union {
	struct uni_trace_sub head;
	uint8_t bytes[UNI_TRACE_SUB_SIZE];
} packet;

static void check(struct uni_tstore *s, bool take)
{
	struct uni_tstore_copy c;

	if (uni_tstore_copy(s, take, &c) != 0)
		return;
	for (unsigned i = 0; i < c.nr_cpus; i++) {
		const uint8_t *p = c.cpu[i].data;
		size_t left = c.cpu[i].size;

		told(p, left);
		if (left > MAX)
			abort();
		while (left != 0) {
			struct uni_trace_sub head;
			size_t bytes;

			if (left < sizeof(head))
				abort();
			memcpy(&head, p, sizeof(head));
			bytes = (size_t)(head.packet_size / 8);
			if (bytes < sizeof(head) || bytes > left ||
				head.content_size != head.packet_size)
				abort();
			p += bytes;
			left -= bytes;
		}
	}
	uni_tstore_copy_free(&c);
}

static void put(struct uni_tstore *s, const uint8_t *op, const uint8_t *words, size_t nr)
{
	memset(&packet.head, 0, sizeof(packet.head));
	packet.head.begin_seq = (op[0] >> 1 & 7) + 1u;
	packet.head.end_seq = (op[0] & 16) != 0 ? packet.head.begin_seq : 0;
	packet.head.lost = op[0] >> 5;
	packet.head.ts_begin = (uint64_t)op[1] << 24;
	memcpy(packet.bytes + UNI_TRACE_SUB_HEAD, words, nr * 8);
	(void)uni_tstore_put(s, op[0] & 1, &packet.head, SIZE(nr));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_ring_info info = { .nr_cpus = CPUS, .machine = 62 };
	struct uni_err err = { 0 };
	struct uni_tstore *s;

	info.kinds[UNI_TRACE_ENTRY] = UNI_TRACE_KIND_ENTRY;
	info.kinds[UNI_TRACE_EXIT] = UNI_TRACE_KIND_EXIT;
	info.kinds[UNI_TRACE_SYNC] = UNI_TRACE_KIND_SYNC;
	info.kinds[UNI_TRACE_EXT] = UNI_TRACE_KIND_EXT;
	if (uni_tstore_create(&info, (size_t)2 * MAX, &s, &err) != 0)
		return 0;
	for (unsigned i = 0; i < PUTS && size >= 2; i++) {
		const uint8_t *op = data;
		size_t most = SIZE_MAX, nr;

		data += 2;
		size -= 2;
		/* Few words come from the input; an odd number asks for a large sub-buffer. */
		most = (op[1] & 1) != 0 ? 8000 : (size_t)op[1] / 2;
		nr = uni_min(most, size / 8);
		put(s, op, data, nr);
		if ((op[1] & 1) != 0 && nr < 8000)
			(void)uni_tstore_put(s, op[0] & 1, &packet.head, SIZE(8000));
		data += nr * 8;
		size -= nr * 8;
		if (i % 8 == 7)
			check(s, i % 16 == 15);
	}
	check(s, false);
	uni_tstore_clear(s);
	check(s, true);
	uni_tstore_destroy(s);
	return 0;
}
