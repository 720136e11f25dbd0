/* SPDX-License-Identifier: BSD-2-Clause */
/* Two ways to make the data of a large recording small. The tree is flat in parts that take little
 * time, and samples that are near each other become one. Sums stay unchanged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "page/near.h"
#include "page/prune.h"

#define FRAMES 50
#define STACKS 20000

static uint64_t seed = 1;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

/* Nodes of random stacks; what is deep and late has little. */
static struct uni_profile *make(uint64_t *self, size_t max)
{
	struct uni_profile *p = uni_profile_create();
	char name[16];

	assert_non_null(p);
	for (unsigned i = 0; i < FRAMES; i++) {
		int len = snprintf(name, sizeof(name), "f%u", i);

		assert_int_equal(uni_profile_frame_named(p, name, (size_t)len, UNI_FK_GUEST), i);
	}
	for (unsigned i = 0; i < STACKS; i++) {
		uint32_t node = 0, depth = 1 + (uint32_t)rnd(12);

		for (uint32_t d = 0; d < depth; d++)
			node = uni_profile_child(p, node, (uint32_t)rnd(rnd(4) == 0 ? FRAMES : 3));
		assert_true(node < max);
		self[node] += 1 + rnd(1000);
	}
	return p;
}

static void totals(const struct uni_profile *p, const uint64_t *self, uint64_t *ret)
{
	uint32_t nr = (uint32_t)uni_profile_nr_nodes(p);

	memcpy(ret, self, nr * sizeof(*ret));
	for (uint32_t i = nr - 1; i > 0; i--)
		ret[uni_profile_node(p, i)->parent] += ret[i];
}

static void check_pruned(const struct uni_profile *p, const uint64_t *self, uint32_t max)
{
	uint32_t nr = (uint32_t)uni_profile_nr_nodes(p), new, *map;
	uint64_t *total = calloc(nr, sizeof(*total)), *mapped = calloc(nr, sizeof(*mapped));
	uint64_t before[FRAMES] = { 0 }, after[FRAMES] = { 0 }, *sum = calloc(nr, sizeof(*sum));
	struct uni_profile *to;
	unsigned kept = 0;

	assert_true(total != NULL && mapped != NULL && sum != NULL);
	totals(p, self, total);
	assert_int_equal(uni_page_prune(p, total, max, &map, &to), 0);
	assert_non_null(to);
	new = (uint32_t)uni_profile_nr_nodes(to);
	assert_in_range(new, 2, uni_max(max, (uint32_t)FRAMES + 2));
	for (uint32_t i = 1; i < nr; i++) {
		uint32_t frame = uni_profile_node(p, i)->frame;

		assert_in_range(map[i], 1, new - 1);
		assert_int_equal(uni_profile_node(to, map[i])->frame, frame);
		mapped[map[i]] += self[i];
		before[frame] += self[i];
	}
	for (uint32_t i = 1; i < new; i++) {
		if (uni_profile_node(to, i)->frame < FRAMES)
			after[uni_profile_node(to, i)->frame] += mapped[i];
	}
	assert_memory_equal(before, after, sizeof(before));
	/* The nodes that take most are where they were, with all that is below them. */
	totals(to, mapped, sum);
	for (uint32_t i = 1; i < nr && max > 100; i++) {
		if (total[i] < total[0] / 50)
			continue;
		kept++;
		assert_int_equal(
			map[uni_profile_node(p, i)->parent], uni_profile_node(to, map[i])->parent);
		assert_int_equal(sum[map[i]], total[i]);
	}
	assert_true(max <= 100 || kept > 3);
	free(total);
	free(mapped);
	free(sum);
	free(map);
	uni_profile_destroy(to);
}

static void flat(void **state)
{
	const size_t max = STACKS * 12;
	uint64_t *self = calloc(max, sizeof(*self)), none[1] = { 0 };
	struct uni_profile *p = make(self, max), *to = p;
	uint32_t *map = (uint32_t *)none;

	assert_true(uni_profile_nr_nodes(p) > 10000);
	check_pruned(p, self, 5000);
	check_pruned(p, self, 1000);
	check_pruned(p, self, 1);
	/* Small enough: it stays. */
	assert_int_equal(uni_page_prune(p, self, (uint32_t)uni_profile_nr_nodes(p), &map, &to), 0);
	assert_true(map == NULL && to == NULL);
	uni_profile_destroy(p);
	free(self);
}

/* Sums of each node, and of the first half of the time. */
static void add_up(const struct uni_near *n, uint64_t half, uint64_t sums[2][8])
{
	memset(sums, 0, 16 * sizeof(uint64_t));
	for (size_t i = 0; i < n->v.nr; i++) {
		const struct uni_near_one *o = &n->v.v[i];

		assert_true(i == 0 || o->t_ns >= n->v.v[i - 1].t_ns);
		sums[0][o->node] += o->sum[0];
		if (o->t_ns < half)
			sums[1][o->node] += o->sum[0];
	}
}

static void fill(struct uni_near *n, size_t nr)
{
	uint64_t t = 1000000;

	seed = 5;
	for (size_t i = 0; i < nr; i++) {
		const struct uni_near_one o = { .t_ns = t,
			.node = (uint32_t)rnd(8),
			.vcpu = (uint32_t)rnd(2),
			.sum = { 1 + rnd(3), rnd(100) } };

		assert_int_equal(uni_near_add(n, &o), 0);
		t += rnd(2000000);
	}
}

static void near_ones(void **state)
{
	static const uint32_t map[8] = { 0, 1, 1, 1, 4, 4, 4, 7 },
			      own[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	const uint64_t half = 1000000 + UINT64_C(100000) * 500000;
	uint64_t want[2][8], got[2][8];
	struct uni_near all = { 0 }, few = { .max = 3000 }, fits = { .max = 3000 };

	fill(&all, 100000);
	uni_near_end(&all, NULL);
	add_up(&all, half, want);
	assert_int_equal(all.v.nr, 100000);
	fill(&few, 100000);
	uni_near_end(&few, own);
	assert_in_range(few.v.nr, 1000, 3000);
	assert_true(few.within_ns > 1000000);
	add_up(&few, half, got);
	assert_memory_equal(got[0], want[0], sizeof(got[0]));
	for (unsigned i = 0; i < 8; i++)
		assert_true(got[1][i] * 100 > want[1][i] * 98 && got[1][i] * 98 < want[1][i] * 100);
	uni_near_end(&few, map);
	assert_in_range(few.v.nr, 500, 2000);
	fill(&fits, 3000);
	uni_near_end(&fits, NULL);
	assert_true(fits.v.nr == 3000 && fits.within_ns == 0);
	uni_near_deinit(&all);
	uni_near_deinit(&few);
	uni_near_deinit(&fits);
}

/* They differ in more than time: room is made. */
static void far_ones(void **state)
{
	struct uni_near n = { .max = 100 };

	for (uint32_t i = 0; i < 1000; i++) {
		const struct uni_near_one o = { .t_ns = i, .node = i, .sum = { 1 } };

		assert_int_equal(uni_near_add(&n, &o), 0);
	}
	uni_near_end(&n, NULL);
	assert_int_equal(n.v.nr, 1000);
	uni_near_deinit(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(flat), cmocka_unit_test(near_ones),
		cmocka_unit_test(far_ones) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
