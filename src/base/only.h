/* SPDX-License-Identifier: BSD-2-Clause */
/* A choice of one number, such as "vCPU 3 alone". A zeroed one chooses nothing, so all pass. */
#ifndef UNI_BASE_ONLY_H
#define UNI_BASE_ONLY_H

#include <stdbool.h>
#include <stdint.h>

struct uni_only {
	bool chosen; /* false: all pass */
	uint64_t nr; /* this one alone passes */
};

static inline struct uni_only uni_only(uint64_t nr)
{
	return (struct uni_only){ .chosen = true, .nr = nr };
}

static inline bool uni_only_passes(struct uni_only only, uint64_t nr)
{
	return !only.chosen || only.nr == nr;
}

#endif
