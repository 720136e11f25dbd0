/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples that are too many for a page's first load: those of the same stack and place that are
 * near each other in time become one, whose values are their sum. How near that is grows with how
 * many there are, so sums are right at any number, and times as exact as there is room for.
 */
#ifndef UNI_PAGE_NEAR_H
#define UNI_PAGE_NEAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define UNI_NEAR_SUMS 4

struct uni_near_one {
	uint64_t t_ns;
	uint32_t node, guest, vcpu, thread, kind; /* what must be equal */
	uint64_t sum[UNI_NEAR_SUMS];
};

struct uni_near {
	uint64_t max;	    /* how many there may be; 0: any number */
	uint64_t within_ns; /* those of the same such piece of time were added up; 0: none were */
	UNI_VEC(struct uni_near_one) v; /* after uni_near_end(): by time */
	uint64_t first_ns, piece;
	uint64_t widened; /* so often all were added up anew; else those before `from` stay */
	size_t from;	  /* that are of the piece that is not over */
};

/* In the order of time. 0 or -UNI_ENOMEM. */
int uni_near_add(struct uni_near *n, const struct uni_near_one *one);
/* map: by node its number from now on; NULL: the same. */
void uni_near_end(struct uni_near *n, const uint32_t *map);
void uni_near_deinit(struct uni_near *n);

#endif
