/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile made from another one. */
#ifndef UNI_PROFILE_COPY_H
#define UNI_PROFILE_COPY_H

#include "profile/profile.h"

/* A profile without stacks that has p's frames, by the same numbers, and its unit and columns. */
int uni_profile_same_frames(const struct uni_profile *p, struct uni_profile **ret);

#endif
