/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/err.h"
#include "page/lod_priv.h"

#define WAYS   UNI_LOD_WAYS
#define LEVELS UNI_LOD_LEVELS
#define LONG   UNI_LOD_LONG

struct uni_lod *uni_lod_create(void)
{
	return calloc(1, sizeof(struct uni_lod));
}

void uni_lod_destroy(struct uni_lod *l)
{
	if (l == NULL)
		return;
	for (unsigned k = 0; k < LEVELS; k++) {
		uni_vec_free(&l->level[k].max);
		uni_vec_free(&l->level[k].at);
	}
	uni_vec_free(&l->start);
	uni_vec_free(&l->dur);
	uni_vec_free(&l->id);
	uni_vec_free(&l->over);
	uni_vec_free(&l->sum);
	uni_vec_free(&l->tick);
	uni_vec_free(&l->group);
	free(l);
}

/* The index of the first of `over` that is i or above. */
static size_t over_from(const struct uni_lod *l, size_t i)
{
	size_t from = 0, to = l->over.nr;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (l->over.v[mid].i < i)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

uint64_t uni_lod_dur(const struct uni_lod *l, size_t i)
{
	return l->dur.v[i] != LONG ? l->dur.v[i] : l->over.v[over_from(l, i)].dur;
}

int uni_lod_add(struct uni_lod *l, uint64_t start, uint64_t dur, uint32_t id)
{
	size_t n = l->start.nr;

	if (n != 0) {
		uint64_t end = l->start.v[n - 1] + uni_lod_dur(l, n - 1);

		dur -= start < end ? uni_min(dur, end - start) : 0;
		start = uni_max(start, end);
	}
	dur = uni_min(dur, UINT64_MAX - start);
	if (!uni_vec_grow(&l->start, 1) || !uni_vec_grow(&l->dur, 1) || !uni_vec_grow(&l->id, 1))
		return -UNI_ENOMEM;
	if (dur >= LONG && !uni_vec_push(&l->over, ((struct uni_lod_over){ n, dur })))
		return -UNI_ENOMEM;
	l->start.v[l->start.nr++] = start;
	l->dur.v[l->dur.nr++] = dur < LONG ? (uint32_t)dur : LONG;
	l->id.v[l->id.nr++] = id;
	return 0;
}

/* For at most a few thousand values; the compiler vectorises this loop. */
static uint32_t max_of(const uint32_t *v, size_t n)
{
	uint32_t max = 0;

	for (size_t i = 0; i < n; i++)
		max = v[i] > max ? v[i] : max;
	return max;
}

static size_t first_of(const uint32_t *v, uint32_t want)
{
	size_t i = 0;

	while (v[i] != want)
		i++;
	return i;
}

/* The longest of i <= .. < to among those with a duration of LONG or more. */
static size_t longest_over(const struct uni_lod *l, size_t i, size_t to)
{
	size_t k = over_from(l, i), best = k;

	for (; k < l->over.nr && l->over.v[k].i < to; k++) {
		if (l->over.v[k].dur > l->over.v[best].dur)
			best = k;
	}
	return l->over.v[best].i;
}

static uint64_t sum_of(const struct uni_lod *l, size_t from, size_t to)
{
	uint64_t sum = 0;
	bool has_long = false;

	for (size_t i = from; i < to; i++) {
		sum += l->dur.v[i];
		has_long |= l->dur.v[i] == LONG;
	}
	if (!has_long)
		return sum;
	for (size_t k = over_from(l, from); k < l->over.nr && l->over.v[k].i < to; k++)
		sum += l->over.v[k].dur - LONG;
	return sum;
}

static bool push_longest(struct uni_lod_level *to, uint32_t max, size_t at)
{
	return uni_vec_push(&to->max, max) && uni_vec_push(&to->at, (uint8_t)at);
}

static uint64_t sum_of_block(const struct uni_lod *l, size_t block)
{
	return l->sum.v[block] != LONG ? l->sum.v[block]
				       : sum_of(l, block * WAYS, (block + 1) * WAYS);
}

/* The sum of all before i; the index has it, except for the last few. */
static uint64_t sum_to(const struct uni_lod *l, size_t i)
{
	size_t block = i / WAYS, group = block / WAYS;
	uint64_t sum = 0;

	if (l->group.nr != 0) {
		group = uni_min(group, l->group.nr - 1);
		sum = l->group.v[group].before;
	}
	for (size_t k = group * WAYS; k < block; k++)
		sum += sum_of_block(l, k);
	return sum + sum_of(l, block * WAYS, i);
}

static bool begin_group(struct uni_lod *l, size_t first)
{
	struct uni_lod_group g = { .start = l->start.v[first], .before = sum_to(l, first) };

	return uni_vec_push(&l->group, g);
}

/* A longer group has coarser ticks, so that they fit in 32 bits. */
static void set_ticks(struct uni_lod *l, size_t block)
{
	struct uni_lod_group *g = &l->group.v[block / WAYS];
	uint64_t since = l->start.v[block * WAYS] - g->start;
	unsigned shift = g->shift;

	while (since >> shift > UINT32_MAX)
		shift++;
	for (size_t i = block / WAYS * WAYS; shift != g->shift && i < block; i++)
		l->tick.v[i] >>= shift - g->shift;
	g->shift = shift;
	l->tick.v[block] = (uint32_t)(since >> shift);
}

static int index_block(struct uni_lod *l, size_t block)
{
	const uint32_t *dur = l->dur.v + block * WAYS;
	uint32_t max = max_of(dur, WAYS);
	size_t at = max == LONG ? longest_over(l, block * WAYS, (block + 1) * WAYS) - block * WAYS
				: first_of(dur, max);
	uint64_t sum = sum_of(l, block * WAYS, (block + 1) * WAYS);

	if ((block % WAYS == 0 && !begin_group(l, block * WAYS)) ||
		!push_longest(&l->level[0], max, at) || !uni_vec_push(&l->tick, 0) ||
		!uni_vec_push(&l->sum, (uint32_t)uni_min(sum, (uint64_t)LONG)))
		return -UNI_ENOMEM;
	set_ticks(l, block);
	return 0;
}

/* The interval that belongs to an entry of a level. */
static size_t entry_interval(const struct uni_lod *l, unsigned level, size_t i)
{
	for (unsigned k = level + 1; k-- > 0;)
		i = i * WAYS + l->level[k].at.v[i];
	return i;
}

static int index_up(struct uni_lod *l, unsigned level)
{
	const struct uni_lod_level *below = &l->level[level - 1];
	struct uni_lod_level *to = &l->level[level];

	while (below->max.nr / WAYS > to->max.nr) {
		size_t first = to->max.nr * WAYS, at;
		uint32_t max = max_of(below->max.v + first, WAYS);

		at = first_of(below->max.v + first, max);
		for (size_t i = at + 1; max == LONG && i < WAYS; i++) {
			if (below->max.v[first + i] == LONG &&
				uni_lod_dur(l, entry_interval(l, level - 1, first + i)) >
					uni_lod_dur(l, entry_interval(l, level - 1, first + at)))
				at = i;
		}
		if (!push_longest(to, max, at))
			return -UNI_ENOMEM;
	}
	return 0;
}

int uni_lod_index(struct uni_lod *l)
{
	int rc = 0;

	for (size_t i = l->sum.nr; rc == 0 && i < l->dur.nr / WAYS; i++)
		rc = index_block(l, i);
	for (unsigned k = 1; rc == 0 && k < LEVELS; k++)
		rc = index_up(l, k);
	if (rc == 0)
		l->nr = l->dur.nr;
	return rc;
}

size_t uni_lod_nr(const struct uni_lod *l)
{
	return l->nr;
}

size_t uni_lod_index_bytes(const struct uni_lod *l)
{
	size_t bytes =
		l->sum.nr * 2 * sizeof(uint32_t) + l->group.nr * sizeof(struct uni_lod_group);

	for (unsigned k = 0; k < LEVELS; k++)
		bytes += l->level[k].max.nr * (sizeof(uint32_t) + sizeof(uint8_t));
	return bytes;
}

struct uni_lod_span uni_lod_get(const struct uni_lod *l, size_t i)
{
	return (struct uni_lod_span){ l->start.v[i], uni_lod_dur(l, i), l->id.v[i], 1 };
}

/* The first of from <= i < to that begins at t or later. */
size_t uni_lod_search(const struct uni_lod *l, size_t from, size_t to, uint64_t t)
{
	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (l->start.v[mid] < t)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

size_t uni_lod_seek(const struct uni_lod *l, uint64_t t)
{
	size_t i = uni_lod_search(l, 0, l->nr, t);

	return i > 0 && uni_lod_dur(l, i - 1) > t - l->start.v[i - 1] ? i - 1 : i;
}

uint64_t uni_lod_sum(const struct uni_lod *l, size_t from, size_t to)
{
	size_t a = (from + WAYS - 1) / WAYS, z = to / WAYS;
	uint64_t sum;

	if (from >= to)
		return 0;
	if (a >= z || z - a > WAYS)
		return sum_to(l, to) - sum_to(l, from);
	sum = sum_of(l, from, a * WAYS) + sum_of(l, z * WAYS, to);
	for (; a < z; a++)
		sum += sum_of_block(l, a);
	return sum;
}

struct best {
	uint32_t max;
	size_t i;
	bool any;
};

/* level 0: the intervals; level k: the entries of level[k - 1]. */
static void look_up_longest(
	const struct uni_lod *l, unsigned level, size_t from, size_t to, struct best *b)
{
	const uint32_t *v = level == 0 ? l->dur.v : l->level[level - 1].max.v;
	uint32_t max;

	if (from >= to)
		return;
	max = max_of(v + from, to - from);
	if (b->any && max < b->max)
		return;
	/* If two are equal, the search from the left finds the first one. */
	from += first_of(v + from, max);
	if (level != 0)
		from = entry_interval(l, level - 1, from);
	if (!b->any || max > b->max || from < b->i)
		*b = (struct best){ max, from, true };
}

size_t uni_lod_longest_dur(const struct uni_lod *l, size_t from, size_t to, uint64_t *dur_ret)
{
	struct best b = { .i = from };
	size_t a = from, z = to;

	for (unsigned level = 0; a < z; level++) {
		bool top = level == LEVELS;
		size_t up = top ? z : uni_min(z, (a + WAYS - 1) / WAYS * WAYS);
		size_t down = top ? z : uni_max(up, z / WAYS * WAYS);

		look_up_longest(l, level, a, up, &b);
		look_up_longest(l, level, down, z, &b);
		a = up / WAYS;
		z = down / WAYS;
	}
	if (b.max == LONG)
		b.i = longest_over(l, from, to);
	*dur_ret = b.max == LONG ? uni_lod_dur(l, b.i) : b.max;
	return b.i;
}

size_t uni_lod_longest(const struct uni_lod *l, size_t from, size_t to)
{
	uint64_t dur;

	return uni_lod_longest_dur(l, from, to, &dur);
}
