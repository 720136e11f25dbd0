/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/prune.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "profile/copy.h"

struct pruner {
	const struct uni_profile *p;
	const uint64_t *total;
	uint32_t nr;
	uint32_t *map, *anchor; /* anchor: the new parent of what is below */
	bool *stays;
};

#define SMALL "[small]"

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* 1; 0: it became larger than max; or -UNI_ENOMEM. Nodes with a total below `least` do not stay. */
static int build_pruned(struct pruner *x, uint64_t least, uint32_t max, struct uni_profile *to)
{
	uint32_t small = uni_profile_frame_named(to, SMALL, sizeof(SMALL) - 1, UNI_FK_SYNTHETIC);

	if (small == UNI_NODE_NONE)
		return -UNI_ENOMEM;
	x->map[0] = x->anchor[0] = 0;
	x->stays[0] = true;
	for (uint32_t i = 1; i < x->nr; i++) {
		const struct uni_node *n = uni_profile_node(x->p, i);

		uint32_t up = x->anchor[n->parent];

		x->stays[i] = x->stays[n->parent] && x->total[i] >= least;
		if (!x->stays[i])
			up = uni_profile_child(to, up, small);
		x->map[i] =
			up != UNI_NODE_NONE ? uni_profile_child(to, up, n->frame) : UNI_NODE_NONE;
		if (x->map[i] == UNI_NODE_NONE)
			return -UNI_ENOMEM;
		x->anchor[i] = x->stays[i] ? x->map[i] : x->anchor[n->parent];
		if (uni_profile_nr_nodes(to) > max)
			return 0;
	}
	return 1;
}

/*
 * Keeps fewer and fewer nodes until the tree is small enough. If only the root stays, each frame is
 * there once.
 */
static int shrink_until_fits(
	struct pruner *x, const uint64_t *sorted, uint32_t max, struct uni_profile **ret)
{
	int rc = 0;

	for (uint32_t keep = max / 2; rc == 0; keep /= 2) {
		struct uni_profile *to;

		if (uni_profile_same_frames(x->p, &to) != 0)
			return -UNI_ENOMEM;
		rc = keep != 0 ? build_pruned(x, uni_max(sorted[keep], UINT64_C(1)), max, to)
			       : build_pruned(x, UINT64_MAX, UINT32_MAX, to);
		if (rc == 1)
			*ret = to;
		else
			uni_profile_destroy(to);
	}
	return rc < 0 ? rc : 0;
}

int uni_page_prune(const struct uni_profile *p, const uint64_t *total, uint32_t max,
	uint32_t **map_ret, struct uni_profile **ret)
{
	const uint32_t nr = (uint32_t)uni_profile_nr_nodes(p);
	_cleanup_free_ uint64_t *sorted = NULL;
	_cleanup_free_ uint32_t *anchor = NULL;
	_cleanup_free_ bool *stays = NULL;
	struct pruner x = { .p = p, .total = total, .nr = nr };
	int rc;

	*map_ret = NULL;
	*ret = NULL;
	if (nr <= max)
		return 0;
	sorted = calloc(nr, sizeof(*sorted));
	x.anchor = anchor = calloc(nr, sizeof(*anchor));
	x.stays = stays = calloc(nr, sizeof(*stays));
	x.map = calloc(nr, sizeof(*x.map));
	if (sorted == NULL || anchor == NULL || stays == NULL || x.map == NULL) {
		free(x.map);
		return -UNI_ENOMEM;
	}
	for (uint32_t i = 0; i < nr; i++)
		sorted[i] = total[i];
	qsort(sorted, nr, sizeof(*sorted), by_value);
	rc = shrink_until_fits(&x, sorted, max, ret);
	if (rc == 0)
		*map_ret = x.map;
	else
		free(x.map);
	return rc;
}
