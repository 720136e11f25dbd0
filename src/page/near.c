/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/near.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/err.h"

#define PIECES 1024u /* of the time so far, at first */
#define WIDER  4u

static int compare_near(const void *a, const void *b)
{
	const struct uni_near_one *x = a, *y = b;
	const uint32_t p[] = { x->node, x->vcpu, x->thread, x->kind, x->guest };
	const uint32_t q[] = { y->node, y->vcpu, y->thread, y->kind, y->guest };

	if (x->t_ns != y->t_ns)
		return x->t_ns < y->t_ns ? -1 : 1;
	for (size_t i = 0; i < uni_array_len(p); i++) {
		if (p[i] != q[i])
			return p[i] < q[i] ? -1 : 1;
	}
	return 0;
}

/* Sums up equal samples from `from` on. Their times become the begins of their pieces. */
static void combine_equal(struct uni_near *n, size_t from)
{
	size_t to = from;

	for (size_t i = from; i < n->v.nr; i++)
		n->v.v[i].t_ns -= (n->v.v[i].t_ns - n->first_ns) % n->within_ns;
	if (n->v.nr > from)
		qsort(n->v.v + from, n->v.nr - from, sizeof(n->v.v[0]), compare_near);
	for (size_t i = from; i < n->v.nr; i++) {
		struct uni_near_one *one = &n->v.v[i];

		if (to == from || compare_near(one, &n->v.v[to - 1]) != 0) {
			n->v.v[to++] = *one;
			continue;
		}
		for (size_t k = 0; k < UNI_NEAR_SUMS; k++)
			n->v.v[to - 1].sum[k] += one->sum[k];
	}
	n->v.nr = to;
	n->from = to;
}

/*
 * Widens the pieces until half of the room is free. Samples that differ in more than time get more
 * room.
 */
static void widen_until_room(struct uni_near *n)
{
	uint64_t all = n->v.v[n->v.nr - 1].t_ns - n->first_ns + 1;

	n->widened++;
	if (n->within_ns == 0)
		n->within_ns = uni_max(all / PIECES, (uint64_t)UNI_NSEC_PER_USEC);
	combine_equal(n, 0);
	while (n->v.nr > n->max / 2 && n->within_ns < all) {
		n->within_ns *= WIDER;
		combine_equal(n, 0);
	}
	if (n->v.nr > n->max / 2)
		n->max *= 2;
}

int uni_near_add(struct uni_near *n, const struct uni_near_one *one)
{
	struct uni_near_one o = *one;
	uint64_t piece;

	if (n->v.nr == 0)
		n->first_ns = o.t_ns;
	o.t_ns = uni_max(o.t_ns, n->v.nr != 0 ? n->v.v[n->v.nr - 1].t_ns : 0);
	if (n->within_ns != 0) {
		piece = (o.t_ns - n->first_ns) / n->within_ns;
		if (piece != n->piece)
			combine_equal(n, n->from);
		n->piece = piece;
	}
	if (n->max != 0 && n->v.nr >= n->max)
		widen_until_room(n);
	return uni_vec_push(&n->v, o) ? 0 : -UNI_ENOMEM;
}

void uni_near_end(struct uni_near *n, const uint32_t *map)
{
	for (size_t i = 0; map != NULL && i < n->v.nr; i++)
		n->v.v[i].node = map[n->v.v[i].node];
	if (n->within_ns != 0)
		combine_equal(n, 0);
}

void uni_near_deinit(struct uni_near *n)
{
	uni_vec_free(&n->v);
}
