/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for Unikraft: what the port uses. */
#include <uk/essentials.h>
#define UKPLAT_MEMRT_FREE   1
#define UKPLAT_MEMRT_KERNEL 2
#define UKPLAT_MEMRT_INITRD 4
#define UKPLAT_MEMRT_STACK  8
struct ukplat_memregion_desc {
	uint64_t pbase, vbase, len;
};
extern struct ukplat_memregion_desc regions[2];
#define ukplat_memregion_foreach(md, types, flags, mask) \
	for (*(md) = regions; *(md) < regions + 2; (*(md))++)
