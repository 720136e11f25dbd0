/* SPDX-License-Identifier: BSD-2-Clause */
/* lod INTERVALS [ROWS [PIXELS]]: the cost of the index of intervals, of views, and of a store's
 * replies for as many calls. A reply is the view or the sums that a page gets. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "page/lod.h"
#include "page/store.h"

#define VIEWS 40
#define NODES 100000u

static uint64_t seed = 1, blocks;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

/* Counts this process only, so that other load matters less. */
static uint64_t cpu_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return uni_timespec_ns(&ts);
}

static int count(void *ctx, const struct uni_lod_span *s)
{
	blocks++;
	*(uint64_t *)ctx += s->dur;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void views(
	struct uni_lod *const *row, uint64_t rows, uint64_t end, uint32_t px, uint64_t zoom)
{
	uint64_t ns[VIEWS], sum = 0;

	blocks = 0;
	for (unsigned i = 0; i < VIEWS; i++) {
		uint64_t t0 = zoom > 1 ? rnd(end - end / zoom) : 0, begin = cpu_ns();

		for (uint64_t r = 0; r < rows; r++)
			(void)uni_lod_view(row[r], t0, t0 + end / zoom, px, count, &sum);
		ns[i] = cpu_ns() - begin;
	}
	qsort(ns, VIEWS, sizeof(ns[0]), by_value);
	printf("view %8" PRIu64 "x: median %7.3f ms, p95 %7.3f ms, %" PRIu64 " blocks, %016" PRIx64
	       "\n",
		zoom, (double)ns[VIEWS / 2] / 1e6, (double)ns[VIEWS * 95 / 100] / 1e6,
		blocks / VIEWS, sum);
}

static void say(const char *what, uint64_t zoom, uint64_t *ns, uint64_t bytes)
{
	qsort(ns, VIEWS, sizeof(ns[0]), by_value);
	printf("%s %8" PRIu64 "x: median %7.3f ms, p95 %7.3f ms, %" PRIu64 " bytes\n", what, zoom,
		(double)ns[VIEWS / 2] / 1e6, (double)ns[VIEWS * 95 / 100] / 1e6, bytes / VIEWS);
}

static void replies(const struct uni_page_store *s, uint32_t rows, uint32_t px, uint64_t zoom)
{
	uint64_t end = uni_page_store_end(s) - uni_page_store_begin(s), ns[VIEWS], sums[VIEWS];
	uint64_t bytes = 0, sum_bytes = 0;
	struct uni_strbuf reply;

	uni_strbuf_init(&reply);
	for (unsigned i = 0; i < VIEWS; i++) {
		uint64_t t0 = zoom > 1 ? rnd(end - end / zoom) : 0, begin = cpu_ns();

		uni_strbuf_reset(&reply);
		(void)uni_page_store_reply_rows(s, t0, t0 + end / zoom, px, 0, rows, &reply);
		ns[i] = cpu_ns() - begin;
		bytes += reply.len;
		begin = cpu_ns();
		uni_strbuf_reset(&reply);
		(void)uni_page_store_reply_sums(
			s, t0, t0 + end / zoom, (struct uni_page_who){ -1, -1 }, &reply);
		sums[i] = cpu_ns() - begin;
		sum_bytes += reply.len;
	}
	say("rows", zoom, ns, bytes);
	say("sums", zoom, sums, sum_bytes);
	uni_strbuf_deinit(&reply);
}

static int stores(uint64_t nr, uint32_t rows, uint32_t px)
{
	struct uni_page_store *s = uni_page_store_create();
	uint32_t *parent = calloc(NODES, sizeof(*parent));
	uint64_t begin;

	for (uint32_t i = 1; parent != NULL && i < NODES; i++)
		parent[i] = (i - 1) / 4;
	for (uint32_t r = 0; s != NULL && r < rows; r++) {
		uint64_t t = 0;

		if (uni_page_store_row(s, 0, r, 0) < 0)
			return 1;
		/* Calls come back to what was called just now. */
		for (uint64_t i = 0; i < nr / rows; i++) {
			uint64_t dur = 100 + rnd(rnd(100) == 0 ? 100000 : 2000);
			uint32_t node = (uint32_t)((i / 400 * 97 + rnd(400)) % NODES);

			if (uni_page_store_add(s, r, t + rnd(300), dur, node) != 0)
				return 1;
			t += dur + 150;
		}
	}
	begin = cpu_ns();
	if (s == NULL || parent == NULL || uni_page_store_finish(s, parent, NODES) != 0)
		return 1;
	printf("store: index and sums of %u nodes in %.2f ns a call\n", NODES,
		(double)(cpu_ns() - begin) / (double)nr);
	for (uint64_t zoom = 1; zoom <= 100000; zoom *= 10)
		replies(s, rows, px, zoom);
	uni_page_store_destroy(s);
	free(parent);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t nr = 0, rows = 24, px = 1600, end = 0, add_ns = 0, index_ns = 0, t = 0, begin;
	size_t bytes = 0;
	struct uni_lod **row;

	if (argc < 2 || !uni_parse_u64(argv[1], &nr) ||
		(argc > 2 && !uni_parse_u64(argv[2], &rows)) ||
		(argc > 3 && !uni_parse_u64(argv[3], &px)) || rows == 0 || px == 0 || nr < rows) {
		fprintf(stderr, "usage: lod INTERVALS [ROWS [PIXELS]]\n");
		return 2;
	}
	row = calloc(rows, sizeof(struct uni_lod *));
	for (uint64_t r = 0; row != NULL && r < rows; r++) {
		row[r] = uni_lod_create();
		if (row[r] == NULL)
			return 1;
		t = 0;
		begin = cpu_ns();
		for (uint64_t i = 0; i < nr / rows; i++) {
			uint64_t dur = 100 + rnd(rnd(100) == 0 ? 100000 : 2000);

			if (uni_lod_add(row[r], t + rnd(300), dur, (uint32_t)rnd(100000)) != 0)
				return 1;
			t += dur + 150;
		}
		add_ns += cpu_ns() - begin;
		begin = cpu_ns();
		if (uni_lod_index(row[r]) != 0)
			return 1;
		index_ns += cpu_ns() - begin;
		bytes += uni_lod_index_bytes(row[r]);
		end = uni_max(end, t);
	}
	printf("%" PRIu64 " intervals in %" PRIu64
	       " rows: made in %.2f ns each, index %.2f ns and %.3f bytes each\n",
		nr, rows, (double)add_ns / (double)nr, (double)index_ns / (double)nr,
		(double)bytes / (double)nr);
	for (uint64_t zoom = 1; zoom <= 1000000; zoom *= 10)
		views(row, rows, end, (uint32_t)px, zoom);
	for (uint64_t r = 0; row != NULL && r < rows; r++)
		uni_lod_destroy(row[r]);
	free(row);
	return stores(nr, (uint32_t)rows, (uint32_t)px);
}
