/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/outline.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static double outline_percent(double v, double total)
{
	return total > 0.0 ? 100.0 * v / total : 0.0;
}

double uni_outline_share(const struct uni_profile *p, double before, double after)
{
	double a = outline_percent(before, uni_profile_total(p));
	double b = outline_percent(after, uni_profile_total2(p, UNI_NODE_ROOT));

	/* New nodes must not be left out. */
	return a > b ? a : b;
}

static int lightest_first(const void *a, const void *b, void *ctx)
{
	const struct uni_profile *p = ctx;
	uint32_t x = ((const struct uni_outline_line *)a)->node;
	uint32_t y = ((const struct uni_outline_line *)b)->node;
	double tx = uni_profile_node(p, x)->total, ty = uni_profile_node(p, y)->total;

	if (tx != ty)
		return tx < ty ? -1 : 1;
	/* Equal ones by name; the last comes first. */
	return strcmp(uni_profile_node_name(p, y), uni_profile_node_name(p, x));
}

struct walk {
	const struct uni_profile *p;
	const struct uni_outline_opts *opts;
	struct uni_outline *o;
	UNI_VEC(struct uni_outline_line) todo; /* the next one is the last */
};

static int push_children(struct walk *w, const struct uni_outline_line *l)
{
	uint32_t c = uni_profile_node(w->p, l->node)->child;
	size_t from = w->todo.nr, nr;

	for (; c != UNI_NODE_NONE; c = uni_profile_node(w->p, c)->next) {
		struct uni_outline_line kid = {
			.node = c, .depth = l->depth + 1, .indent = l->indent
		};
		double share = uni_outline_share(
			w->p, uni_profile_node(w->p, c)->total, uni_profile_total2(w->p, c));

		if (share < w->opts->min_percent ||
			(w->opts->max_depth != 0 && kid.depth > w->opts->max_depth))
			w->o->left++;
		else if (!uni_vec_push(&w->todo, kid))
			return -UNI_ENOMEM;
	}
	nr = w->todo.nr - from;
	if (nr == 0)
		return 0;
	qsort_r(w->todo.v + from, nr, sizeof(*w->todo.v), lightest_first, (void *)(uintptr_t)w->p);
	for (size_t i = from; i < w->todo.nr && nr > 1; i++) {
		w->todo.v[i].indent++;
		w->todo.v[i].forked = true;
	}
	return 0;
}

int uni_outline_init(
	struct uni_outline *o, const struct uni_profile *p, const struct uni_outline_opts *opts)
{
	struct walk w = { .p = p, .opts = opts, .o = o };
	struct uni_outline_line root = { .node = UNI_NODE_ROOT };
	int rc = uni_vec_push(&w.todo, root) ? 0 : -UNI_ENOMEM;

	while (rc == 0 && w.todo.nr != 0) {
		struct uni_outline_line l = w.todo.v[--w.todo.nr];

		if (opts->max_lines != 0 && o->lines.nr == opts->max_lines) {
			o->left += w.todo.nr + 1;
			break;
		}
		rc = uni_vec_push(&o->lines, l) ? push_children(&w, &l) : -UNI_ENOMEM;
	}
	uni_vec_free(&w.todo);
	return rc;
}

void uni_outline_deinit(struct uni_outline *o)
{
	uni_vec_free(&o->lines);
	o->left = 0;
}
