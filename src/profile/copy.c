/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/copy.h"

#include "base/checked.h"
#include "base/err.h"

/* Strings and frames get the same numbers in the copy, because they are added in their order. */
static int copy_frames(const struct uni_profile *p, struct uni_profile *to)
{
	for (size_t i = 0; i < uni_profile_nr_frames(p); i++) {
		struct uni_frame f = *uni_profile_get_frame(p, (uint32_t)i);
		uint32_t *const strs[] = { &f.name, &f.image, &f.file, &f.plain };

		for (size_t k = 0; k < uni_array_len(strs); k++) {
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

int uni_profile_same_frames(const struct uni_profile *p, struct uni_profile **ret)
{
	struct uni_profile *to = uni_profile_create();

	if (to == NULL)
		return -UNI_ENOMEM;
	if (copy_frames(p, to) != 0) {
		uni_profile_destroy(to);
		return -UNI_ENOMEM;
	}
	*ret = to;
	return 0;
}
