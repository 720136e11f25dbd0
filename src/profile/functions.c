/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "profile/profile.h"

struct walk {
	const struct uni_profile *p;
	struct uni_func_row *rows; /* by frame */
	uint32_t *active;	   /* how often the frame is on the way down to here */
	uint8_t *seen;
};

static void enter_function(struct walk *w, uint32_t node)
{
	const struct uni_node *n = uni_profile_node(w->p, node);
	struct uni_func_row *row;

	if (n->frame == UNI_NODE_NONE)
		return;
	row = &w->rows[n->frame];
	w->seen[n->frame] = 1;
	row->frame = n->frame;
	row->self += n->self;
	row->self2 += uni_profile_self2(w->p, node);
	if (w->active[n->frame]++ == 0) {
		row->total += n->total;
		row->total2 += uni_profile_total2(w->p, node);
	}
}

static void leave_function(struct walk *w, uint32_t node)
{
	uint32_t frame = uni_profile_node(w->p, node)->frame;

	if (frame != UNI_NODE_NONE)
		w->active[frame]--;
}

/* Depth first without recursion: stacks may be deeper than ours. */
static void walk_tree(struct walk *w, uint32_t top)
{
	uint32_t node = top;

	for (;;) {
		const struct uni_node *n = uni_profile_node(w->p, node);

		enter_function(w, node);
		if (n->child != UNI_NODE_NONE) {
			node = n->child;
			continue;
		}
		for (;;) {
			leave_function(w, node);
			if (node == top)
				return;
			n = uni_profile_node(w->p, node);
			if (n->next != UNI_NODE_NONE)
				break;
			node = n->parent;
		}
		node = n->next;
	}
}

static int row_cmp(const void *a, const void *b, void *ctx)
{
	const struct uni_func_row *x = a, *y = b;
	const struct uni_profile *p = ctx;
	int r;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	r = strcmp(uni_profile_str(p, uni_profile_get_frame(p, x->frame)->name),
		uni_profile_str(p, uni_profile_get_frame(p, y->frame)->name));
	return r != 0 ? r : (x->frame > y->frame) - (x->frame < y->frame);
}

int uni_profile_functions_below(
	const struct uni_profile *p, uint32_t node, struct uni_func_row **ret, size_t *nr_ret)
{
	size_t nr = uni_profile_nr_frames(p), used = 0;
	_cleanup_free_ struct uni_func_row *rows = calloc(nr + 1, sizeof(*rows));
	_cleanup_free_ uint32_t *active = calloc(nr + 1, sizeof(*active));
	_cleanup_free_ uint8_t *seen = calloc(nr + 1, 1);
	struct walk w = { .p = p, .rows = rows, .active = active, .seen = seen };

	if (rows == NULL || active == NULL || seen == NULL)
		return -UNI_ENOMEM;
	walk_tree(&w, node);
	for (size_t i = 0; i < nr; i++) {
		if (seen[i])
			rows[used++] = rows[i];
	}
	qsort_r(rows, used, sizeof(*rows), row_cmp, (void *)(uintptr_t)p);
	*ret = uni_take(rows);
	*nr_ret = used;
	return 0;
}

int uni_profile_functions(const struct uni_profile *p, struct uni_func_row **ret, size_t *nr_ret)
{
	return uni_profile_functions_below(p, UNI_NODE_ROOT, ret, nr_ret);
}
