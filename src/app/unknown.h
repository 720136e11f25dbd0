/* SPDX-License-Identifier: BSD-2-Clause */
/* Code outside known images: its place, and advice for the user. */
#ifndef UNI_APP_UNKNOWN_H
#define UNI_APP_UNKNOWN_H

#include <stdint.h>

#include "app/attach.h"
#include "profile/profile.h"

struct uni_unknown {
	uint64_t nr; /* frames; 0: the rest means nothing */
	uint64_t low, high;
};

/* Counts those frames of a chain that lie in none of the guest's images. */
void uni_unknown_add(struct uni_unknown *u, const struct uni_guest *g, const struct uni_chain *c);
/* One line on stderr, if there are any. */
void uni_unknown_say(const struct uni_unknown *u, const struct uni_guest *g);
/* The same of the frames of a profile that are but addresses. */
void uni_unknown_say_profile(const struct uni_profile *p);

#endif
