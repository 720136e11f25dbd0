/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "profile/copy.h"

static uint32_t same_string(
	struct uni_profile *to, const struct uni_profile *from, uint32_t str, bool *failed)
{
	size_t len;
	const char *s = uni_profile_str_len(from, str, &len);
	uint32_t ret = uni_strtab_add(uni_profile_strings(to), s, len);

	*failed = *failed || ret == UNI_STR_NONE;
	return ret;
}

/* map[frame of from] = frame of to. */
static int map_frames(struct uni_profile *to, const struct uni_profile *from, uint32_t *map)
{
	for (size_t i = 0; i < uni_profile_nr_frames(from); i++) {
		const struct uni_frame *f = uni_profile_get_frame(from, (uint32_t)i);
		struct uni_frame same = { .kind = f->kind, .line = f->line, .guess = f->guess };
		bool failed = false;

		same.name = same_string(to, from, f->name, &failed);
		same.file = same_string(to, from, f->file, &failed);
		same.plain = same_string(to, from, f->plain, &failed);
		map[i] = failed ? UNI_NODE_NONE : uni_profile_frame(to, &same);
		if (map[i] == UNI_NODE_NONE)
			return -UNI_ENOMEM;
		uni_profile_add_own(to, map[i], f->own, f->unsure);
	}
	return 0;
}

/* nodes[node of from] = node of to. same: NULL, or for each frame of from the one that stands for
 * it. */
static int map_nodes(struct uni_profile *to, const struct uni_profile *from, const uint32_t *same,
	uint32_t *nodes)
{
	_cleanup_free_ uint32_t *frames = calloc(uni_profile_nr_frames(from) + 1, sizeof(*frames));

	if (frames == NULL || map_frames(to, from, frames) != 0)
		return -UNI_ENOMEM;
	nodes[UNI_NODE_ROOT] = UNI_NODE_ROOT;
	/* Callers have lower numbers than callees. */
	for (size_t i = UNI_NODE_ROOT + 1; i < uni_profile_nr_nodes(from); i++) {
		const struct uni_node *n = uni_profile_node(from, (uint32_t)i);

		nodes[i] = uni_profile_child(
			to, nodes[n->parent], frames[same != NULL ? same[n->frame] : n->frame]);
		if (nodes[i] == UNI_NODE_NONE)
			return -UNI_ENOMEM;
	}
	return 0;
}

int uni_profile_add_copy(
	struct uni_profile *to, const struct uni_profile *from, double scale, bool second)
{
	size_t nr = uni_profile_nr_nodes(from);
	_cleanup_free_ uint32_t *nodes = calloc(nr, sizeof(*nodes));

	if (nodes == NULL || map_nodes(to, from, NULL, nodes) != 0)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		double v = uni_profile_node(from, (uint32_t)i)->self * scale;

		if (v != 0.0)
			uni_profile_add_self(to, nodes[i], second ? 0.0 : v, second ? v : 0.0);
	}
	return 0;
}

static int copy_joined(struct uni_profile *to, const struct uni_profile *from, const uint32_t *same)
{
	size_t nr = uni_profile_nr_nodes(from);
	_cleanup_free_ uint32_t *nodes = calloc(nr, sizeof(*nodes));

	if (nodes == NULL || uni_profile_enable_second(to) != 0 ||
		map_nodes(to, from, same, nodes) != 0)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < nr; i++)
		uni_profile_add_self(to, nodes[i], uni_profile_node(from, (uint32_t)i)->self,
			uni_profile_self2(from, (uint32_t)i));
	uni_profile_set_unit(to, uni_profile_unit(from));
	return uni_profile_finish(to);
}

int uni_profile_join(const struct uni_profile *p, const uint32_t *same, struct uni_profile **ret)
{
	struct uni_profile *to = uni_profile_create();

	if (to == NULL || copy_joined(to, p, same) != 0) {
		uni_profile_destroy(to);
		return -UNI_ENOMEM;
	}
	*ret = to;
	return 0;
}

int uni_profile_diff(const struct uni_profile *before, const struct uni_profile *after, bool scale,
	struct uni_profile **ret)
{
	struct uni_profile *to = uni_profile_create();
	double one = uni_profile_total(before), two = uni_profile_total(after);
	int rc = to != NULL ? uni_profile_enable_second(to) : -UNI_ENOMEM;

	if (rc == 0)
		rc = uni_profile_add_copy(
			to, before, scale && one > 0.0 && two > 0.0 ? two / one : 1.0, false);
	if (rc == 0)
		rc = uni_profile_add_copy(to, after, 1.0, true);
	if (rc == 0) {
		uni_profile_set_unit(to, uni_profile_unit(after));
		rc = uni_profile_finish(to);
	}
	if (rc != 0)
		uni_profile_destroy(to);
	else
		*ret = to;
	return rc;
}
