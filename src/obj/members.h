/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the members of a structure lie, by an image's debug data. */
#ifndef UNI_OBJ_MEMBERS_H
#define UNI_OBJ_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "obj/debug.h"

#define UNI_MEMBER_MAX ((uint64_t)1 << 24) /* bytes: no structure that we know is larger */

struct uni_member {
	const char *path; /* "ctx.sp"; unnamed structures on the way are passed through */
	bool optional;
	bool found;
	uint64_t offset; /* bytes from the start of the outermost structure */
	uint64_t size;	 /* bytes, 0: the file does not say */
};

/*
 * Looks for a structure or union with that tag that has all members that are not optional; several
 * may have the name, and some only declare it. -UNI_ENOENT: there is none; missing_ret (may be
 * NULL) is then the path that none had, or NULL if not even the structure is there. Members that
 * lie beyond UNI_MEMBER_MAX do not count as found.
 */
int uni_debug_members(struct uni_debug *d, const char *tag, struct uni_member *member, size_t nr,
	const char **missing_ret);

#endif
