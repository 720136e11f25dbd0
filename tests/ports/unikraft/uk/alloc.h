/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for Unikraft: what the port uses. */
#include <uk/essentials.h>
struct uk_alloc;
struct uk_alloc *uk_alloc_get_default(void);
void *uk_memalign(struct uk_alloc *a, __sz align, __sz size);
