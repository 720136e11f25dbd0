/* SPDX-License-Identifier: BSD-2-Clause */
/* Offsets of a structure's members, from an image's debug data. */
#ifndef UNI_OBJ_MEMBERS_H
#define UNI_OBJ_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "obj/debug.h"

#define UNI_MEMBER_MAX ((uint64_t)1 << 24) /* bytes: no structure that we know is larger */

struct uni_member {
	const char *path; /* "ctx.sp"; unnamed structures in between are skipped */
	bool optional;
	bool found;
	uint64_t offset; /* bytes from the start of the outermost structure */
	uint64_t size;	 /* bytes, 0: the file does not say */
};

/*
 * Looks for a structure or union of that tag that has all members that are not optional. Several
 * may have the name, and some are only declarations. -UNI_ENOENT: there is none. Then *missing_ret
 * (may be NULL) is the path that none of them had, or NULL if there is no such structure. Members
 * beyond UNI_MEMBER_MAX do not count as found.
 */
int uni_debug_members(struct uni_debug *d, const char *tag, struct uni_member *member, size_t nr,
	const char **missing_ret);

#endif
