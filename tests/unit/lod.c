/* SPDX-License-Identifier: BSD-2-Clause */
/* The index of intervals against plain loops over all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "page/lod.h"

struct all {
	struct uni_lod *l;
	struct uni_lod_span *v;
	size_t nr;
};

static uint64_t seed = 1;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

/* Mostly short ones with gaps; now and then one that no 32 bits hold. */
static void make(struct all *a, size_t nr, unsigned one_long_in)
{
	uint64_t t = 1000;

	a->l = uni_lod_create();
	a->v = calloc(nr + 1, sizeof(a->v[0]));
	assert_true(a->l != NULL && a->v != NULL);
	for (a->nr = 0; a->nr < nr; a->nr++) {
		struct uni_lod_span *s = &a->v[a->nr];

		*s = (struct uni_lod_span){ t + rnd(50), rnd(60), (uint32_t)a->nr, 1 };
		if (one_long_in != 0 && rnd(one_long_in) == 0)
			s->dur = UINT32_MAX - 1 + rnd(3) + rnd(2) * rnd(UINT64_C(1) << 33);
		t = s->start + s->dur;
		assert_int_equal(uni_lod_add(a->l, s->start, s->dur, s->id), 0);
		/* As a recording grows: its index is extended, not made anew. */
		if (rnd(500) == 0)
			assert_int_equal(uni_lod_index(a->l), 0);
	}
	assert_int_equal(uni_lod_index(a->l), 0);
	assert_int_equal(uni_lod_nr(a->l), nr);
}

static void unmake(struct all *a)
{
	uni_lod_destroy(a->l);
	free(a->v);
}

static void compare_ranges(const struct all *a)
{
	for (unsigned k = 0; k < 300; k++) {
		size_t from = rnd(a->nr),
		       to = from + 1 +
			    rnd(k % 3 ? a->nr - from : uni_min(a->nr - from, (size_t)200));
		uint64_t sum = 0;
		size_t best = from;

		for (size_t i = from; i < to; i++) {
			sum += a->v[i].dur;
			best = a->v[i].dur > a->v[best].dur ? i : best;
		}
		assert_int_equal(uni_lod_sum(a->l, from, to), sum);
		assert_int_equal(uni_lod_longest(a->l, from, to), best);
	}
}

static void compare_seeks(const struct all *a)
{
	uint64_t end = a->v[a->nr - 1].start + a->v[a->nr - 1].dur;

	for (unsigned k = 0; k < 300; k++) {
		uint64_t t = k == 0 ? 0 : k == 1 ? UINT64_MAX : k == 2 ? end : rnd(end + 100);
		size_t want = 0;

		if (k % 2 == 1 && k > 2)
			t = a->v[rnd(a->nr)].start;
		while (want < a->nr && a->v[want].start < t &&
			a->v[want].dur <= t - a->v[want].start)
			want++;
		assert_int_equal(uni_lod_seek(a->l, t), want);
	}
}

struct seen {
	const struct all *a;
	uint64_t t0, t1;
	double ns;
	uint32_t px;
	size_t at, nr; /* the next interval that is to come; blocks */
	bool first;
};

static double pixel(const struct seen *s, uint64_t t)
{
	return t > s->t0 ? floor((double)(t - s->t0) / s->ns) : 0;
}

/* Blocks cover all intervals, in order; what they say of them is true, and none is too fine. */
static int take(void *ctx, const struct uni_lod_span *b)
{
	struct seen *s = ctx;
	const struct uni_lod_span *v = &s->a->v[s->at];
	uint64_t sum = 0;
	size_t best = 0;

	if (s->first) {
		while (s->at < s->a->nr && v->start < s->t0 && v->dur <= s->t0 - v->start)
			v = &s->a->v[++s->at];
		s->first = false;
	}
	assert_true(b->nr > 0 && s->at < s->a->nr && b->nr <= s->a->nr - s->at);
	assert_int_equal(b->start, v->start);
	for (size_t i = 0; i < b->nr; i++) {
		sum += v[i].dur;
		best = v[i].dur > v[best].dur ? i : best;
		if (b->nr == 1)
			continue;
		assert_true((double)v[i].dur < s->ns);
		/* If there are very many, a few may belong to the next pixel. */
		assert_true(pixel(s, v[i].start) == pixel(s, v->start) ||
			    (b->nr >= 64 && i + 64 >= b->nr &&
				    pixel(s, v[i].start) <= pixel(s, v->start) + 1));
	}
	assert_int_equal(b->dur, sum);
	assert_int_equal(b->id, v[best].id);
	s->at += b->nr;
	s->nr++;
	return 0;
}

static void compare_views(const struct all *a)
{
	static const uint32_t widths[] = { 1, 7, 300, 1600 };
	uint64_t end = a->v[a->nr - 1].start + a->v[a->nr - 1].dur + 500;

	for (unsigned k = 0; k < 60; k++) {
		struct seen s = { .a = a, .first = true, .px = widths[k % 4] };

		s.t0 = k < 4 ? 0 : rnd(end);
		s.t1 = k < 4 ? end : s.t0 + 1 + rnd(1 + ((end - s.t0) >> rnd(20)));
		s.ns = (double)(s.t1 - s.t0) / s.px;
		assert_int_equal(uni_lod_view(a->l, s.t0, s.t1, s.px, take, &s), 0);
		/* Two a pixel at most: narrow ones, then a wide one. */
		assert_true(s.nr <= 2 * (size_t)s.px + 2);
		assert_true(s.at == a->nr || s.first || a->v[s.at].start >= s.t1);
	}
}

static void against_plain_loops(void **state)
{
	static const size_t sizes[] = { 1, 63, 64, 65, 128, 4095, 4096, 4097, 70000, 300000 };
	static const unsigned longs[] = { 0, 1000, 70, 1 };

	for (unsigned k = 0; k < uni_array_len(sizes) * uni_array_len(longs); k++) {
		struct all a;

		make(&a, sizes[k / uni_array_len(longs)], longs[k % uni_array_len(longs)]);
		compare_ranges(&a);
		compare_seeks(&a);
		compare_views(&a);
		unmake(&a);
	}
}

static int count(void *ctx, const struct uni_lod_span *s)
{
	return ++*(int *)ctx == 3 ? 42 : 0;
}

static void edges(void **state)
{
	struct uni_lod *l = uni_lod_create();
	struct uni_lod_span s;
	int n = 0;

	assert_non_null(l);
	assert_int_equal(uni_lod_index(l), 0);
	assert_int_equal(uni_lod_view(l, 0, UINT64_MAX, 100, count, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(uni_lod_seek(l, 5), 0);
	assert_int_equal(uni_lod_add(l, 100, 50, 1), 0);
	/* It begins before the end of the one before; then one that is inside of it. */
	assert_int_equal(uni_lod_add(l, 120, 50, 2), 0);
	assert_int_equal(uni_lod_add(l, 130, 10, 3), 0);
	assert_int_equal(uni_lod_add(l, UINT64_MAX - 5, 100, 4), 0);
	assert_int_equal(uni_lod_nr(l), 0);
	assert_int_equal(uni_lod_index(l), 0);
	assert_int_equal(uni_lod_nr(l), 4);
	s = uni_lod_get(l, 1);
	assert_true(s.start == 150 && s.dur == 20 && s.id == 2);
	s = uni_lod_get(l, 2);
	assert_true(s.start == 170 && s.dur == 0);
	s = uni_lod_get(l, 3);
	assert_true(s.start == UINT64_MAX - 5 && s.dur == 5);
	assert_int_equal(uni_lod_view(l, 0, UINT64_MAX, 1, count, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(uni_lod_view(l, 100, 171, 71, count, &n), 42);
	uni_lod_destroy(l);
	uni_lod_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(against_plain_loops),
		cmocka_unit_test(edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
