/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growing_calls FOLDER SECONDS RATE CPUS: the CPU time (user + sys, ms) of one update of a live
 * page. A trace of SECONDS with RATE calls a second of each CPU exists, and one second more comes.
 * The page is read anew, or only its new part. Prints the least of several.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../tests/support/trace_make.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "page/page.h"
#include "recording/follow.h"
#include "recording/follow_calls.h"
#include "recording/call_input.h"
#include "recording/ring_stream.h"
#include "trace/calls.h"
#include "trace/timeline.h"

#define ROUNDS	5
#define DEPTH	12
#define HZ	1000000000
#define BEGIN_S 5

static const struct uni_build_opts opts = UNI_BUILD_DEFAULTS;
static const struct uni_page_whole whole = { 1000000, 250000, 65536 };
static const struct uni_calls_filter all;
static const struct uni_funcs_naming none = { 0 };

struct bench {
	struct uni_recorder *rec;
	struct uni_tstream *out;
	struct make m;
	const char *path;
	uint64_t rate, cpus, now_s;
	uint32_t depth[MAKE_CPUS];
	/* The reader of the new part, which goes on. */
	struct uni_follow *f;
	struct uni_page_growing *samples;
	struct uni_tfollow *tf;
	struct uni_funcs *funcs;
	struct uni_calls *calls;
	struct uni_timeline tl;
	struct uni_page_calls *page;
	size_t len;
};

static double cpu_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void give(struct bench *b, unsigned cpu)
{
	struct make_cpu *c = &b->m.cpu[cpu];

	make_close(&b->m, cpu);
	for (size_t at = 0; at < c->nr;) {
		const struct uni_trace_sub *s = (const void *)(c->v + at);

		(void)uni_tstream_put(b->out, cpu, s, s->content_size / 8);
		at += s->content_size / 64;
	}
	c->nr = 0;
}

/* Up to 12 deep, of some 400 functions. */
static void put(struct bench *b, uint64_t seconds)
{
	for (uint64_t end = b->now_s + seconds; b->now_s < end; b->now_s++) {
		for (uint64_t n = 0; n < 2 * b->rate; n++) {
			uint64_t r = (b->now_s * 2 * b->rate + n) * 2654435761u >> 7;
			uint64_t t = b->now_s * HZ + n * HZ / (2 * b->rate);

			for (unsigned i = 0; i < b->cpus; i++) {
				uint32_t *depth = &b->depth[i];

				if (*depth == 0 || (*depth < DEPTH && r % 32 < 16)) {
					make_enter(&b->m, i, t + i,
						0x10000 + (uint32_t)(r % 32 + *depth * 32) * 16);
					++*depth;
				} else {
					make_exit(&b->m, i, t + i, 0x80000 - --*depth * 0x100);
				}
			}
		}
		for (unsigned i = 0; i < b->cpus; i++)
			give(b, i);
	}
}

static int write_data(const struct uni_page_input *in, size_t *len_ret, struct uni_err *err)
{
	struct uni_page_left left = { 0 };
	struct uni_strbuf data;
	struct uni_sink *out;
	int rc;

	uni_strbuf_init(&data);
	if (uni_sink_open_strbuf(&data, &out) != 0)
		return -UNI_ENOMEM;
	rc = uni_page_write_data(in, out, &left, err);
	if (uni_sink_close(out, NULL) != 0 && rc == 0)
		rc = -UNI_ENOMEM;
	*len_ret = data.len;
	uni_strbuf_deinit(&data);
	return rc;
}

static int anew(struct bench *b, struct uni_err *err)
{
	struct uni_page_input in = { .opts = &opts, .whole = whole };
	struct uni_trace_timeline *timeline = NULL;
	struct uni_recording *rec = NULL;
	struct uni_tinput *input = NULL;
	struct uni_timeline tl;
	int rc = uni_recording_open(b->path, &rec, err);

	if (rc == 0)
		rc = uni_tinput_open(rec, 0, &input, err);
	if (rc == 0)
		rc = uni_trace_timeline_open(uni_tinput_get(input), &all, &none, &timeline, err);
	if (rc == 0) {
		tl = uni_trace_timeline_get(timeline);
		in.rec = rec;
		in.timeline = &tl;
		rc = write_data(&in, &b->len, err);
	}
	uni_trace_timeline_close(timeline);
	uni_tinput_close(input);
	uni_recording_close(rec);
	return rc;
}

static int read_calls(void *ctx, const struct uni_call_event **ret, size_t *nr_ret)
{
	return uni_calls_read(((struct bench *)ctx)->calls, ret, nr_ret);
}

static const char *func_name(void *ctx, uint32_t func)
{
	return uni_funcs_name(((struct bench *)ctx)->funcs, func);
}

static const char *thread_name(void *ctx, uint32_t thread, uint64_t *number_ret)
{
	return uni_calls_thread_name(((struct bench *)ctx)->calls, thread, number_ret);
}

static int follow(struct bench *b, struct uni_err *err)
{
	int rc = uni_follow_open(b->path, 3 * UNI_NSEC_PER_SEC, &b->f, err);
	struct uni_recording *rec = rc == 0 ? uni_follow_recording(b->f) : NULL;

	if (rc == 0)
		rc = uni_page_growing_create(rec, &opts, &whole, &b->samples);
	if (rc == 0)
		rc = uni_tfollow_open(rec, 0, 3 * UNI_NSEC_PER_SEC, &b->tf, err);
	b->funcs = uni_funcs_create(&none);
	if (rc == 0 && b->funcs != NULL)
		rc = uni_calls_open(uni_tfollow_input(b->tf), &all, b->funcs, &b->calls, err);
	b->tl = (struct uni_timeline){
		.ctx = b, .read = read_calls, .func = func_name, .thread = thread_name
	};
	b->page = uni_page_calls_create(&b->tl, &whole);
	return rc == 0 && (b->funcs == NULL || b->page == NULL) ? -UNI_ENOMEM : rc;
}

static int update(struct bench *b, struct uni_err *err)
{
	const struct uni_follow_taker to = { NULL, NULL, NULL };
	struct uni_page_input in = { .rec = uni_follow_recording(b->f),
		.opts = &opts,
		.growing = b->samples,
		.calls = b->page,
		.whole = whole };
	struct uni_call_event *end = NULL;
	uint64_t until;
	size_t nr = 0;
	int rc = uni_follow_look(b->f, &to, err);

	if (rc == 0)
		rc = uni_tfollow_look(b->tf, &until, err);
	if (rc == 0)
		rc = uni_calls_grown(b->calls, until);
	if (rc == 0)
		rc = uni_page_calls_read(b->page);
	if (rc == 0)
		rc = uni_calls_ends(b->calls, &end, &nr);
	if (rc == 0)
		rc = uni_page_calls_end(b->page, end, nr);
	if (rc == 0)
		rc = write_data(&in, &b->len, err);
	free(end);
	return rc;
}

static int run(struct bench *b, uint64_t seconds, struct uni_err *err)
{
	double whole_ms = 1e9, new_ms = 1e9;
	int rc;

	put(b, seconds);
	rc = follow(b, err);
	if (rc == 0)
		rc = update(b, err);
	for (int i = 0; rc == 0 && i < ROUNDS; i++) {
		double begin, middle;

		put(b, 1);
		begin = cpu_ms();
		rc = update(b, err);
		middle = cpu_ms();
		if (rc == 0)
			rc = anew(b, err);
		new_ms = uni_min(new_ms, middle - begin);
		whole_ms = uni_min(whole_ms, cpu_ms() - middle);
	}
	printf("%" PRIu64 " s, %" PRIu64
	       " calls: anew %.2f ms, of what is new %.2f ms, %zu bytes\n",
		seconds, (b->now_s - BEGIN_S) * b->rate * b->cpus, whole_ms, new_ms, b->len);
	return rc;
}

static void end(struct bench *b)
{
	uni_page_calls_destroy(b->page);
	uni_calls_close(b->calls);
	uni_funcs_destroy(b->funcs);
	uni_tfollow_close(b->tf);
	uni_page_growing_destroy(b->samples);
	uni_follow_close(b->f);
	if (b->rec != NULL)
		(void)uni_recorder_close(b->rec, NULL, 0, NULL);
	make_deinit(&b->m);
}

int main(int argc, char **argv)
{
	struct uni_record_meta meta = { .realtime_offset_ns = 1 };
	struct bench b = { .now_s = BEGIN_S };
	struct uni_err err = { 0 };
	uint64_t seconds;
	int rc;

	if (argc != 5 || !uni_parse_u64(argv[2], &seconds) || !uni_parse_u64(argv[3], &b.rate) ||
		!uni_parse_u64(argv[4], &b.cpus) || b.rate == 0 || b.cpus == 0 ||
		b.cpus > MAKE_CPUS) {
		fprintf(stderr, "usage: growing_calls FOLDER SECONDS RATE CPUS\n");
		return 2;
	}
	make_init(&b.m, (unsigned)b.cpus, HZ);
	b.path = argv[1];
	meta.trace = (struct uni_record_trace){ .mode = "graph", .info = b.m.in.info };
	if (!uni_record_trace_room(&meta.trace, (uint32_t)b.cpus))
		return 1;
	for (uint64_t i = 0; i < b.cpus; i++)
		meta.trace.cpu[i].clock = (struct uni_record_clock){ .hz = HZ, .source = "tsc" };
	(void)snprintf(meta.arch, sizeof(meta.arch), "x86_64");
	meta.nr_vcpus = (uint32_t)b.cpus;
	rc = uni_recorder_create(argv[1], &meta, true, &b.rec, &err);
	if (rc == 0)
		rc = uni_recorder_trace(b.rec, 0, &b.out, &err);
	if (rc == 0)
		rc = run(&b, seconds, &err);
	end(&b);
	uni_record_trace_deinit(&meta.trace);
	if (rc != 0)
		fprintf(stderr, "growing_calls: %d: %s\n", rc, err.msg);
	return rc == 0 ? 0 : 1;
}
