/* SPDX-License-Identifier: BSD-2-Clause */
/* Guest addresses. Structs, so that virtual and physical cannot be mixed silently. */
#ifndef UNI_MEM_ADDR_H
#define UNI_MEM_ADDR_H

#include <stdint.h>

typedef struct {
	uint64_t v;
} uni_gva; /* guest virtual */

typedef struct {
	uint64_t v;
} uni_gpa; /* guest physical */

static inline uni_gva uni_gva_of(uint64_t v)
{
	return (uni_gva){ v };
}

static inline uni_gpa uni_gpa_of(uint64_t v)
{
	return (uni_gpa){ v };
}

#endif
