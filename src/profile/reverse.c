/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/err.h"
#include "base/vec.h"
#include "profile/profile.h"

/* Strings and frames get the same numbers in the copy, because they are added in their order. */
static int copy_frames(const struct uni_profile *p, struct uni_profile *to)
{
	for (size_t i = 0; i < uni_profile_nr_frames(p); i++) {
		struct uni_frame f = *uni_profile_get_frame(p, (uint32_t)i);
		uint32_t *const strs[] = { &f.name, &f.image, &f.file };

		for (size_t k = 0; k < 3; k++) {
			size_t len;
			const char *s = uni_profile_str_len(p, *strs[k], &len);

			*strs[k] = uni_strtab_add(uni_profile_strings(to), s, len);
			if (*strs[k] == UNI_STR_NONE)
				return -UNI_ENOMEM;
		}
		if (uni_profile_frame(to, &f) != i)
			return -UNI_ENOMEM;
	}
	uni_profile_set_unit(to, uni_profile_unit(p));
	return uni_profile_has_second(p) ? uni_profile_enable_second(to) : 0;
}

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
	struct uni_profile *to = uni_profile_create();
	int rc;

	if (to == NULL)
		return -UNI_ENOMEM;
	rc = copy_frames(p, to);
	if (rc == 0)
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
