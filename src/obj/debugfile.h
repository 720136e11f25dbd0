/* SPDX-License-Identifier: BSD-2-Clause */
/* Debug data that was split off an image: where distributions and .gnu_debuglink put it. */
#ifndef UNI_OBJ_DEBUGFILE_H
#define UNI_OBJ_DEBUGFILE_H

#include "base/strbuf.h"
#include "obj/objfile.h"

/* Has it DWARF of its own, packed or not? */
bool uni_elf_has_dwarf(const struct uni_elf *e);
bool uni_elf_has_symtab(const struct uni_elf *e);

/*
 * Looks for the file that has what `wanted` asks for: by build-id in DIR/.build-id/ of each debug
 * directory, and by .gnu_debuglink beside f, in .debug/ beside it, and in DIR/ + the path of f.
 * True: ret is loaded and of the same build (build-id, else the checksum of the link). note
 * collects what was tried.
 */
bool uni_objfile_find_debug(const struct uni_objfile *f, const struct uni_image_search *search,
	bool (*wanted)(const struct uni_elf *e), struct uni_objfile *ret, struct uni_strbuf *note);

#endif
