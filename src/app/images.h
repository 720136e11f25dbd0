/* SPDX-License-Identifier: BSD-2-Clause */
/* A guest's images besides the one that it booted, and that one if it has moved. */
#ifndef UNI_APP_IMAGES_H
#define UNI_APP_IMAGES_H

#include "app/attach.h"
#include "profile/namer.h"
#include "sampling/lookout.h"

/* -e of all commands that attach; `which` says what the first one is. */
#define UNI_IMAGE_OPTION(list, which)                                                           \
	{                                                                                       \
		'e', "image", UNI_OPT_LIST, &(list), "ELF", which UNI_IMAGE_AGAIN, "FILE", NULL \
	}
#define UNI_IMAGE_AGAIN ". Given again: a program or library that the guest loads by itself"
/* The first one of a guest that runs already. */
#define UNI_IMAGE_RUNNING                                                        \
	"the image that the guest runs, with symbols, or only " UNI_SYMBOL_TABLE \
	" (default: from the VMM's command line, and "                           \
	"its .dbg sibling)"
#define UNI_SYSROOT_OPTION(list)                                                   \
	{                                                                          \
		0, "sysroot", UNI_OPT_LIST, &(list), "PATH",                       \
			"an ELF file that the guest loads by itself, or a folder " \
			"of them. Files in its memory are named as well. May be "  \
			"given several times",                                     \
			"FILE", NULL                                               \
	}

/* The file of the first -e; NULL: there was none. */
const char *uni_images_first(const struct uni_opt_list *given);
/* Adds the files of further -e to `sysroot`: the guest's programs. */
int uni_images_others(
	const struct uni_opt_list *given, struct uni_opt_list *sysroot, struct uni_err *err);

/*
 * Looks through the attached guest's memory: for g->image, if `moved` (g->bias is set then, or
 * -UNI_EMISMATCH), and for what lies below args->sysroot. Then all have hints (g->hints).
 */
int uni_guest_find_images(
	struct uni_guest *g, const struct uni_attach_args *args, bool moved, struct uni_err *err);
/* On stderr: which files of args->sysroot were not found. Once, when the guest is settled. */
void uni_guest_note_missing(const struct uni_guest *g);
/* The same where the target itself knows which files are mapped, and where (ops->files). */
int uni_guest_place_files(
	struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err);
/* Hints of all of g's images, in g->hints. */
int uni_guest_chain_hints(struct uni_guest *g, struct uni_err *err);
/* Drops them, for another try. */
void uni_guest_drop_images(struct uni_guest *g);

/*
 * Watches for images that g loads later, in the places that uni_guest_find_images() searched. The
 * caller destroys it before g is closed. NULL if no image can come: no --sysroot, or a guest that
 * does not go on.
 */
int uni_guest_lookout(struct uni_guest *g,
	void (*on_image)(void *ctx, const struct uni_located *image), void *ctx,
	struct uni_lookout **ret, struct uni_err *err);
/* For on_image: it becomes g's, and is unwound from then on. */
int uni_guest_add_image(struct uni_guest *g, const struct uni_located *image, struct uni_err *err);

/* The symbols of all of g's images as one source, with the objects that it uses. */
struct uni_guest_symbols {
	const struct uni_symtab *symtab; /* NULL: none */
	struct uni_symtab *own[UNI_IMAGES_MAX + 1];
	size_t nr;
};

/* naming: does it want lines or inlined functions? NULL: it does not. */
int uni_guest_symbols_load(const struct uni_guest *g, const struct uni_image_search *search,
	const struct uni_naming *naming, struct uni_guest_symbols *ret, struct uni_err *err);
void uni_guest_symbols_free(struct uni_guest_symbols *s);

#endif
