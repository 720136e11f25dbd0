/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks in the order of arrival, from which a call tree is made at once. They are sorted; then
 * each node is made once and in its place, without searching for it. A node's number is its place
 * in the tree, depth first.
 */
#ifndef UNI_PROFILE_PILE_H
#define UNI_PROFILE_PILE_H

#include "base/vec.h"
#include "profile/profile.h"

struct uni_pile_stack {
	size_t at; /* of its first frame, the root's; once sorted, of the first not shared */
	uint32_t nr;
	/* once sorted: number of frames, from the root, that the stack before shares */
	uint32_t same;
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
/*
 * Used instead of uni_profile_finish(), by a caller that only goes from stack to stack. The pile is
 * sorted, and no tree is made: only a root with totals. Without a pile it is the same as that
 * function.
 */
int uni_profile_finish_pile(struct uni_profile *p);
/* The pile that was finished as such, sorted; NULL: there is a tree. */
const struct uni_pile *uni_profile_pile(const struct uni_profile *p);
/* The tree of p's pile, which is empty then: -UNI_ENOMEM. */
int uni_pile_build(struct uni_profile *p);

#endif
