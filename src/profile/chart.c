/* SPDX-License-Identifier: BSD-2-Clause */
/* Flame charts: a call tree in the order in which its stacks came. */
#include <assert.h>

#include "base/err.h"
#include "base/vec.h"
#include "profile/copy.h"
#include "profile/profile.h"

struct chart {
	const struct uni_profile *from;
	struct uni_profile *to;
	uint32_t gap;		 /* its frame */
	UNI_VEC(uint32_t) path;	 /* frames of the entry, root first */
	UNI_VEC(uint32_t) nodes; /* the root, then one for each frame of the entry before */
	UNI_VEC(uint32_t) last;	 /* child of each of these, or UNI_NODE_NONE */
};

static int set_path(struct chart *c, uint32_t node)
{
	size_t depth = uni_profile_depth(c->from, node);

	if (!uni_vec_grow(&c->path, depth + 1))
		return -UNI_ENOMEM;
	assert(c->path.v != NULL);
	c->path.nr = depth;
	for (size_t i = depth; i-- != 0; node = uni_profile_node(c->from, node)->parent)
		c->path.v[i] = uni_profile_node(c->from, node)->frame;
	return 0;
}

/* Self time after a function's first call has a place of its own: a nameless child. */
static int add_self(struct chart *c, const struct uni_profile_entry *e)
{
	uint32_t node = c->nodes.v[c->path.nr], *last = &c->last.v[c->path.nr];

	if (*last != UNI_NODE_NONE && uni_profile_node(c->to, *last)->frame != c->gap) {
		node = uni_profile_append(c->to, node, *last, c->gap);
		if (node == UNI_NODE_NONE)
			return -UNI_ENOMEM;
		*last = node;
	} else if (*last != UNI_NODE_NONE) {
		node = *last;
	}
	uni_profile_add_self(c->to, node, e->value, e->value2);
	return 0;
}

static int add_chart_entry(struct chart *c, const struct uni_profile_entry *e)
{
	size_t same = 0;
	int rc = set_path(c, e->node);

	if (rc != 0)
		return rc;
	while (same < c->path.nr && same + 1 < c->nodes.nr &&
		uni_profile_node(c->to, c->nodes.v[same + 1])->frame == c->path.v[same])
		same++;
	c->nodes.nr = c->last.nr = same + 1;
	for (size_t i = same; i < c->path.nr; i++) {
		uint32_t node =
			uni_profile_append(c->to, c->nodes.v[i], c->last.v[i], c->path.v[i]);

		if (node == UNI_NODE_NONE || !uni_vec_push(&c->nodes, node) ||
			!uni_vec_push(&c->last, UNI_NODE_NONE))
			return -UNI_ENOMEM;
		c->last.v[i] = node;
	}
	return add_self(c, e);
}

int uni_profile_chart(const struct uni_profile *p, const struct uni_profile_entry *entry, size_t nr,
	struct uni_profile **ret)
{
	struct chart c = { .from = p };
	int rc = uni_profile_same_frames(p, &c.to);

	if (rc == 0)
		c.gap = uni_profile_frame_named(c.to, "", 0, UNI_FK_SYNTHETIC);
	if (rc == 0 && (c.gap == UNI_NODE_NONE || !uni_vec_push(&c.nodes, UNI_NODE_ROOT) ||
			       !uni_vec_push(&c.last, UNI_NODE_NONE)))
		rc = -UNI_ENOMEM;
	for (size_t i = 0; rc == 0 && i < nr; i++)
		rc = add_chart_entry(&c, &entry[i]);
	uni_vec_free(&c.path);
	uni_vec_free(&c.nodes);
	uni_vec_free(&c.last);
	if (rc != 0) {
		uni_profile_destroy(c.to);
		return rc;
	}
	uni_profile_finish_as_is(c.to);
	*ret = c.to;
	return 0;
}
