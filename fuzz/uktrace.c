/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unikraft's tracepoints: a trace file of its scripts, or the definitions and the buffer as an
 * image and a guest have them. A first byte says which. Everything made from them is checked, too.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "format/uktrace/timeline.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void tell(const struct uni_ukt_file *f)
{
	const struct uni_call_event *e;
	struct uni_ukt_timeline *tl;
	struct uni_ukt_record r;
	struct uni_ukt_trace t;
	struct uni_strbuf msg;
	uint64_t last = 0;
	size_t nr;

	if (uni_ukt_trace_open(f, &t, NULL) != 0)
		return;
	uni_strbuf_init(&msg);
	for (size_t i = 0; i < t.records.nr; i++) {
		uni_ukt_trace_record(&t, i, &r);
		if (r.ns != t.records.v[i].ns || r.ns < last)
			abort();
		last = r.ns;
		uni_strbuf_reset(&msg);
		uni_ukt_format(&r, &msg);
		told(msg.s, msg.len);
		told_u64(r.ns);
		for (unsigned k = 0; r.def != NULL && k < r.def->nr_args; k++)
			(void)uni_ukt_shape(r.def, k);
	}
	tl = uni_ukt_timeline_open(&t);
	if (tl != NULL) {
		struct uni_timeline all = uni_ukt_timeline_get(tl);
		uint64_t number;

		while (all.read(all.ctx, &e, &nr) == 1) {
			for (size_t i = 0; i < nr; i++) {
				told_text(all.func(all.ctx, e[i].func));
				told_text(all.thread(all.ctx, e[i].thread, &number));
				told_u64(e[i].ns);
				told_u64((uint64_t)e[i].type << 32 | e[i].flags);
				told_u64(e[i].duration);
				told_u64(e[i].self);
			}
		}
	}
	uni_ukt_timeline_close(tl);
	uni_strbuf_deinit(&msg);
	uni_ukt_trace_close(&t);
}

/* how: bit 0: 4-byte pointers; the two bytes behind it: how much is definitions. */
static void raw(const uint8_t *data, size_t size)
{
	size_t nr;
	uint8_t *copy;
	struct uni_ukt_file f = { .ptr_size = data[0] & 1 ? 4 : 8,
		.bias = data[0] & 2 ? 0x1000 : 0 };

	if (size < 3)
		return;
	nr = (size_t)data[1] | (size_t)data[2] << 8;
	nr = nr < size - 3 ? nr : size - 3;
	copy = malloc(size);
	if (copy == NULL)
		return;
	memcpy(copy, data + 3, size - 3);
	f.defs = copy;
	f.defs_size = nr;
	f.buffer = copy + nr;
	f.buffer_size = size - 3 - nr;
	tell(&f);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_ukt_file f;

	if (size == 0)
		return 0;
	if (data[0] != 0x80) {
		raw(data, size);
	} else if (uni_ukt_file_read(data, size, &f, NULL) == 0) {
		tell(&f);
		uni_ukt_file_free(&f);
	}
	return 0;
}
