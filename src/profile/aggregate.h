/* SPDX-License-Identifier: BSD-2-Clause */
/* A session made of a profile: what `import` writes. */
#ifndef UNI_PROFILE_AGGREGATE_H
#define UNI_PROFILE_AGGREGATE_H

#include "base/err.h"
#include "profile/profile.h"

/* The origin of a profile; no member is NULL. */
struct uni_aggregate_origin {
	const char *source;  /* file it was read from */
	const char *version; /* of uniscope */
	const char *command; /* cleaned */
};

/*
 * Each node's own value becomes one sample with that weight; names travel as made-up addresses
 * (obj/usym.h). Values are rounded to whole numbers.
 */
int uni_aggregate_write(const struct uni_profile *p, const struct uni_aggregate_origin *from,
	const char *path, bool overwrite, struct uni_err *err);

#endif
