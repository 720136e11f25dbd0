/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds debug data that was split off an image, in the places of distributions and .gnu_debuglink.
 */
#ifndef UNI_OBJ_DEBUGFILE_H
#define UNI_OBJ_DEBUGFILE_H

#include "base/strbuf.h"
#include "obj/objfile.h"

/* Does it have DWARF of its own, compressed or not? */
bool uni_elf_has_dwarf(const struct uni_elf *e);
bool uni_elf_has_symtab(const struct uni_elf *e);

/*
 * Looks for the file of the same build that `wanted` accepts. By build-id: in DIR/.build-id/ of
 * each debug directory. By .gnu_debuglink: beside f, in .debug/ beside it, and in DIR/ + the path
 * of f. True: ret is loaded and of the same build (by build-id, else by the link's checksum). note
 * lists all places that were tried.
 */
bool uni_objfile_find_debug(const struct uni_objfile *f, const struct uni_image_search *search,
	bool (*wanted)(const struct uni_elf *e), struct uni_objfile *ret, struct uni_strbuf *note);

#endif
