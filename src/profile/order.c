/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/vec.h"

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* By name; other differences between two frames count only if their names are equal. */
static int frame_cmp(const void *a, const void *b, void *ctx)
{
	const struct uni_profile *p = ctx;
	const struct uni_frame *x = uni_profile_get_frame(p, *(const uint32_t *)a);
	const struct uni_frame *y = uni_profile_get_frame(p, *(const uint32_t *)b);
	int r = 0;

	if (x->name != y->name)
		r = strcmp(uni_profile_str(p, x->name), uni_profile_str(p, y->name));
	if (r == 0 && x->image != y->image)
		r = strcmp(uni_profile_str(p, x->image), uni_profile_str(p, y->image));
	if (r == 0)
		r = compare_u64(x->addr, y->addr);
	if (r == 0)
		r = compare_u64(x->line, y->line);
	return r != 0 ? r : compare_u64(*(const uint32_t *)a, *(const uint32_t *)b);
}

uint32_t *uni_profile_frame_ranks(const struct uni_profile *p)
{
	size_t nr = uni_profile_nr_frames(p);
	_cleanup_free_ uint32_t *sorted = calloc(nr + 1, sizeof(*sorted));
	uint32_t *rank = calloc(nr + 1, sizeof(*rank));

	if (sorted == NULL || rank == NULL) {
		free(rank);
		return NULL;
	}
	for (size_t i = 0; i < nr; i++)
		sorted[i] = (uint32_t)i;
	/* The callback only reads p; qsort_r's context has no const. */
	qsort_r(sorted, nr, sizeof(*sorted), frame_cmp, (void *)(uintptr_t)p);
	for (size_t i = 0; i < nr; i++)
		rank[sorted[i]] = (uint32_t)i;
	return rank;
}

static int key_cmp(const void *a, const void *b)
{
	return compare_u64(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Most nodes have two or three children: the library's sort costs more than that is worth. */
static void sort_keys(uint64_t *k, size_t nr)
{
	if (nr > 16) {
		qsort(k, nr, sizeof(*k), key_cmp);
		return;
	}
	for (size_t i = 1; i < nr; i++) {
		uint64_t v = k[i];
		size_t j = i;

		for (; j != 0 && k[j - 1] > v; j--)
			k[j] = k[j - 1];
		k[j] = v;
	}
}

int uni_profile_order(const struct uni_profile *p, struct uni_node *nodes, size_t nr)
{
	_cleanup_free_ uint32_t *rank = uni_profile_frame_ranks(p);
	UNI_VEC(uint64_t) keys = { 0 };
	int rc = 0;

	if (rank == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < nr && rc == 0; i++) {
		uint32_t c = nodes[i].child;

		if (c == UNI_NODE_NONE || nodes[c].next == UNI_NODE_NONE)
			continue;
		keys.nr = 0;
		for (; c != UNI_NODE_NONE && rc == 0; c = nodes[c].next) {
			if (!uni_vec_push(&keys, (uint64_t)rank[nodes[c].frame] << 32 | c))
				rc = -UNI_ENOMEM;
		}
		if (rc != 0)
			break;
		sort_keys(keys.v, keys.nr);
		nodes[i].child = (uint32_t)keys.v[0];
		for (size_t k = 0; k < keys.nr; k++)
			nodes[(uint32_t)keys.v[k]].next =
				k + 1 < keys.nr ? (uint32_t)keys.v[k + 1] : UNI_NODE_NONE;
	}
	uni_vec_free(&keys);
	return rc;
}
