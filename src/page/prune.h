/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call tree that is too large for a page: the nodes that matter stay as they are, and what is
 * below them becomes flat: each function once, in "[small]" below the last of its callers that
 * stayed. So what a function has by itself, and what is in or below a node that stayed, are as
 * before.
 */
#ifndef UNI_PAGE_PRUNE_H
#define UNI_PAGE_PRUNE_H

#include "profile/profile.h"

/*
 * total[]: of each node, with what is below it. *map_ret (free() it): the number in *ret of each
 * node of p. *ret has p's frames and one more, and at most `max` nodes or one a frame. Both NULL: p
 * is small enough. 0 or -UNI_ENOMEM.
 */
int uni_page_prune(const struct uni_profile *p, const uint64_t *total, uint32_t max,
	uint32_t **map_ret, struct uni_profile **ret);

#endif
