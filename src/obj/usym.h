/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * .usym: the symbols of one image as they travel with a session, so that it opens on another
 * machine without the image. docs/formats/usym.md has the layout.
 */
#ifndef UNI_OBJ_USYM_H
#define UNI_OBJ_USYM_H

#include "obj/debug.h"
#include "obj/image.h"

/* A symbol source: an image or a .usym, looked up alike. */
struct uni_symtab;

/* Below a folder that is open, or AT_FDCWD; the path `shown` is for messages. */
int uni_symtab_write_below(const struct uni_symtab *s, int dir_fd, const char *name,
	const char *shown, struct uni_err *err);
int uni_usym_write(const struct uni_image *img, const char *path, struct uni_err *err);
int uni_symtab_load(const char *path, struct uni_symtab **ret, struct uni_err *err);
int uni_symtab_parse(const void *data, size_t size, struct uni_symtab **ret, struct uni_err *err);
int uni_symtab_of_image(const struct uni_image *img, struct uni_symtab **ret, struct uni_err *err);
/*
 * Names without addresses (an import): name i gets [UNI_NAMES_BASE + i * UNI_NAMES_STEP, + STEP).
 * The id is a hash of the names. They must not be empty and are cleaned.
 */
#define UNI_NAMES_BASE 0x1000u
#define UNI_NAMES_STEP 0x10u
int uni_symtab_of_names(const char *path, const char *const *names, size_t nr,
	struct uni_symtab **ret, struct uni_err *err);
/* One image of several in a guest: an address of the first one plus delta is one of this. */
struct uni_symtab_part {
	const struct uni_symtab *symtab; /* borrowed */
	uint64_t delta;			 /* 0 of the first */
};
/*
 * Several images as one source, which has the first one's id, path and addresses. It must not
 * outlive them, cannot be written and keeps no places of its own.
 */
int uni_symtab_join(const struct uni_symtab_part *part, size_t nr, struct uni_symtab **ret,
	struct uni_err *err);
/* The image of a join that knows svma (in *svma_ret: its own address of it), else the first. */
const struct uni_symtab *uni_symtab_part(
	const struct uni_symtab *s, uint64_t svma, uint64_t *svma_ret);
void uni_symtab_destroy(struct uni_symtab *s);		 /* NULL-safe */
const char *uni_symtab_id(const struct uni_symtab *s);	 /* build-id as hex */
const char *uni_symtab_path(const struct uni_symtab *s); /* of the image when it was recorded */
size_t uni_symtab_nr(const struct uni_symtab *s);
/* Name and offset into the symbol; false: unknown. The name is borrowed. */
bool uni_symtab_lookup(
	const struct uni_symtab *s, uint64_t svma, const char **name_ret, uint64_t *offset_ret);
/*
 * Is the symbol there only said to cover the address because nothing better follows (its size is a
 * guess)? Then a function that debug data names goes before it.
 */
bool uni_symtab_is_guess(const struct uni_symtab *s, uint64_t svma);

/*
 * Lines and inlined functions. They come from debug data that the source is given (and then owns),
 * or from a .usym that kept those of some addresses.
 */
void uni_symtab_set_debug(struct uni_symtab *s, struct uni_debug *debug);
bool uni_symtab_has_places(const struct uni_symtab *s);
/* As uni_debug_lookup(), not for several threads at once. */
size_t uni_symtab_places(
	const struct uni_symtab *s, uint64_t svma, struct uni_place ret[UNI_INLINE_MAX]);
/* Keeps those of these addresses, so that they are written too. Sorts svma. Once only. */
int uni_symtab_keep_places(struct uni_symtab *s, uint64_t *svma, size_t nr, struct uni_err *err);

#endif
