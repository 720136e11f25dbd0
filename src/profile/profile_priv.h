/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNI_PROFILE_PROFILE_PRIV_H
#define UNI_PROFILE_PROFILE_PRIV_H

#include "base/memo.h"
#include "base/vec.h"
#include "profile/pile.h"
#include "profile/profile.h"

struct uni_second {
	double self, total;
};

/* tag is the hash itself, so that growing the table does not touch the nodes. */
struct uni_slot {
	uint32_t node; /* or frame; UNI_NODE_NONE = free */
	uint32_t tag;
};

struct uni_profile {
	struct uni_strtab *strings;
	UNI_VEC(struct uni_frame) frames;
	struct uni_slot *frame_slots;
	size_t nr_frame_slots;
	UNI_VEC(struct uni_node) nodes;
	UNI_VEC(struct uni_second) seconds; /* as many as nodes, if has_second */
	struct uni_slot *slots;		    /* children that have siblings */
	size_t nr_slots, nr_slots_used;
	UNI_VEC(uint32_t) last_frames; /* the stack added last and its nodes */
	UNI_VEC(uint32_t) last_nodes;
	UNI_VEC(struct uni_profile_entry) log;
	double hidden; /* left out of both columns */
	uint32_t unit; /* string */
	bool has_second, finished;
	bool logs, log_failed;
	bool piles; /* stacks go onto the pile */
	struct uni_pile pile;
	bool is_pile;	       /* and it is finished as that */
	struct uni_memo names; /* frames that are nothing but a name; of the strings above */
};

/* Frees data that is only needed for adding stacks. With many names it is the largest part besides
 * the nodes. */
void uni_profile_drop_finders(struct uni_profile *p);

#endif
