/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * .usym: the symbols of one image, stored with a session, so that it can be read on another machine
 * without the image. docs/formats/usym.md has the layout.
 */
#ifndef UNI_OBJ_USYM_H
#define UNI_OBJ_USYM_H

#include "obj/debug.h"
#include "obj/image.h"

/* A source of symbols: an image or a .usym, with the same look-ups. */
struct uni_symtab;

/* Writes it below an open folder, or AT_FDCWD; `shown` is the path for messages. */
int uni_symtab_write_below(const struct uni_symtab *s, int dir_fd, const char *name,
	const char *shown, struct uni_err *err);
int uni_usym_write(const struct uni_image *img, const char *path, struct uni_err *err);
int uni_symtab_load(const char *path, struct uni_symtab **ret, struct uni_err *err);
int uni_symtab_parse(const void *data, size_t size, struct uni_symtab **ret, struct uni_err *err);
int uni_symtab_of_image(const struct uni_image *img, struct uni_symtab **ret, struct uni_err *err);
/* The same for a library: code without a symbol is called by its file, "[libc.so.6]". */
int uni_symtab_of_library(
	const struct uni_image *img, struct uni_symtab **ret, struct uni_err *err);
/*
 * Names without addresses (an import): name i gets [UNI_NAMES_BASE + i * UNI_NAMES_STEP, + STEP).
 * The id is a hash of the names. The names must not be empty; they are cleaned.
 */
#define UNI_NAMES_BASE 0x1000u
#define UNI_NAMES_STEP 0x10u
int uni_symtab_of_names(const char *path, const char *const *names, size_t nr,
	struct uni_symtab **ret, struct uni_err *err);
/*
 * One of several images in a guest: an address of the first image plus delta is an address of this
 * one.
 */
struct uni_symtab_part {
	const struct uni_symtab *symtab; /* borrowed */
	uint64_t delta;			 /* 0 for the first */
};
/*
 * Several images as one source, which has the first one's id, path and addresses. It must not
 * outlive them, cannot be written and keeps no places of its own.
 */
int uni_symtab_join(const struct uni_symtab_part *part, size_t nr, struct uni_symtab **ret,
	struct uni_err *err);
/* The image of a join that knows svma, else the first. *svma_ret is that image's own address. */
const struct uni_symtab *uni_symtab_part(
	const struct uni_symtab *s, uint64_t svma, uint64_t *svma_ret);
void uni_symtab_destroy(struct uni_symtab *s);		 /* NULL-safe */
const char *uni_symtab_id(const struct uni_symtab *s);	 /* build-id as hex */
const char *uni_symtab_path(const struct uni_symtab *s); /* the image as recorded */
size_t uni_symtab_nr(const struct uni_symtab *s);
/* Name and offset into the symbol; false: unknown. The name is borrowed. */
bool uni_symtab_lookup(
	const struct uni_symtab *s, uint64_t svma, const char **name_ret, uint64_t *offset_ret);
/*
 * Is the symbol only a guess? Then it covers the address only because no better symbol follows (its
 * size is a guess). A function that debug data names goes before it.
 */
bool uni_symtab_is_guess(const struct uni_symtab *s, uint64_t svma);

/*
 * Lines and inlined functions. They come from debug data, which the source owns once it is set. Or
 * they come from a .usym, which has them for some addresses.
 */
void uni_symtab_set_debug(struct uni_symtab *s, struct uni_debug *debug);
bool uni_symtab_has_places(const struct uni_symtab *s);
/* As uni_debug_lookup(): several threads must not call it at once. */
size_t uni_symtab_places(
	const struct uni_symtab *s, uint64_t svma, struct uni_place ret[UNI_INLINE_MAX]);
/* Drops the symbols that none of these addresses has: for a table that is much larger than its use.
 */
int uni_symtab_keep_symbols(
	struct uni_symtab *s, const uint64_t *svma, size_t nr, struct uni_err *err);
/*
 * Keeps the places of these addresses, so that they are written, too. Sorts svma. Call it only
 * once.
 */
int uni_symtab_keep_places(struct uni_symtab *s, uint64_t *svma, size_t nr, struct uni_err *err);

#endif
