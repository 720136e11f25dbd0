/* SPDX-License-Identifier: BSD-2-Clause */
/* Sorting the children of every node by frame name: the last step of a profile. */
#ifndef UNI_PROFILE_ORDER_H
#define UNI_PROFILE_ORDER_H

#include "profile/profile.h"

/* Relinks `child` and `next` of the nodes; frames and names come from p. -UNI_ENOMEM. */
int uni_profile_order(const struct uni_profile *p, struct uni_node *nodes, size_t nr);

#endif
