/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums by node of any range of time, against a plain loop over all calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "page/blob.h"
#include "page/store.h"

#define THREADS 3
#define DEPTH	3
#define NODES	40
#define CPUS	2 /* 0 and 3 */
#define ROWS	(THREADS * DEPTH * CPUS)

struct call {
	uint64_t start, dur;
	uint32_t row, node;
};

struct all {
	struct uni_page_store *s;
	struct call *v;
	size_t nr;
	uint32_t parent[NODES];
};

static uint64_t seed = 1;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

/* A child of node n at that depth: nodes are 0 the root, then a tree of three each. */
static uint32_t child(uint32_t n)
{
	uint32_t c = 3 * n + 1 + (uint32_t)rnd(3);

	return c < NODES ? c : n;
}

/* Calls in calls, told by their ends as a trace has them. */
static void fill(
	struct all *a, uint32_t thread, unsigned depth, uint32_t node, uint64_t from, uint64_t to)
{
	uint64_t t = from;

	while (depth < DEPTH && t < to) {
		uint64_t start = t + rnd(to - t), end = start + rnd(to - start + 1);
		uint32_t c = child(node), row;

		if (c == node)
			return;
		fill(a, thread, depth + 1, c, start, end);
		row = ((uint32_t)rnd(CPUS) * THREADS + thread) * DEPTH + depth;
		a->v[a->nr++] = (struct call){ start, end - start, row, c };
		assert_int_equal(uni_page_store_add(a->s, row, start, end - start, c), 0);
		t = end + 1;
	}
}

static void make(struct all *a, size_t nr)
{
	*a = (struct all){ .s = uni_page_store_create(), .v = calloc(nr + 100000, sizeof(*a->v)) };
	assert_true(a->s != NULL && a->v != NULL);
	for (uint32_t i = 1; i < NODES; i++)
		a->parent[i] = (i - 1) / 3;
	for (uint32_t row = 0; row < THREADS * DEPTH * CPUS; row++)
		assert_int_equal(uni_page_store_row(a->s, THREADS - 1 - row / DEPTH % THREADS,
					 row % DEPTH, (uint16_t)(row / DEPTH / THREADS * 3)),
			row);
	for (uint64_t t = 5000; a->nr < nr; t += 1000)
		fill(a, (uint32_t)rnd(THREADS), 0, 0, t, t + 990);
	assert_int_equal(uni_page_store_finish(a->s, a->parent, NODES), 0);
	assert_int_equal(uni_page_store_nr(a->s), a->nr);
}

static void plain(
	const struct all *a, uint64_t t0, uint64_t t1, struct uni_page_who who, uint64_t *ret)
{
	uint64_t begin = uni_page_store_begin(a->s);

	memset(ret, 0, NODES * sizeof(*ret));
	for (size_t i = 0; i < a->nr; i++) {
		const struct call *c = &a->v[i];
		uint64_t from = uni_max(c->start - begin, t0),
			 to = uni_min(c->start - begin + c->dur, t1);

		/* Rows were declared by threads in reverse. */
		if (from < to &&
			(who.thread < 0 || THREADS - 1 - c->row / DEPTH % THREADS == who.thread) &&
			(who.cpu < 0 || c->row / DEPTH / THREADS * 3 == who.cpu))
			ret[c->node] += to - from;
	}
	/* The caller may have been on another vCPU. */
	for (uint32_t i = 1; i < NODES; i++) {
		if (a->parent[i] != 0)
			ret[a->parent[i]] -= uni_min(ret[a->parent[i]], ret[i]);
	}
}

static void sums(void **state)
{
	static const size_t sizes[] = { 1, 100, 30000 };

	for (unsigned k = 0; k < uni_array_len(sizes); k++) {
		struct all a;
		uint64_t all, got[NODES], want[NODES];

		make(&a, sizes[k]);
		all = uni_page_store_end(a.s) - uni_page_store_begin(a.s);
		for (unsigned i = 0; i < 200; i++) {
			uint64_t t0 = i == 0 ? 0 : rnd(all + 1),
				 t1 = i == 0 ? UINT64_MAX : t0 + rnd(all + 10);
			struct uni_page_who who = { (int64_t)rnd(THREADS + 2) - 1,
				(int64_t)rnd(5) - 1 };

			plain(&a, t0, t1, who, want);
			assert_int_equal(uni_page_store_sums(a.s, t0, t1, who, got), 0);
			assert_memory_equal(got, want, sizeof(got));
		}
		uni_page_store_destroy(a.s);
		free(a.v);
	}
}

static void rows(void **state)
{
	struct uni_blob b = { 0 };
	struct uni_strbuf reply;
	struct uni_page_row row;
	struct all a;
	uint64_t nr = 0;

	make(&a, 30000);
	assert_int_equal(uni_page_store_nr_rows(a.s), ROWS);
	for (uint32_t i = 0; i < ROWS; i++) {
		row = uni_page_store_get_row(a.s, i);
		assert_true(row.thread == i / CPUS / DEPTH && row.depth == i / CPUS % DEPTH &&
			    row.cpu == i % CPUS * 3);
		nr += row.nr;
	}
	assert_int_equal(nr, a.nr);
	/* A request beyond the last row, or for no time, gives nothing. */
	uni_page_store_put_rows(a.s, &b, 0, 1000000, 500, ROWS - 1, 1000);
	assert_int_equal(b.columns.v[2]->nr, 1);
	assert_in_range(b.columns.v[4]->nr, 1, 1002);
	uni_blob_deinit(&b);
	b = (struct uni_blob){ 0 };
	uni_page_store_put_rows(a.s, &b, 5, 5, UINT32_MAX, UINT32_MAX, UINT32_MAX);
	assert_int_equal(b.columns.v[2]->nr, 0);
	uni_blob_deinit(&b);
	uni_strbuf_init(&reply);
	assert_int_equal(uni_page_store_reply_rows(a.s, 0, UINT64_MAX, 1600, 0, 100, &reply), 0);
	assert_memory_equal(reply.s, "UPG1", 4);
	uni_strbuf_reset(&reply);
	assert_int_equal(
		uni_page_store_reply_sums(a.s, 0, 0, (struct uni_page_who){ -1, -1 }, &reply), 0);
	assert_memory_equal(reply.s, "UPG1", 4);
	uni_strbuf_deinit(&reply);
	uni_page_store_destroy(a.s);
	free(a.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(sums), cmocka_unit_test(rows) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
