/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/pile.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "profile/order.h"
#include "profile/profile_priv.h"

#define FEW	 16 /* up to which moving them one by one is quicker */
#define AHEAD	 8  /* stacks whose frames are fetched before they are needed */
#define NR_BYTES 256

struct keyed {
	uint64_t key; /* the ranks of its next few frames, each + 1; 0 after the leaf */
	uint32_t stack;
};

struct sorter {
	const struct uni_pile *pile;
	const uint32_t *rank;
	struct keyed *tmp;
	unsigned bits, frames; /* of a rank + 1; frames a key */
};

bool uni_pile_add(
	struct uni_pile *pile, const uint32_t *frames, size_t nr, double value, double value2)
{
	struct uni_pile_stack s = {
		.at = pile->frames.nr, .nr = (uint32_t)nr, .value = value, .value2 = value2
	};

	if (nr >= UINT32_MAX || pile->stacks.nr >= UNI_NODE_NONE - 1 ||
		!uni_vec_grow(&pile->frames, nr) || !uni_vec_push(&pile->stacks, s))
		return false;
	for (size_t i = 0; i < nr; i++)
		pile->frames.v[pile->frames.nr + i] = frames[i];
	pile->frames.nr += nr;
	return true;
}

void uni_pile_deinit(struct uni_pile *pile)
{
	uni_vec_free(&pile->frames);
	uni_vec_free(&pile->stacks);
}

/* Is a after b in the order? They are the same up to `depth`. */
static bool is_behind(const struct sorter *s, uint32_t a, uint32_t b, size_t depth)
{
	const struct uni_pile_stack *x = &s->pile->stacks.v[a], *y = &s->pile->stacks.v[b];
	const uint32_t *f = s->pile->frames.v + x->at, *g = s->pile->frames.v + y->at;
	size_t d = depth;

	while (d < x->nr && d < y->nr && f[d] == g[d])
		d++;
	if (d == x->nr || d == y->nr)
		return d != x->nr;
	return s->rank[f[d]] > s->rank[g[d]];
}

static void sort_few(const struct sorter *s, struct keyed *k, size_t nr, size_t depth)
{
	for (size_t i = 1; i < nr; i++) {
		struct keyed v = k[i];
		size_t j = i;

		for (; j != 0 && is_behind(s, k[j - 1].stack, v.stack, depth); j--)
			k[j] = k[j - 1];
		k[j] = v;
	}
}

/* A stable sort by one byte after the other, from the lowest; skips bytes that are the same in
 * all. */
static void sort_many(struct sorter *s, struct keyed *k, size_t nr)
{
	struct keyed *from = k, *to = s->tmp;
	uint64_t differ = 0;

	for (size_t i = 1; i < nr; i++)
		differ |= k[i].key ^ k[0].key;
	for (unsigned shift = 0; shift < 64; shift += 8) {
		uint32_t count[NR_BYTES] = { 0 }, sum = 0;
		struct keyed *swap = from;

		if ((differ >> shift & 0xff) == 0)
			continue;
		for (size_t i = 0; i < nr; i++)
			count[from[i].key >> shift & 0xff]++;
		for (size_t b = 0; b < NR_BYTES; b++) {
			uint32_t n = count[b];

			count[b] = sum;
			sum += n;
		}
		for (size_t i = 0; i < nr; i++)
			to[count[from[i].key >> shift & 0xff]++] = from[i];
		from = to;
		to = swap;
	}
	if (from != k)
		memcpy(k, from, nr * sizeof(*k));
}

static void make_keys(const struct sorter *s, struct keyed *k, size_t nr, size_t depth)
{
	for (size_t i = 0; i < nr; i++) {
		const struct uni_pile_stack *stack = &s->pile->stacks.v[k[i].stack];
		const uint32_t *frames = s->pile->frames.v + stack->at;
		uint64_t key = 0;

		for (size_t d = depth; d < depth + s->frames; d++)
			key = key << s->bits | (d < stack->nr ? s->rank[frames[d]] + 1 : 0);
		k[i].key = key;
	}
}

/* Recursion is as deep as the deepest stack has keys: some thousand at most. */
static void sort_from(struct sorter *s, struct keyed *k, size_t nr, size_t depth)
{
	const uint64_t last = (UINT64_C(1) << s->bits) - 1;

	if (nr <= FEW) {
		sort_few(s, k, nr, depth);
		return;
	}
	make_keys(s, k, nr, depth);
	sort_many(s, k, nr);
	for (size_t i = 0, end; i < nr; i = end) {
		for (end = i + 1; end < nr && k[end].key == k[i].key;)
			end++;
		if (end - i > 1 && (k[i].key & last) != 0)
			sort_from(s, k + i, end - i, depth + s->frames);
	}
}

static uint32_t shared_prefix(
	const struct uni_pile *pile, const struct uni_pile_stack *a, const struct uni_pile_stack *b)
{
	const uint32_t *x = pile->frames.v + a->at, *y = pile->frames.v + b->at;
	uint32_t n = 0;

	while (n < a->nr && n < b->nr && x[n] == y[n])
		n++;
	return n;
}

static unsigned bits_of(size_t nr)
{
	unsigned bits = 1;

	while (bits < 32 && nr >> bits != 0)
		bits++;
	return bits;
}

/* Stores the frames that each stack adds to the one before it, one after the other: all later
 * accesses are sequential. */
static bool line_up(const struct uni_pile *pile, const struct keyed *keys, struct uni_pile *ret)
{
	const struct uni_pile_stack *last = NULL;

	if (!uni_vec_grow_to(&ret->stacks, pile->stacks.nr) || ret->stacks.v == NULL)
		return pile->stacks.nr == 0;
	for (size_t i = 0; i < pile->stacks.nr; i++) {
		const struct uni_pile_stack *s = &pile->stacks.v[keys[i].stack];
		struct uni_pile_stack *to = &ret->stacks.v[i];

		if (i + 2 * AHEAD < pile->stacks.nr)
			__builtin_prefetch(&pile->stacks.v[keys[i + 2 * AHEAD].stack]);
		if (i + AHEAD < pile->stacks.nr)
			__builtin_prefetch(
				pile->frames.v + pile->stacks.v[keys[i + AHEAD].stack].at);
		*to = *s;
		to->same = last != NULL ? shared_prefix(pile, last, s) : 0;
		to->at = ret->frames.nr;
		if (!uni_vec_grow(&ret->frames, (size_t)to->nr - to->same + 1) ||
			ret->frames.v == NULL)
			return false;
		for (uint32_t d = to->same; d < s->nr; d++)
			ret->frames.v[ret->frames.nr++] = pile->frames.v[s->at + d];
		last = s;
	}
	ret->stacks.nr = pile->stacks.nr;
	return true;
}

/* By frames, root first, each by its rank (uni_profile_frame_ranks()); equal ones keep their order.
 * Afterwards each stack has only the frames that the stack before it lacks. false: out of
 * memory. */
static bool sort_pile(struct uni_pile *pile, const uint32_t *rank, size_t nr_ranks)
{
	const size_t nr = pile->stacks.nr;
	_cleanup_free_ struct keyed *keys = calloc(nr + 1, sizeof(*keys));
	_cleanup_free_ struct keyed *tmp = calloc(nr + 1, sizeof(*tmp));
	struct sorter s = { .pile = pile, .rank = rank, .tmp = tmp, .bits = bits_of(nr_ranks) };
	struct uni_pile sorted = { 0 };

	if (keys == NULL || tmp == NULL)
		return false;
	s.frames = 64 / s.bits;
	for (size_t i = 0; i < nr; i++)
		keys[i].stack = (uint32_t)i;
	sort_from(&s, keys, nr, 0);
	if (!line_up(pile, keys, &sorted)) {
		uni_pile_deinit(&sorted);
		return false;
	}
	uni_pile_deinit(pile);
	*pile = sorted;
	return true;
}

/* Room for the nodes of all, and no more. */
static bool reserve_nodes(struct uni_profile *p)
{
	size_t nr = 0;

	uni_vec_foreach (s, &p->pile.stacks)
		nr += s->nr - s->same;
	return nr < UNI_NODE_NONE - 1 - p->nodes.nr && uni_vec_grow_to(&p->nodes, nr) &&
	       (!p->has_second || uni_vec_grow_to(&p->seconds, nr));
}

/* path: the nodes of the stack before, of which the first `same` are this one's; *deep: how many.
 */
static void make_nodes(
	struct uni_profile *p, const struct uni_pile_stack *s, uint32_t *path, size_t *deep)
{
	const uint32_t *frames = p->pile.frames.v + s->at;
	const uint32_t same = s->same;
	uint32_t node = same != 0 ? path[same - 1] : UNI_NODE_ROOT;

	for (uint32_t d = same; d < s->nr; d++) {
		uint32_t made = (uint32_t)p->nodes.nr++;

		p->nodes.v[made] = (struct uni_node){ .frame = frames[d - same],
			.parent = node,
			.child = UNI_NODE_NONE,
			.next = UNI_NODE_NONE };
		if (d == same && *deep > same)
			p->nodes.v[path[d]].next = made;
		else
			p->nodes.v[node].child = made;
		if (p->has_second)
			p->seconds.v[p->seconds.nr++] = (struct uni_second){ 0 };
		path[d] = made;
		node = made;
	}
	*deep = s->nr;
	p->nodes.v[node].self += s->value;
	if (p->has_second)
		p->seconds.v[node].self += s->value2;
}

int uni_pile_build(struct uni_profile *p)
{
	struct uni_pile *pile = &p->pile;
	_cleanup_free_ uint32_t *rank = uni_profile_frame_ranks(p);
	_cleanup_free_ uint32_t *path = NULL;
	size_t deep = 0, deepest = 0;

	uni_vec_foreach (s, &pile->stacks)
		deepest = s->nr > deepest ? s->nr : deepest;
	path = calloc(deepest + 1, sizeof(*path));
	if (rank == NULL || path == NULL || !sort_pile(pile, rank, p->frames.nr) ||
		!reserve_nodes(p))
		return -UNI_ENOMEM;
	uni_vec_foreach (s, &pile->stacks)
		make_nodes(p, s, path, &deep);
	uni_pile_deinit(pile);
	return 0;
}

int uni_profile_finish_pile(struct uni_profile *p)
{
	_cleanup_free_ uint32_t *rank = NULL;
	struct uni_node *root = &p->nodes.v[UNI_NODE_ROOT];

	if (!p->piles)
		return uni_profile_finish(p);
	uni_profile_drop_finders(p);
	rank = uni_profile_frame_ranks(p);
	if (rank == NULL || !sort_pile(&p->pile, rank, p->frames.nr))
		return -UNI_ENOMEM;
	uni_vec_foreach (s, &p->pile.stacks) {
		root->total += s->value;
		if (p->has_second)
			p->seconds.v[UNI_NODE_ROOT].total += s->value2;
	}
	p->finished = p->is_pile = true;
	return 0;
}

const struct uni_pile *uni_profile_pile(const struct uni_profile *p)
{
	return p->is_pile ? &p->pile : NULL;
}
