/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decoder of a trace's packets. The input: one byte of options (number of CPUs, mode), then
 * words that are dealt to the CPUs' streams in turn, 4 KiB each. Their headers are valid or not.
 * For any input, as many calls end as begin, never more. Statistics and tree agree on their number,
 * and all can be printed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "trace/breakdown.h"
#include "trace/calls.h"
#include "trace/stats.h"
#include "trace/text.h"
#include "trace/tree.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CPUS	   3
#define CHUNK	   4096
#define RIGHT_HEAD 4  /* options: headers that make sense */
#define WINDOW	   8  /* a time window */
#define PATTERN	   16 /* a function pattern */
#define RATE	   32 /* a counter with a rate */
#define OFFSETS	   64 /* clocks that differ */

struct streams {
	uint64_t *v[CPUS];
	size_t nr[CPUS];
	struct uni_trace_stream stream[CPUS];
	struct uni_trace_input in;
};

static void deal(struct streams *s, unsigned cpu, const uint8_t *data, size_t size, bool right)
{
	size_t words = size / 8;
	uint64_t *v = realloc(s->v[cpu], (s->nr[cpu] + words + 1) * 8);
	struct uni_trace_sub *h;

	if (v == NULL)
		abort();
	s->v[cpu] = v;
	v += s->nr[cpu];
	memcpy(v, data, words * 8);
	s->nr[cpu] += words;
	if (!right || words * 8 < UNI_TRACE_SUB_HEAD)
		return;
	h = (struct uni_trace_sub *)(void *)v;
	h->ctf_magic = UNI_TRACE_CTF_MAGIC;
	memset(h->uuid, 0, sizeof(h->uuid));
	h->content_size = h->packet_size = words * 64;
}

static void make(struct streams *s, const uint8_t *data, size_t size, unsigned options)
{
	static const uint8_t kinds[16] = { [0] = UNI_TRACE_KIND_EXIT,
		[2] = UNI_TRACE_KIND_LEAF,
		[4] = UNI_TRACE_KIND_EXT,
		[5] = UNI_TRACE_KIND_ENTRY,
		[6] = UNI_TRACE_KIND_SYNC,
		[8] = UNI_TRACE_KIND_EXIT,
		[9] = UNI_TRACE_KIND_ENTRY,
		[14] = UNI_TRACE_KIND_LEAF };
	unsigned nr = 1 + options % 4 % CPUS;

	memcpy(s->in.info.kinds, kinds, sizeof(kinds));
	s->in.info.nr_cpus = nr;
	s->in.info.tsc_hz = (options & RATE) != 0 ? 2600000000 : 0;
	s->in.mode = (options & 128) != 0 ? UNI_TRACE_MODE_AUTO : UNI_TRACE_MODE_GRAPH;
	/* Guests that tell modes by records, and older ones that do not. */
	if ((options & 128) == 0)
		s->in.info.kinds[10] = UNI_TRACE_KIND_CALL;
	s->in.cpu = s->stream;
	for (size_t at = 0, n = 0; at < size; at += CHUNK, n++)
		deal(s, (unsigned)(n % nr), data + at, uni_min(size - at, (size_t)CHUNK),
			(options & RIGHT_HEAD) != 0);
	for (unsigned i = 0; i < nr; i++) {
		s->stream[i].data = s->v[i];
		s->stream[i].size = s->nr[i] * 8;
		if ((options & OFFSETS) != 0)
			s->stream[i].clock =
				(struct uni_trace_clock){ i * 1000, UINT64_MAX - 500 * i, i };
	}
}

static void check_events(const struct uni_trace_input *in, const struct uni_calls_filter *filter,
	struct uni_funcs *funcs, struct uni_sink *out)
{
	const struct uni_trace_text_opts opts = { 0 };
	struct uni_trace_text *text = uni_trace_text_open(out, funcs, &opts);
	const struct uni_call_event *e;
	struct uni_err err = { 0 };
	uint64_t enters = 0, leaves = 0;
	struct uni_calls *c;
	size_t nr;

	if (text == NULL || uni_calls_open(in, filter, funcs, &c, &err) != 0)
		abort();
	while (uni_calls_read(c, &e, &nr) == 1) {
		if (uni_trace_text_put(text, e, nr) != 0)
			abort();
		for (; nr != 0; e++, nr--) {
			told_u64(e->ns);
			told_u64(e->duration);
			told_u64(e->self);
			told_u64((uint64_t)e->type << 32 | e->flags);
			enters += e->type == UNI_CALL_ENTER;
			leaves += e->type == UNI_CALL_LEAVE;
			if (leaves > enters || e->thread >= uni_calls_nr_threads(c) ||
				e->depth > UNI_CALLS_DEPTH_MAX || e->cpu >= in->info.nr_cpus)
				abort();
		}
	}
	if (enters != leaves)
		abort();
	uni_trace_text_close(text);
	uni_calls_close(c);
}

static void check_sums(const struct uni_trace_input *in, const struct uni_calls_filter *filter,
	struct uni_funcs *funcs, struct uni_sink *out)
{
	const struct uni_call_tree_text opts = { 0 };
	struct uni_trace_report r;
	struct uni_call_tree t, part;
	struct uni_breakdown b;
	struct uni_err err = { 0 };
	uint64_t calls = 0, in_tree = 0;

	if (uni_trace_report_make(in, filter, funcs, &r, &err) != 0 ||
		uni_call_tree_make(in, filter, funcs, &t, &err) != 0 ||
		uni_breakdown_make(in, filter, funcs, true, &b, &err) != 0)
		abort();
	for (size_t i = 0; i < r.func.nr; i++)
		calls += r.func.v[i].calls;
	for (size_t i = 1; i < t.node.nr; i++)
		in_tree += t.node.v[i].calls;
	if (filter->function == NULL && calls != in_tree)
		abort();
	uni_trace_report_print(&r, funcs, 0, out);
	for (int callers = 0; callers < 2; callers++) {
		if (uni_call_tree_of(&t, funcs, "*1*", callers != 0, &part) != 0)
			continue;
		if (uni_call_tree_print(&part, funcs, &opts, out) != 0)
			abort();
		uni_call_tree_deinit(&part);
	}
	uni_trace_report_deinit(&r);
	uni_call_tree_deinit(&t);
	uni_breakdown_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_calls_filter filter = { 0 };
	struct uni_funcs *funcs = uni_funcs_create(NULL);
	struct streams s = { 0 };
	struct uni_strbuf buf;
	struct uni_sink *out;

	uni_strbuf_init(&buf);
	if (size == 0 || funcs == NULL || uni_sink_open_strbuf(&buf, &out) != 0) {
		uni_funcs_destroy(funcs);
		return 0;
	}
	make(&s, data + 1, size - 1, data[0]);
	if ((data[0] & WINDOW) != 0) {
		filter.from_ns = 1000;
		filter.to_ns = 1000000;
	}
	if ((data[0] & PATTERN) != 0)
		filter.function = "*3*";
	check_events(&s.in, &filter, funcs, out);
	check_sums(&s.in, &filter, funcs, out);
	if (uni_sink_close(out, NULL) != 0)
		abort();
	told(buf.s, buf.len);
	uni_strbuf_deinit(&buf);
	uni_funcs_destroy(funcs);
	for (unsigned i = 0; i < CPUS; i++)
		free(s.v[i]);
	return 0;
}
