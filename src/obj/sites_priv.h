/* SPDX-License-Identifier: BSD-2-Clause */
/* The trace sites that one ELF file states, before they are checked against the code. */
#ifndef UNI_OBJ_SITES_PRIV_H
#define UNI_OBJ_SITES_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "obj/elffile.h"
#include "obj/image.h"
#include "obj/sites.h"

typedef UNI_VEC(uint64_t) uni_site_addrs;

struct uni_site_places {
	uni_site_addrs entries; /* from tables; in any order, possibly twice */
	uni_site_addrs exits;	/* first byte of a jump to the thunk */
	uint64_t thunk;		/* in: its address, or 0 */
};

/* Adds to ret. False: out of memory. */
bool uni_site_places_read(
	const struct uni_image *img, const struct uni_elf *e, struct uni_site_places *ret);
void uni_site_places_deinit(struct uni_site_places *p);

#define UNI_SITE_CALL 0xe8
#define UNI_SITE_JUMP 0xe9

extern const uint8_t uni_site_free_entry[UNI_SITE_BYTES];
extern const uint8_t uni_site_free_exit[UNI_SITE_BYTES];

/* The address that four bytes relative to `next` give. */
uint64_t uni_site_rel32(uint64_t next, const uint8_t *rel32);
/* The target of the call or jump at addr. */
uint64_t uni_site_goes_to(uint64_t addr, const uint8_t *bytes);

#endif
