/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree of calling contexts: a node for each function below its caller. It is bounded: frames
 * deeper than UNI_EXACT_DEPTH go below an earlier call of their caller, or beside it. Once
 * UNI_EXACT_NODES are used, a new context becomes its function's one child of node `beyond_parent`.
 * Instructions and calls of each function stay exact.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "plugin/plugin.h"

#define FOLD_LOOKS 64u

#define NO_CALLEES                                                 \
	{                                                          \
		NO_FUNCTION, NO_FUNCTION, NO_FUNCTION, NO_FUNCTION \
	}

static uint32_t slot_of(const struct tree *t, uint32_t parent, uint32_t function)
{
	uint64_t key = ((uint64_t)parent << 32 | function) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(key >> 32) & t->hash_mask;
}

static uint32_t index_of(const struct tree *t, const struct node *n)
{
	return (uint32_t)(n - t->node);
}

static bool grow(struct tree *t)
{
	uint32_t mask = t->hash_mask * 2 + 1, *hash = calloc(mask + 1ull, sizeof(*hash));

	if (hash == NULL)
		return false;
	free(t->hash);
	t->hash = hash;
	t->hash_mask = mask;
	for (uint32_t i = 1; i < t->nr; i++) {
		uint32_t slot = slot_of(t, t->node[i].out->parent, t->node[i].function);

		while (hash[slot] != 0)
			slot = (slot + 1) & mask;
		hash[slot] = i;
	}
	return true;
}

/* A new node; 0: there is no room. */
static uint32_t add(struct tree *t, struct node *parent, uint32_t function)
{
	struct uni_exact_node *out;
	uint32_t slot, above = index_of(t, parent);

	if (t->nr * 2 > t->hash_mask && !grow(t))
		return 0;
	out = area_add(t->area, UNI_EXACT_PART_NODES, 1, NULL);
	if (out == NULL)
		return 0;
	out->parent = above;
	out->function = function;
	t->node[t->nr] = (struct node){ .out = out,
		.parent = parent,
		.function = function,
		.depth = parent->depth + 1,
		.callee = NO_CALLEES };
	slot = slot_of(t, above, function);
	while (t->hash[slot] != 0)
		slot = (slot + 1) & t->hash_mask;
	t->hash[slot] = t->nr;
	return t->nr++;
}

static uint32_t find(const struct tree *t, const struct node *parent, uint32_t function)
{
	uint32_t slot = slot_of(t, index_of(t, parent), function), i;

	while ((i = t->hash[slot]) != 0) {
		if (t->node[i].parent == parent && t->node[i].function == function)
			return i;
		slot = (slot + 1) & t->hash_mask;
	}
	return 0;
}

/*
 * The node for a context that has no room of its own. Functions of the image have such a node from
 * the beginning, so that this never fails. Other functions share the node of code of no function.
 */
static struct node *beyond(struct tree *t, uint32_t function)
{
	if (t->beyond[function] == 0)
		t->beyond[function] = add(t, t->beyond_parent, function);
	return &t->node[t->beyond[t->beyond[function] != 0 ? function : 0]];
}

int tree_init(struct tree *t, struct area *a, uint32_t nr_known)
{
	const size_t bytes = UNI_EXACT_NODES * sizeof(*t->node);
	struct uni_exact_node *out = area_add(a, UNI_EXACT_PART_NODES, 1, NULL);

	t->area = a;
	t->hash_mask = (1u << 12) - 1;
	t->node = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	t->hash = calloc(t->hash_mask + 1, sizeof(*t->hash));
	t->beyond = calloc(nr_known + UNI_EXACT_FOUND + 1ull, sizeof(*t->beyond));
	t->nr = 1;
	if (t->node == MAP_FAILED || t->hash == NULL || t->beyond == NULL || out == NULL)
		return -1;
	*t->node = (struct node){ .out = out, .parent = t->node, .callee = NO_CALLEES };
	t->beyond_parent = &t->node[add(t, t->node, 0)];
	for (uint32_t i = 0; i <= nr_known; i++) {
		t->beyond[i] = add(t, t->beyond_parent, i);
		if (t->beyond[i] == 0)
			return -1;
	}
	return 0;
}

/*
 * Too deep: where such a call of the same function is less deep, so that each pair of caller and
 * callee is a true one. Only recursion is so deep, so that a few frames show it.
 */
static struct node *fold(struct node *parent)
{
	struct node *n = parent->parent;

	for (unsigned i = 0; i < FOLD_LOOKS && n->parent != n; i++, n = n->parent) {
		if (n->function == parent->function)
			return n;
	}
	return parent->parent;
}

struct node *tree_find_child(struct tree *t, struct node *parent, uint32_t function)
{
	uint32_t child;

	if (unlikely(parent->depth >= UNI_EXACT_DEPTH)) {
		plugin.stat[UNI_EXACT_FOLDED]++;
		parent = fold(parent);
	}
	child = find(t, parent, function);
	if (child == 0 && t->nr < UNI_EXACT_NODES - UNI_EXACT_FUNCTIONS - UNI_EXACT_FOUND - 2)
		child = add(t, parent, function);
	if (unlikely(child == 0)) {
		plugin.stat[UNI_EXACT_FOLDED]++;
		return beyond(t, function);
	}
	parent->callee[parent->next] = function;
	parent->child[parent->next] = child;
	parent->next = (parent->next + 1) % CHILDREN;
	return &t->node[child];
}
