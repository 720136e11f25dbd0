/* SPDX-License-Identifier: BSD-2-Clause */
/* One function's view of a profile: its callees, or its callers. */
#ifndef UNI_PROFILE_FOCUS_H
#define UNI_PROFILE_FOCUS_H

#include <stdbool.h>

#include "profile/profile.h"

/*
 * A finished profile with the frame at its root, by the same frame numbers. Callees: the stacks
 * from the outermost call of it down. Callers: turned over, from the innermost call of it up. A
 * stack with several calls of it counts once. Empty if no stack has it.
 */
int uni_profile_focus(
	const struct uni_profile *p, uint32_t frame, bool callers, struct uni_profile **ret);

#endif
