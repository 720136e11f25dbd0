/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From an address to what its source says: the functions that were inlined there, and file and line
 * of each. Read from DWARF 2 to 5, the tree by libdw, a compilation unit at a time and only when an
 * address of it is asked for, into tables of pieces that are searched in some hundred nanoseconds.
 */
#ifndef UNI_OBJ_DEBUG_H
#define UNI_OBJ_DEBUG_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "obj/image.h"
#include "obj/ranges.h"

#define UNI_INLINE_MAX 64 /* deeper nesting is cut: the outer ones stay */

/* Strings are clean and borrowed from where the place came from. */
struct uni_place {
	const char *function; /* as in the file, mangled; NULL: not known */
	const char *file;     /* path as the compiler saw it; NULL: not known */
	uint32_t line;	      /* 0: not known */
};

struct uni_debug;

/* data is copied. A file without DWARF is -UNI_ENOENT. */
int uni_debug_from_memory(const char *name, const void *data, size_t size, struct uni_debug **ret,
	struct uni_err *err);
/*
 * The debug data of an image: in the file that its symbols came from, in the image itself, or in
 * one that belongs to it (image.h says where it is looked for). -UNI_ENOENT: there is none; err
 * says where it was looked for.
 */
int uni_debug_of_image(const struct uni_image *img, const struct uni_image_search *search,
	struct uni_debug **ret, struct uni_err *err);
void uni_debug_destroy(struct uni_debug *d); /* NULL-safe */

/*
 * The places at an address, innermost first: all but the last are inlined into the one behind them,
 * and the line of each but the first is that of the call. 0: nothing is known. Reads on when it
 * meets a new unit, so it is not for several threads at once. Names stay good as long as d.
 */
size_t uni_debug_lookup(struct uni_debug *d, uint64_t svma, struct uni_place ret[UNI_INLINE_MAX],
	struct uni_span *span_ret);
/* Reads all units now. */
void uni_debug_load_all(struct uni_debug *d);
/* Why not all of it could be read, as a line for the user; NULL: it could, as far as was asked. */
const char *uni_debug_note(const struct uni_debug *d);

#endif
