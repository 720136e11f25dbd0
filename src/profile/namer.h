/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the address of a chain's entry to its frames in a profile: one, or several where functions
 * were inlined. The same few thousand addresses come again and again: each is symbolized once.
 */
#ifndef UNI_PROFILE_NAMER_H
#define UNI_PROFILE_NAMER_H

#include "obj/usym.h"
#include "profile/profile.h"

/* How frames are named. */
struct uni_naming {
	bool addresses; /* leave them as addresses */
	bool offsets;	/* name+0xoff */
	bool inlined;	/* a frame for each inlined function */
	bool lines;	/* one frame a source line: "name (file.c:12)" */
	bool mangled;	/* names as the linker knows them */
	bool unmarked;	/* guessed frames without their " ?" */
	bool sites;	/* frames differ by address, which is of the instruction */
};

static inline bool uni_naming_wants_places(const struct uni_naming *n)
{
	return n->inlined || n->lines;
}

struct uni_namer;

struct uni_namer_from {
	struct uni_profile *p;
	const struct uni_symtab *symtab; /* NULL: no names */
	uint64_t bias;
	const char *image; /* path */
	bool names_only;   /* imported: addresses are made up, names are all there is */
	const struct uni_naming *naming; /* borrowed */
};

struct uni_namer *uni_namer_create(const struct uni_namer_from *from); /* NULL: out of memory */
void uni_namer_destroy(struct uni_namer *n);			       /* NULL-safe */
/*
 * Frames of p, at least one, the caller before the inlined; borrowed until the next call. flags are
 * enum uni_frame_flags. An address that is not exact is a return address: the lookup is for the
 * call, which ends before it. NULL: out of memory.
 */
const uint32_t *uni_namer_frames(struct uni_namer *n, uint64_t pc, unsigned flags, size_t *nr_ret);

#endif
