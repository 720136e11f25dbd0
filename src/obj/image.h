/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ELF image: the code and names of a guest. Everything in it is hostile. Addresses here are
 * SVMA (as linked); callers add the bias. Loaded images are immutable and may be shared.
 */
#ifndef UNI_OBJ_IMAGE_H
#define UNI_OBJ_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/err.h"

#define UNI_BUILD_ID_MAX 32

struct uni_segment { /* PT_LOAD */
	uint64_t vaddr, paddr, mem_size;
	const uint8_t *bytes; /* borrowed from the image; file_size bytes */
	size_t file_size;
	bool exec, write;
};

struct uni_symbol {
	uint64_t addr;	   /* SVMA */
	uint64_t size;	   /* bytes, never 0: see uni_image_load() */
	uint32_t name;	   /* offset into the image's names: uni_image_sym_name() */
	uint8_t type;	   /* STT_* */
	uint8_t bind;	   /* STB_* */
	bool guessed_size; /* the ELF said 0; it reaches to the next symbol or the section's end */
};

struct uni_image;

/* Where debug data may be that was split off, before /usr/lib/debug. */
struct uni_image_search {
	const char *const *debug_dirs; /* borrowed */
	size_t nr_debug_dirs;
	bool called; /* the guest loads it by itself: chains go on at its entry point */
};

/*
 * Loads PATH; if it has no symbol table, looks for PATH.dbg and PATH.debug, and for BASE, BASE.dbg,
 * BASE.debug and BASE.elf where PATH is BASE with an ending such as .elf, .bin or .stripped, with
 * the same build-id (or, without build-ids, the same code); a PATH that is only debug data finds
 * its code the same way. After these come the files that a distribution would have (debugfile.h).
 * search may be NULL. Having no symbols is not an error: uni_image_note().
 * ELF32 files that hold 64-bit code load as well.
 *
 * Code symbols are FUNC, GNU_IFUNC, and NOTYPE in executable sections. Sizes: a symbol of size 0
 * (assembler) reaches to the next symbol or its section's end, and inside a symbol that has a size
 * to that one's end. No symbol reaches past its section.
 * Aliases at one address: typed before NOTYPE (linker scripts mark `_text` where the first function
 * lies), then global before weak before local, then sized before unsized, then the shorter name,
 * then strcmp order. err says what is wrong with the file.
 */
int uni_image_load_from(const char *path, const struct uni_image_search *search,
	struct uni_image **ret, struct uni_err *err);
int uni_image_load(const char *path, struct uni_image **ret, struct uni_err *err); /* search NULL */
/* The same from memory; name is for messages. data is copied. */
int uni_image_from_memory(const char *name, const void *data, size_t size, struct uni_image **ret,
	struct uni_err *err);
void uni_image_destroy(struct uni_image *img); /* NULL-safe */

const char *uni_image_path(const struct uni_image *img);
/* Path of the file the symbols came from, which may be a .dbg sibling. */
const char *uni_image_symbol_path(const struct uni_image *img);
/* Where symbols were looked for in vain, as a line for the user; NULL if they were found. */
const char *uni_image_note(const struct uni_image *img);
const struct uni_arch *uni_image_arch(
	const struct uni_image *img);			 /* NULL: machine not supported */
unsigned uni_image_machine(const struct uni_image *img); /* EM_* of the code */
size_t uni_image_build_id(const struct uni_image *img, const uint8_t **ret); /* length, 0 = none */
/* Build-id as lower-case hex; without one "x" + a hash of the text, so every image has a key. */
const char *uni_image_id(const struct uni_image *img);
uint64_t uni_image_entry(const struct uni_image *img);
size_t uni_image_nr_segments(const struct uni_image *img);
const struct uni_segment *uni_image_segment(const struct uni_image *img, size_t i);

size_t uni_image_nr_symbols(
	const struct uni_image *img); /* code symbols, sorted by address, no aliases */
const struct uni_symbol *uni_image_symbol(const struct uni_image *img, size_t i);
const char *uni_image_sym_name(const struct uni_image *img, const struct uni_symbol *sym);
/*
 * The symbol that covers the address, or NULL: never the previous one past its end. Of several, one
 * with a stated size before one with a guessed one (a label inside), then the one that starts last.
 */
const struct uni_symbol *uni_image_lookup(const struct uni_image *img, uint64_t svma);
/*
 * By name, also data symbols and aliases; the address, size 0 if unknown. Global before weak before
 * local, then the lower address. Time grows with the number of symbols. -UNI_ENOENT.
 */
int uni_image_find(
	const struct uni_image *img, const char *name, uint64_t *addr_ret, uint64_t *size_ret);

/* The name of what is there, code or data, and how far into it; NULL. Also slow. */
const char *uni_image_name_at(const struct uni_image *img, uint64_t svma, uint64_t *off_ret);

/* Copies file bytes at an SVMA; false if not all are in one segment's file part. */
bool uni_image_bytes(const struct uni_image *img, uint64_t svma, void *buf, size_t len);

/*
 * The page of code that the hypervisor writes into the guest, by Xen's note; in the file it holds
 * nothing. False if there is none.
 */
bool uni_image_stubs(const struct uni_image *img, uint64_t *svma_ret);

/* Functions whose call frame information makes no sense, and what is wrong with the first of them:
 * "2 functions; the first, at 0x1000: .eh_frame, entry at 0x18, instruction 0x3f at 0x30". 0, and
 * "" in ret: there are none. */
uint64_t uni_image_bad_rows(const struct uni_image *img, char *ret, size_t cap);

/* Can it be booted by PVH: has it Xen's note with an entry point for that? */
bool uni_image_is_pvh(const struct uni_image *img);

/* The table of dynamic linking, as linked; false: it has none. */
bool uni_image_dynamic(const struct uni_image *img, uint64_t *svma_ret, uint64_t *size_ret);

struct uni_changes;
/* Which of its bytes a guest changes (obj/changes.h). */
const struct uni_changes *uni_image_changes(const struct uni_image *img);
/* Where the note with its build-id is loaded; false: nowhere. */
bool uni_image_find_build_id(const struct uni_image *img, uint64_t *svma_ret);

struct uni_span;
/*
 * The guest runs other code there: no name and no line of it is told any more. This changes the
 * image: before others share it, and once. Sorted, not overlapping. 0 or -UNI_ENOMEM.
 */
int uni_image_forget_names(struct uni_image *img, const struct uni_span *v, size_t nr);

/*
 * Unwind hints for code loaded at bias (which is added); owned by the image, made at the first call
 * for a bias. That call changes the image: make it before other threads share it. Entries are the
 * functions at e_entry and at the addresses that Xen's notes give.
 */
int uni_image_hints(struct uni_image *img, uint64_t bias, const struct uni_unwind_hints **ret,
	struct uni_err *err);

#endif
