/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples that are too many for a page's first load. Samples of the same stack and place that are
 * near in time become one, whose values are their sum. More samples make the pieces of time longer.
 * So sums are right at any number, and times are as exact as the room allows.
 */
#ifndef UNI_PAGE_NEAR_H
#define UNI_PAGE_NEAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define UNI_NEAR_SUMS 4

struct uni_near_one {
	uint64_t t_ns;
	uint32_t node, guest, vcpu, thread, kind; /* these must be equal */
	uint64_t sum[UNI_NEAR_SUMS];
};

struct uni_near {
	uint64_t max;	    /* maximum number; 0: any number */
	uint64_t within_ns; /* length of the pieces of time within which samples were summed; 0: not
			       summed */
	UNI_VEC(struct uni_near_one) v; /* sorted by time after uni_near_end() */
	uint64_t first_ns, piece;
	uint64_t widened; /* how often all were summed anew; otherwise those before `from` stay */
	size_t from;	  /* first sample of the current piece of time */
};

/* Add in the order of time. 0 or -UNI_ENOMEM. */
int uni_near_add(struct uni_near *n, const struct uni_near_one *one);
/* map: new number by node; NULL: unchanged. */
void uni_near_end(struct uni_near *n, const uint32_t *map);
void uni_near_deinit(struct uni_near *n);

#endif
