/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growing FOLDER SECONDS HZ VCPUS: the CPU time (user + sys, ms) of one update of a live page. A
 * recording of SECONDS exists, and one second more comes. The page is read anew, or only its new
 * part. Prints the least of several.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "page/page.h"
#include "recording/follow.h"

#define ROUNDS 5

static const struct uni_page_whole whole = { 1000000, 250000, 65536 };

struct bench {
	struct uni_recorder *rec;
	uint64_t hz, vcpus, n;
};

static double cpu_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Some 400 different chains of 12 frames. */
static void put(struct bench *b, uint64_t seconds)
{
	static uint64_t pc[12];
	static uint8_t flags[12];

	for (uint64_t end = b->n + seconds * b->hz; b->n < end; b->n++) {
		uint64_t r = b->n * 2654435761u >> 7;

		for (size_t i = 0; i < uni_array_len(pc); i++)
			pc[i] = 0xffffffff80000000ull + i * 65536 + (i < 3 ? r % 400 * 16 : 0);
		for (uint32_t v = 0; v < b->vcpus; v++) {
			const struct uni_sample s = { .t_ns = 5 * UNI_NSEC_PER_SEC +
							      b->n * UNI_NSEC_PER_SEC / b->hz,
				.weight = 1,
				.vcpu = v,
				.pause_ns = 40000 + (uint32_t)(r % 5000),
				.nr = uni_array_len(pc),
				.pc = pc,
				.flags = flags };

			uni_recorder_sample(b->rec, &s);
		}
		if (b->n % 1000 == 0)
			(void)uni_recorder_flush(b->rec, NULL);
	}
	(void)uni_recorder_flush(b->rec, NULL);
}

static int write_data(struct uni_page_input *in, size_t *len_ret, struct uni_err *err)
{
	struct uni_page_left left = { 0 };
	struct uni_strbuf data;
	struct uni_sink *out;
	int rc;

	uni_strbuf_init(&data);
	if (uni_sink_open_strbuf(&data, &out) != 0)
		return -UNI_ENOMEM;
	in->whole = whole;
	rc = uni_page_write_data(in, out, &left, err);
	if (uni_sink_close(out, NULL) != 0 && rc == 0)
		rc = -UNI_ENOMEM;
	*len_ret = data.len;
	uni_strbuf_deinit(&data);
	return rc;
}

static int anew(const char *path, const struct uni_build_opts *opts, struct uni_err *err)
{
	struct uni_recording *rec = NULL;
	struct uni_page_input in = { .opts = opts };
	size_t len = 0;
	int rc = uni_recording_open(path, &rec, err);

	in.rec = rec;
	if (rc == 0)
		rc = write_data(&in, &len, err);
	uni_recording_close(rec);
	return rc;
}

static int run(struct bench *b, const char *path, uint64_t seconds, struct uni_err *err)
{
	const struct uni_build_opts opts = UNI_BUILD_DEFAULTS;
	struct uni_page_growing *g = NULL;
	struct uni_follow *f = NULL;
	struct uni_follow_taker to = { uni_page_growing_sample, uni_page_growing_exit, NULL };
	struct uni_page_input in = { .opts = &opts };
	double whole_ms = 1e9, new_ms = 1e9;
	size_t len = 0;
	int rc;

	put(b, seconds);
	rc = uni_follow_open(path, 3 * UNI_NSEC_PER_SEC, &f, err);
	if (rc == 0)
		rc = uni_page_growing_create(uni_follow_recording(f), &opts, &whole, &g);
	to.ctx = in.growing = g;
	if (rc == 0)
		rc = uni_follow_look(f, &to, err);
	in.rec = rc == 0 ? uni_follow_recording(f) : NULL;
	if (rc == 0)
		rc = write_data(&in, &len, err);
	for (int i = 0; rc == 0 && i < ROUNDS; i++) {
		double begin, middle;

		put(b, 1);
		begin = cpu_ms();
		rc = uni_follow_look(f, &to, err);
		if (rc == 0)
			rc = write_data(&in, &len, err);
		middle = cpu_ms();
		if (rc == 0)
			rc = anew(path, &opts, err);
		new_ms = uni_min(new_ms, middle - begin);
		whole_ms = uni_min(whole_ms, cpu_ms() - middle);
	}
	uni_page_growing_destroy(g);
	uni_follow_close(f);
	printf("%" PRIu64 " s: anew %.2f ms, of what is new %.2f ms, %zu bytes\n", seconds,
		whole_ms, new_ms, len);
	return rc;
}

int main(int argc, char **argv)
{
	struct uni_record_meta meta = { .frequency = 99, .realtime_offset_ns = 1 };
	struct bench b = { 0 };
	struct uni_err err = { 0 };
	uint64_t seconds;
	int rc;

	if (argc != 5 || !uni_parse_u64(argv[2], &seconds) || !uni_parse_u64(argv[3], &b.hz) ||
		!uni_parse_u64(argv[4], &b.vcpus) || b.hz == 0 || b.vcpus == 0 || b.vcpus > 64) {
		fprintf(stderr, "usage: growing FOLDER SECONDS HZ VCPUS\n");
		return 2;
	}
	meta.nr_vcpus = (uint32_t)b.vcpus;
	meta.frequency = (double)b.hz;
	(void)snprintf(meta.method, sizeof(meta.method), "pause");
	(void)snprintf(meta.arch, sizeof(meta.arch), "x86_64");
	rc = uni_recorder_create(argv[1], &meta, true, &b.rec, &err);
	if (rc == 0)
		rc = run(&b, argv[1], seconds, &err);
	if (b.rec != NULL)
		(void)uni_recorder_close(b.rec, NULL, 0, NULL);
	if (rc != 0)
		fprintf(stderr, "growing: %d: %s\n", rc, err.msg);
	return rc == 0 ? 0 : 1;
}
