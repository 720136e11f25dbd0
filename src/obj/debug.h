/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From an address to its source: the functions that were inlined there, with the file and line of
 * each. Reads DWARF 2 to 5. libdw reads the tree, one compilation unit at a time, when somebody
 * asks for one of its addresses. The result is tables of pieces; a search takes some hundred
 * nanoseconds.
 */
#ifndef UNI_OBJ_DEBUG_H
#define UNI_OBJ_DEBUG_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "obj/image.h"
#include "obj/ranges.h"

#define UNI_INLINE_MAX 64 /* deeper nesting is cut: the outer functions stay */

/* Strings are clean, and borrowed from the source of the place. */
struct uni_place {
	const char *function; /* as in the file, mangled; NULL: not known */
	const char *file;     /* path as the compiler saw it; NULL: not known */
	uint32_t line;	      /* 0: not known */
};

struct uni_debug;

/* Copies data. Returns -UNI_ENOENT for a file without DWARF. */
int uni_debug_from_memory(const char *name, const void *data, size_t size, struct uni_debug **ret,
	struct uni_err *err);
/*
 * Opens the debug data of an image. It is in the file that has the symbols, in the image itself, or
 * in a file that belongs to it (image.h lists the places). -UNI_ENOENT: there is none; err lists
 * the places that were searched.
 */
int uni_debug_of_image(const struct uni_image *img, const struct uni_image_search *search,
	struct uni_debug **ret, struct uni_err *err);
void uni_debug_destroy(struct uni_debug *d); /* NULL-safe */

/*
 * The places at an address, innermost first. Each but the last is inlined into the next one. The
 * line of each but the first is that of the call. 0: nothing is known. Reads a unit when it first
 * needs it, so several threads must not call this at once. Names are valid as long as d.
 */
size_t uni_debug_lookup(struct uni_debug *d, uint64_t svma, struct uni_place ret[UNI_INLINE_MAX],
	struct uni_span *span_ret);
/* The text of a file, as the compiler saw it, if it is in the debug data (clang -gembed-source);
 * NULL: it is not. The file is one of a place that was looked up. Valid as long as d; not cleaned.
 */
const char *uni_debug_source(const struct uni_debug *d, const char *file);
/* Reads all units now. */
void uni_debug_load_all(struct uni_debug *d);
/* Why a part of it could not be read, as a line for the user; NULL: there was no failure so far. */
const char *uni_debug_note(const struct uni_debug *d);

#endif
