/* SPDX-License-Identifier: BSD-2-Clause */
/* Sorting the children of every node by frame name: the last step of a profile. */
#ifndef UNI_PROFILE_ORDER_H
#define UNI_PROFILE_ORDER_H

#include "profile/profile.h"

/* rank[frame]: its place among all frames, by name. Owned by the caller; NULL: out of memory. */
uint32_t *uni_profile_frame_ranks(const struct uni_profile *p);
/* Relinks `child` and `next` of the nodes; frames and names come from p. -UNI_ENOMEM. */
int uni_profile_order(const struct uni_profile *p, struct uni_node *nodes, size_t nr);

#endif
