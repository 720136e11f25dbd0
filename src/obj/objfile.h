/* SPDX-License-Identifier: BSD-2-Clause */
/* One ELF file held in memory, and the search for the other file that belongs to it. */
#ifndef UNI_OBJ_OBJFILE_H
#define UNI_OBJ_OBJFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "obj/elffile.h"

struct uni_objfile {
	char *path;
	char *data; /* a private copy: reading a mapping would fault if the file is truncated
		       meanwhile */
	struct uni_elf elf;
	struct uni_segments segs;
	struct uni_elf_notes notes;
};

/* f is zeroed by the caller. */
int uni_objfile_load(const char *path, struct uni_objfile *f, struct uni_err *err);
/* Copies data. */
int uni_objfile_from_memory(const char *name, const void *data, size_t size, struct uni_objfile *f,
	struct uni_err *err);
void uni_objfile_deinit(struct uni_objfile *f); /* accepts zeroed files, too */

/* Same build-id or, if one of them has none, same code. */
bool uni_objfile_same_build(const struct uni_objfile *a, const struct uni_objfile *b);

/*
 * Looks beside f->path for the file with the symbols (f is stripped) or with the code (f is only
 * debug data). True: ret is loaded and is the same build. note lists the files that were tried, and
 * why each was refused.
 */
bool uni_objfile_find_sibling(
	const struct uni_objfile *f, struct uni_objfile *ret, struct uni_strbuf *note);

/* Is the wrapper's code the sibling's, but with addresses cut to 32 bits? */
bool uni_objfile_is_cut_copy(const struct uni_objfile *wrapper, const struct uni_objfile *sibling);

#endif
