/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles made from others. */
#ifndef UNI_PROFILE_COPY_H
#define UNI_PROFILE_COPY_H

#include "profile/profile.h"

/* A profile without stacks that has p's frames, by the same numbers, and its unit and columns. */
int uni_profile_same_frames(const struct uni_profile *p, struct uni_profile **ret);

/*
 * Two finished profiles as one with two columns. Functions are the same by their names: addresses
 * differ from build to build. `scale` brings the values of `before` to the total of `after`.
 */
int uni_profile_diff(const struct uni_profile *before, const struct uni_profile *after, bool scale,
	struct uni_profile **ret);

/* Adds the stacks of a finished profile to one of the columns of an unfinished one, by the names of
 * functions. */
int uni_profile_add_copy(
	struct uni_profile *to, const struct uni_profile *from, double scale, bool second);

/* A finished copy of a profile with two columns, in which same[i] stands for each frame i. */
int uni_profile_join(const struct uni_profile *p, const uint32_t *same, struct uni_profile **ret);

/*
 * Without the self values of functions whose names match one of the globs. Their callees stay, and
 * totals are those of the rest. uni_profile_hidden() of it tells how much was left out.
 * hide.c.
 */
int uni_profile_hide(
	const struct uni_profile *p, const char *const *glob, size_t nr, struct uni_profile **ret);

#endif
