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
	bool guessed_size; /* the ELF states 0; the symbol reaches to the next one or the section's
			      end */
};

struct uni_image;

/* Directories of split-off debug data, searched before /usr/lib/debug. */
struct uni_image_search {
	const char *const *debug_dirs; /* borrowed */
	size_t nr_debug_dirs;
	bool called; /* the guest loads the image by itself: chains go on at its entry point */
	/* Registers, by their DWARF numbers, that the unwind rows of the program need: its callers
	 * are found through this image, too. uni_image_follows(). */
	uint64_t follow;
};

/*
 * Loads PATH. If it has no symbol table, looks for its other file, which must have the same
 * build-id (or, without build-ids, the same code). That may be PATH.dbg or PATH.debug. If PATH is
 * BASE with an ending such as .elf, .bin or .stripped, it may also be BASE, BASE.dbg, BASE.debug or
 * BASE.elf. If PATH is only debug data, its code is found in the same way. Last come the places
 * that distributions use (debugfile.h). search may be NULL. An image without symbols is no error:
 * see uni_image_note(). ELF32 files with 64-bit code load as well.
 *
 * Code symbols are FUNC, GNU_IFUNC, and NOTYPE in executable sections. A symbol of size 0
 * (assembler) reaches to the next symbol or its section's end. If it is inside a symbol that has a
 * size, it reaches to the end of that symbol. No symbol reaches past its section.
 * Among aliases at one address, OCaml's bounds of a module's code come last. Typed symbols go
 * before NOTYPE (linker scripts put `_text` at the first function). Then come global before weak
 * before local, then sized before unsized, then the shorter name, then strcmp order. err says what
 * is wrong with the file.
 */
int uni_image_load_from(const char *path, const struct uni_image_search *search,
	struct uni_image **ret, struct uni_err *err);
int uni_image_load(const char *path, struct uni_image **ret, struct uni_err *err); /* search NULL */
/* The same from memory; name is for messages. data is copied. */
int uni_image_from_memory(const char *name, const void *data, size_t size, struct uni_image **ret,
	struct uni_err *err);
/* The same; of search only `called` and `follow` count. */
int uni_image_from_memory_for(const char *name, const void *data, size_t size,
	const struct uni_image_search *search, struct uni_image **ret, struct uni_err *err);
void uni_image_destroy(struct uni_image *img); /* NULL-safe */
/* The registers whose values its unwind rows need, besides pc, sp and the frame pointer. */
uint64_t uni_image_follows(const struct uni_image *img);
/* It was opened by a link without its name. False: no memory. */
bool uni_image_set_path(struct uni_image *img, const char *path);

const char *uni_image_path(const struct uni_image *img);
/* Path of the file with the symbols, which may be a .dbg sibling. */
const char *uni_image_symbol_path(const struct uni_image *img);
/* The places that were searched for symbols, as a line for the user; NULL if there are symbols. */
const char *uni_image_note(const struct uni_image *img);
const struct uni_arch *uni_image_arch(
	const struct uni_image *img);			 /* NULL: machine not supported */
unsigned uni_image_machine(const struct uni_image *img); /* EM_* of the code */
size_t uni_image_build_id(const struct uni_image *img, const uint8_t **ret); /* length, 0 = none */
/*
 * Build-id as lower-case hex. Without a build-id: "x" + a hash of the text, so every image has a
 * key.
 */
const char *uni_image_id(const struct uni_image *img);
uint64_t uni_image_entry(const struct uni_image *img);
size_t uni_image_nr_segments(const struct uni_image *img);
const struct uni_segment *uni_image_segment(const struct uni_image *img, size_t i);

size_t uni_image_nr_symbols(
	const struct uni_image *img); /* code symbols, sorted by address, no aliases */
const struct uni_symbol *uni_image_symbol(const struct uni_image *img, size_t i);
const char *uni_image_sym_name(const struct uni_image *img, const struct uni_symbol *sym);
/*
 * The symbol that covers the address, or NULL: never a symbol that ends before it. Among several, a
 * stated size goes before a guessed one (a label inside), then the symbol that starts last.
 */
const struct uni_symbol *uni_image_lookup(const struct uni_image *img, uint64_t svma);
/*
 * Finds the address and size (0 if unknown) of a symbol, also of data and aliases. Global before
 * weak before local, then the lower address. Time grows with the number of symbols. -UNI_ENOENT:
 * none.
 */
int uni_image_find(
	const struct uni_image *img, const char *name, uint64_t *addr_ret, uint64_t *size_ret);

/* The name of the code or data at svma, and the offset into it; NULL: none. Also slow. */
const char *uni_image_name_at(const struct uni_image *img, uint64_t svma, uint64_t *off_ret);

/* Copies file bytes from an SVMA; false if they are not all in one segment's file part. */
bool uni_image_bytes(const struct uni_image *img, uint64_t svma, void *buf, size_t len);

/*
 * The page of code that the hypervisor writes into the guest, by Xen's note or by its symbol; it is
 * empty in the file. False if there is none.
 */
bool uni_image_stubs(const struct uni_image *img, uint64_t *svma_ret);
/* Does that page hold this address, or the one that Xen shares with a PV guest? */
bool uni_image_is_xens(const struct uni_image *img, uint64_t svma);

/*
 * The number of functions whose call frame information is malformed. ret gets that number, and the
 * error in the first: "2 functions; the first, at 0x1000: .eh_frame, entry at 0x18, instruction
 * 0x3f at 0x30". Returns 0, and "" in ret, if there are none.
 */
uint64_t uni_image_bad_rows(const struct uni_image *img, char *ret, size_t cap);

/* Can PVH boot it, that is: does it have Xen's note with an entry point for PVH? */
bool uni_image_is_pvh(const struct uni_image *img);

/* The table of dynamic linking, as linked; false: it has none. */
bool uni_image_dynamic(const struct uni_image *img, uint64_t *svma_ret, uint64_t *size_ret);

struct uni_changes;
/* The bytes that a guest changes (obj/changes.h). */
const struct uni_changes *uni_image_changes(const struct uni_image *img);
/* The address at which the note with its build-id is loaded; false: it is not loaded. */
bool uni_image_find_build_id(const struct uni_image *img, uint64_t *svma_ret);

struct uni_span;
/*
 * From now on, gives no name and no line for these spans, where the guest runs other code. Call
 * this once, before others share the image, as it changes the image. The spans are sorted and do
 * not overlap. Returns 0 or -UNI_ENOMEM.
 */
int uni_image_forget_names(struct uni_image *img, const struct uni_span *v, size_t nr);

/*
 * Unwind hints for code loaded at bias (which is added); owned by the image. The first call for a
 * bias makes them and changes the image: do it before other threads share it. The functions at
 * e_entry and at the addresses in Xen's notes are entry points.
 */
int uni_image_hints(struct uni_image *img, uint64_t bias, const struct uni_unwind_hints **ret,
	struct uni_err *err);
/* Do most of the functions that call others, by size, set up no frame pointer? Functions that call
 * nothing do not count: GCC gives them none in any case, and their caller is found without. */
bool uni_image_lacks_frames(const struct uni_image *img, const struct uni_unwind_hints *h);

#endif
