/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/err.h"
#include "base/vec.h"
#include "profile/copy.h"
#include "profile/profile.h"

static int copy_stacks(const struct uni_profile *p, struct uni_profile *to)
{
	UNI_VEC(uint32_t) frames = { 0 };
	int rc = 0;

	for (size_t i = 0; i < uni_profile_nr_nodes(p) && rc == 0; i++) {
		const struct uni_node *n = uni_profile_node(p, (uint32_t)i);
		double self2 = uni_profile_self2(p, (uint32_t)i);

		if (n->self == 0.0 && self2 == 0.0)
			continue;
		frames.nr = 0;
		for (const struct uni_node *m = n; m->frame != UNI_NODE_NONE && rc == 0;
			m = uni_profile_node(p, m->parent)) {
			if (!uni_vec_push(&frames, m->frame))
				rc = -UNI_ENOMEM;
		}
		if (rc == 0)
			rc = uni_profile_add(to, frames.v, frames.nr, n->self, self2);
	}
	uni_vec_free(&frames);
	return rc;
}

int uni_profile_reversed(const struct uni_profile *p, struct uni_profile **ret)
{
	struct uni_profile *to;
	int rc = uni_profile_same_frames(p, &to);

	if (rc != 0)
		return rc;
	rc = copy_stacks(p, to);
	if (rc == 0)
		rc = uni_profile_finish(to);
	if (rc != 0) {
		uni_profile_destroy(to);
		return rc;
	}
	*ret = to;
	return 0;
}
