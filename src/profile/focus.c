/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/focus.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/vec.h"
#include "profile/copy.h"

struct focus {
	const struct uni_profile *p;
	struct uni_profile *to;
	uint32_t *at; /* by node: the call of the frame that counts for it, or none */
	bool callers;
	UNI_VEC(uint32_t) path; /* of frames, from `from` to the root or to `until` */
};

/* A child is always made after its parent, so its parent's answer is there. */
static void find_calls(struct focus *f, uint32_t frame)
{
	for (uint32_t i = 0; i < uni_profile_nr_nodes(f->p); i++) {
		const struct uni_node *n = uni_profile_node(f->p, i);
		uint32_t above = n->parent != UNI_NODE_NONE ? f->at[n->parent] : UNI_NODE_NONE;

		if (n->frame == frame && (f->callers || above == UNI_NODE_NONE))
			above = i;
		f->at[i] = above;
	}
}

static int climb_path(struct focus *f, uint32_t from, uint32_t until)
{
	f->path.nr = 0;
	for (uint32_t i = from;; i = uni_profile_node(f->p, i)->parent) {
		uint32_t frame = uni_profile_node(f->p, i)->frame;

		if (frame == UNI_NODE_NONE)
			return 0;
		if (!uni_vec_push(&f->path, frame))
			return -UNI_ENOMEM;
		if (i == until)
			return 0;
	}
}

static void turn_over(uint32_t *v, size_t nr)
{
	for (size_t i = 0; i < nr / 2; i++) {
		uint32_t t = v[i];

		v[i] = v[nr - 1 - i];
		v[nr - 1 - i] = t;
	}
}

static int add_node(struct focus *f, uint32_t node)
{
	const struct uni_node *n = uni_profile_node(f->p, node);
	double self2 = uni_profile_self2(f->p, node);
	int rc;

	if (f->at[node] == UNI_NODE_NONE || (n->self == 0.0 && self2 == 0.0))
		return 0;
	if (f->callers) {
		rc = climb_path(f, f->at[node], UNI_NODE_NONE);
	} else {
		rc = climb_path(f, node, f->at[node]);
		turn_over(f->path.v, f->path.nr);
	}
	return rc != 0 ? rc : uni_profile_add(f->to, f->path.v, f->path.nr, n->self, self2);
}

int uni_profile_focus(
	const struct uni_profile *p, uint32_t frame, bool callers, struct uni_profile **ret)
{
	size_t nr = uni_profile_nr_nodes(p);
	_cleanup_free_ uint32_t *at = calloc(nr + 1, sizeof(*at));
	struct focus f = { .p = p, .at = at, .callers = callers };
	int rc = at == NULL ? -UNI_ENOMEM : uni_profile_same_frames(p, &f.to);

	if (rc != 0)
		return rc;
	find_calls(&f, frame);
	for (uint32_t i = 0; i < nr && rc == 0; i++)
		rc = add_node(&f, i);
	if (rc == 0)
		rc = uni_profile_finish(f.to);
	uni_vec_free(&f.path);
	if (rc != 0) {
		uni_profile_destroy(f.to);
		return rc;
	}
	*ret = f.to;
	return 0;
}
