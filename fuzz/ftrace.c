/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of clients below /ftrace/, and the guest's records that come meanwhile. Each byte says
 * what happens next: a request with the bytes that follow, a sub-buffer, or some reading.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "serve/ftrace.h"
#include "trace/record.h"
#include "told.h"

#define READERS 3
#define MAX	(4 * UNI_TRACE_SUB_SIZE)
#define STEPS	200
#define ENDLESS 2000 /* reads of 512 bytes: more than all that is kept */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct guest {
	const uint8_t *words;
	size_t nr;
	uint64_t seq;
	int fails;
};

static void require(bool ok)
{
	if (!ok)
		abort();
}

static int on_apply(void *ctx, enum uni_ftrace_tracer tracer, bool on, struct uni_err *err)
{
	struct guest *g = ctx;

	require(tracer <= UNI_FTRACE_GRAPH);
	return g->fails == 1 ? uni_err_set(err, UNI_EGONE, "gone") : g->fails == 2;
}

static int on_poll(void *ctx, uni_ring_packet_fn fn, void *arg, struct uni_err *err)
{
	static union {
		struct uni_trace_sub head;
		uint8_t bytes[UNI_TRACE_SUB_SIZE];
	} packet;
	struct guest *g = ctx;
	size_t nr = g->nr;

	g->nr = 0;
	if (nr == 0)
		return g->fails == 3 ? uni_err_set(err, UNI_EGONE, "gone") : 0;
	memset(&packet.head, 0, sizeof(packet.head));
	packet.head.begin_seq = packet.head.end_seq = ++g->seq;
	memcpy(packet.bytes + UNI_TRACE_SUB_HEAD, g->words, nr * 8);
	return fn(arg, (unsigned)g->seq & 1, &packet.head, UNI_TRACE_SUB_HEAD + nr * 8);
}

static const struct uni_ftrace_ops ops = { on_apply, on_poll };

static void read_some(struct uni_ftrace_reader *r, unsigned times)
{
	char buf[512];
	long n = 1;

	for (unsigned i = 0; i < times && n > 0; i++) {
		n = uni_ftrace_read(r, buf, sizeof(buf));
		told(buf, n > 0 ? (size_t)n : 0);
		require(n <= (long)sizeof(buf) && (n >= 0 || n == -UNI_ENOMEM));
	}
	require(times < ENDLESS || n <= 0);
}

static const char *const paths[] = { "/", "/ftrace", "/ftrace/available_tracers",
	"/ftrace/current_tracer", "/ftrace/trace_clock", "/ftrace/tracing_on",
	"/ftrace/tracing_enable/on", "/ftrace/tracing_enable/off", "/ftrace/trace",
	"/ftrace/trace_pipe", "/ftrace/trace/", "trace" };

static size_t ask(struct uni_ftrace *f, uint8_t op, const uint8_t *data, size_t size,
	struct uni_ftrace_reader **reader)
{
	struct uni_ftrace_reply reply;
	enum uni_ftrace_method method = op >> 4 & 3;
	size_t len = size != 0 ? uni_min(size - 1, (size_t)(data[0] % UNI_FTRACE_BODY_MAX)) : 0;
	const char *path = paths[(op & 15) % uni_array_len(paths)];

	(void)uni_ftrace_changes(method, path);
	uni_ftrace_request(f, method, path, (const char *)data + (size != 0), len, &reply);
	told_u64((uint64_t)reply.status);
	told(reply.body.s, reply.body.len);
	require(reply.status >= 200 && reply.status < 600 && reply.type != NULL);
	for (unsigned i = 0; i < READERS && reply.reader != NULL; i++) {
		if (reader[i] != NULL)
			continue;
		reader[i] = reply.reader;
		reply.reader = NULL;
	}
	uni_ftrace_reader_close(reply.reader);
	uni_strbuf_deinit(&reply.body);
	return len + (size != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_ftrace_reader *reader[READERS] = { NULL };
	struct uni_ring_info info = { .nr_cpus = 2, .machine = 62 };
	struct guest g = { 0 };
	const struct uni_ftrace_cfg cfg = { .ops = &ops,
		.ctx = &g,
		.info = &info,
		.tracer = UNI_FTRACE_GRAPH,
		.on = true,
		.max_bytes = (size_t)2 * MAX,
		.max_readers = READERS };
	struct uni_err err = { 0 };
	struct uni_ftrace *f;

	info.kinds[UNI_TRACE_ENTRY] = UNI_TRACE_KIND_ENTRY;
	info.kinds[UNI_TRACE_EXIT] = UNI_TRACE_KIND_EXIT;
	info.kinds[UNI_TRACE_SYNC] = UNI_TRACE_KIND_SYNC;
	info.kinds[UNI_TRACE_EXT] = UNI_TRACE_KIND_EXT;
	if (uni_ftrace_create(&cfg, &f, &err) != 0)
		return 0;
	for (unsigned i = 0; i < STEPS && size != 0; i++) {
		uint8_t op = *data;
		struct uni_ftrace_reader **r = &reader[(op & 15) % READERS];
		size_t n = 0;

		data++;
		size--;
		g.fails = op >> 6 == 3 ? op & 3 : 0;
		if (op >> 6 == 0) {
			n = ask(f, op, data, size, reader);
		} else if (op >> 6 == 1) {
			n = uni_min(size / 8, (size_t)(op & 63)) * 8;
			g.words = data;
			g.nr = n / 8;
			(void)uni_ftrace_poll(f, NULL);
		} else if (*r != NULL && (op & 16) != 0) {
			uni_ftrace_reader_close(*r);
			*r = NULL;
		} else if (*r != NULL) {
			read_some(*r, (op & 32) != 0 ? ENDLESS : 2);
		}
		data += n;
		size -= n;
	}
	for (unsigned i = 0; i < READERS; i++)
		uni_ftrace_reader_close(reader[i]);
	uni_ftrace_destroy(f);
	return 0;
}
