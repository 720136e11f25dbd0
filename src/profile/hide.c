/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/copy.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "base/vec.h"
#include "profile/profile_priv.h"

struct hide {
	const struct uni_profile *p;
	struct uni_profile *to;
	bool *hidden; /* by frame */
	UNI_VEC(uint32_t) path;
	double left_out;
};

static bool frame_matches(const struct hide *h, uint32_t frame, const char *const *glob, size_t nr)
{
	const struct uni_frame *f = uni_profile_get_frame(h->p, frame);
	const char *name = uni_profile_str(h->p, f->name);
	const char *plain = f->plain != 0 ? uni_profile_str(h->p, f->plain) : name;

	for (size_t i = 0; i < nr; i++) {
		if (uni_glob_match(glob[i], name) || uni_glob_match(glob[i], plain))
			return true;
	}
	return false;
}

static int add_node(struct hide *h, uint32_t node)
{
	const struct uni_node *n = uni_profile_node(h->p, node);
	double self2 = uni_profile_self2(h->p, node);

	if (n->self == 0.0 && self2 == 0.0)
		return 0;
	if (n->frame != UNI_NODE_NONE && h->hidden[n->frame]) {
		h->left_out += n->self + self2;
		return 0;
	}
	h->path.nr = 0;
	for (uint32_t i = node; uni_profile_node(h->p, i)->frame != UNI_NODE_NONE;
		i = uni_profile_node(h->p, i)->parent) {
		if (!uni_vec_push(&h->path, uni_profile_node(h->p, i)->frame))
			return -UNI_ENOMEM;
	}
	for (size_t i = 0; i < h->path.nr / 2; i++) {
		uint32_t t = h->path.v[i];

		h->path.v[i] = h->path.v[h->path.nr - 1 - i];
		h->path.v[h->path.nr - 1 - i] = t;
	}
	return uni_profile_add(h->to, h->path.v, h->path.nr, n->self, self2);
}

int uni_profile_hide(
	const struct uni_profile *p, const char *const *glob, size_t nr, struct uni_profile **ret)
{
	_cleanup_free_ bool *hidden = calloc(uni_profile_nr_frames(p) + 1, sizeof(*hidden));
	struct hide h = { .p = p, .hidden = hidden };
	int rc = hidden == NULL ? -UNI_ENOMEM : uni_profile_same_frames(p, &h.to);

	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < uni_profile_nr_frames(p); i++)
		hidden[i] = frame_matches(&h, i, glob, nr);
	for (uint32_t i = 0; i < uni_profile_nr_nodes(p) && rc == 0; i++)
		rc = add_node(&h, i);
	if (rc == 0)
		rc = uni_profile_finish(h.to);
	uni_vec_free(&h.path);
	if (rc != 0) {
		uni_profile_destroy(h.to);
		return rc;
	}
	h.to->hidden = h.left_out;
	*ret = h.to;
	return 0;
}

double uni_profile_hidden(const struct uni_profile *p)
{
	return p->hidden;
}
