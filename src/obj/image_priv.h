/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of an image, for the files of this folder. */
#ifndef UNI_OBJ_IMAGE_PRIV_H
#define UNI_OBJ_IMAGE_PRIV_H

#include "obj/cfi.h"
#include "obj/image.h"
#include "obj/objfile.h"
#include "obj/changes.h"
#include "obj/symbols.h"

#define UNI_IMAGE_NOTE_MAX 512
#define UNI_ENTRIES_MAX	   3

/* Hints for one bias. The image keeps them all, so their pointers stay valid. */
struct uni_image_hints {
	struct uni_image_hints *next;
	uint64_t bias;
	struct uni_unwind_hints hints;
	struct uni_cfi_table cfi; /* the image's at this bias */
	struct uni_func_hint *func;
};

struct uni_image {
	struct uni_objfile file; /* the segments' bytes are here */
	char *path, *symbol_path;
	struct uni_symbols syms;
	unsigned machine;
	const struct uni_arch *arch;
	uint8_t build_id[UNI_BUILD_ID_MAX];
	size_t build_id_len;
	char id[2 * UNI_BUILD_ID_MAX + 1];
	uint64_t entries[UNI_ENTRIES_MAX]; /* SVMA of code that nobody called: e_entry, PVH note */
	size_t nr_entries;
	uint64_t stubs; /* SVMA of the page that Xen fills in, if has_stubs */
	bool has_stubs;
	uint64_t shared; /* SVMA of the page over which the guest maps the one that Xen shares */
	bool has_shared;
	uint64_t dynamic, dynamic_size; /* SVMA of PT_DYNAMIC; size 0: none */
	bool called;			/* the image has no entry points: other code calls it */
	char note[UNI_IMAGE_NOTE_MAX];	/* "" or why there are no symbols */
	struct uni_image_hints *hints;
	uint64_t follow; /* as in struct uni_image_search */
	struct uni_changes changes;
	struct uni_span *unnamed; /* spans that differ in the guest: they have no names any more */
	size_t nr_unnamed;
	struct uni_cfi *cfi; /* NULL: the image has no call frame information */
	struct uni_cfi_bad bad_cfi;
};

void uni_image_hints_free(struct uni_image_hints *h);
/* Compiles the call frame information of img->file and sym (which may be img->file itself). */
int uni_image_read_cfi(struct uni_image *img, const struct uni_objfile *sym, struct uni_err *err);

#endif
