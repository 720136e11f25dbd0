/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace ring of MirageOS, its events made to a model, and everything that is asked of one. The
 * same ring beside a half of itself is merged by time.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "format/mirage/mirage.h"
#include "promise/text.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int add(void *arg, const struct uni_promise_event *event)
{
	return uni_promise_builder_add(arg, event);
}

static void ask(const struct uni_promise_model *m)
{
	struct uni_promise_list_opts opts = { .max = 20 };
	struct uni_findings f = { 0 };
	struct uni_strbuf text;
	struct uni_sink *out;
	struct uni_err err = { 0 };

	uni_strbuf_init(&text);
	if (uni_sink_open_strbuf(&text, &out) != 0)
		return;
	(void)uni_promise_findings(m, 1000, &f);
	(void)uni_promise_text_threads(out, m, &opts);
	for (uint32_t i = 0; i < m->all.nr && i < 20; i++)
		uni_promise_text_why(out, m, i);
	for (uint32_t i = 0; i < m->all.nr && i < 20; i++)
		(void)uni_promise_json_why(out, m, i);
	(void)uni_promise_text_wakeups(out, m, 20);
	(void)uni_promise_json_wakeups(out, m, 20);
	(void)uni_promise_json_threads(out, m, &opts);
	uni_promise_text_findings(out, m, &f);
	uni_promise_json(out, m, &f);
	(void)uni_sink_close(out, &err);
	told(text.s, text.len);
	uni_strbuf_deinit(&text);
	uni_findings_deinit(&f);
}

static int check_order(void *arg, const struct uni_promise_event *event)
{
	uint64_t *last = arg;

	if (event->cpu > 1 || event->time < *last)
		abort();
	*last = event->time;
	return 0;
}

static void merge(const uint8_t *data, size_t size, const struct uni_mirage_stats *whole)
{
	const struct uni_mirage_file files[] = { { .data = data, .size = size, .cpu = 0 },
		{ .data = data, .size = size / 2, .cpu = 1 } };
	struct uni_mirage_stats stats;
	uint64_t last = 0;
	struct uni_err err = { 0 };

	if (uni_mirage_merge(files, 2, check_order, &last, &stats, &err) == 0 &&
		(stats.events < whole->events || stats.damaged < whole->damaged))
		abort();
}

struct memory {
	const uint8_t *data;
	size_t size;
};

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct memory *m = ctx;

	if (addr > m->size || len > m->size - addr)
		abort();
	memcpy(buf, m->data + addr, len);
	return 0;
}

static bool never(void *ctx)
{
	return false;
}

/* All of a ring that is found in a guest's memory lies in there, and is one. */
static void search(const uint8_t *data, size_t size)
{
	struct memory m = { data, size };
	const struct uni_mirage_memory memory = { read_memory, never, &m };
	struct uni_mirage_found f = { 0 };

	if (uni_mirage_search(&memory, 0, size, &f) != 0 || f.size == 0)
		return;
	told_u64(f.addr);
	told_u64(f.size);
	told_u64(f.used);
	if (f.addr > size || f.size > size - f.addr || f.used > f.size ||
		!uni_mirage_is(data + f.addr, (size_t)f.size))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_mirage_stats stats;
	struct uni_err err = { 0 };
	struct uni_promise_builder *b = uni_promise_builder_create();
	const struct uni_promise_model *m;

	if (b == NULL)
		return 0;
	search(data, size);
	if (uni_mirage_read(data, size, add, b, &stats, &err) == 0) {
		m = uni_promise_builder_finish(b);
		for (size_t i = 0; i < m->runs.nr; i++) {
			if (m->runs.v[i].end < m->runs.v[i].begin)
				abort();
		}
		ask(m);
		told_u64(stats.events);
		told_u64(stats.damaged);
		merge(data, size, &stats);
	}
	uni_promise_builder_destroy(b);
	return 0;
}
