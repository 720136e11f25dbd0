/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes a call tree small enough for a page. The nodes that matter stay unchanged. All nodes below
 * them become flat: each function once, in "[small]" below its last caller that stayed. So a
 * function's own value, and the totals of all nodes that stayed, are as before.
 */
#ifndef UNI_PAGE_PRUNE_H
#define UNI_PAGE_PRUNE_H

#include "profile/profile.h"

/*
 * total[]: value of each node with its descendants. *map_ret (free() it): the number in *ret of
 * each node of p. *ret has p's frames and one more, and at most `max` nodes, or one node for each
 * frame. Both NULL: p is small enough. 0 or -UNI_ENOMEM.
 */
int uni_page_prune(const struct uni_profile *p, const uint64_t *total, uint32_t max,
	uint32_t **map_ret, struct uni_profile **ret);

#endif
