/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks as they come, of which a call tree is made at once: they are sorted, and then each node
 * is made once and in its place, without looking for it. A node's number is its place in the tree,
 * depth first.
 */
#ifndef UNI_PROFILE_PILE_H
#define UNI_PROFILE_PILE_H

#include "base/vec.h"
#include "profile/profile.h"

struct uni_pile_stack {
	size_t at; /* of its first frame, the root's; once sorted, of the first not shared */
	uint32_t nr;
	uint32_t same; /* once sorted: frames, from the root, that the one before has as well */
	double value, value2;
};

struct uni_pile {
	UNI_VEC(uint32_t) frames;
	UNI_VEC(struct uni_pile_stack) stacks;
};

/* Zeroed is empty. */
bool uni_pile_add(
	struct uni_pile *pile, const uint32_t *frames, size_t nr, double value, double value2);
void uni_pile_deinit(struct uni_pile *pile);
/* By frames, root first, each by its rank (uni_profile_frame_ranks()); alike ones stay as they
 * came. Then frames are only there where they are not the stack's before. false: out of memory. */
bool uni_pile_sort(struct uni_pile *pile, const uint32_t *rank, size_t nr_ranks);
/*
 * Instead of uni_profile_finish(), for who goes from stack to stack only: the pile is sorted, and
 * no tree is made. There is a root with totals then, and no other node. Without a pile it is the
 * same.
 */
int uni_profile_finish_pile(struct uni_profile *p);
/* The pile that was finished as such, sorted; NULL: there is a tree. */
const struct uni_pile *uni_profile_pile(const struct uni_profile *p);
/* The tree of p's pile, which is empty then: -UNI_ENOMEM. */
int uni_pile_build(struct uni_profile *p);

#endif
