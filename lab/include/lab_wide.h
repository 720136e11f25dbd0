/* SPDX-License-Identifier: BSD-2-Clause */
/* The guest `wide` counts its calls here, at the symbol lab_wide. Host tests read it. */
#ifndef LAB_WIDE_H
#define LAB_WIDE_H

#include <stddef.h>
#include <stdint.h>

#define LAB_WIDE_MAGIC 0x6564695762616cULL /* "labWide" */
#define LAB_WIDE_CPUS  256
#define LAB_WIDE_FNS   8

struct lab_wide {
	uint64_t magic;
	uint32_t nr_cpus;     /* that came up */
	uint32_t nr_standing; /* of these: in their last call */
	uint64_t
		calls[LAB_WIDE_CPUS]; /* of wide_(vCPU % LAB_WIDE_FNS), also the one it stands in */
};

_Static_assert(offsetof(struct lab_wide, nr_cpus) == 8, "layout");
_Static_assert(offsetof(struct lab_wide, calls) == 16, "layout");

#endif
