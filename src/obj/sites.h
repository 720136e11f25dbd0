/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places at which a function can be traced: the five bytes at its start, and at each of its
 * returns. A tracer replaces them by a call or a jump (guest/README.md has the compiler flags for
 * them). They are found in tables and relocations of the linked image, never by searching for
 * patterns. So each is known to be one instruction. Everything in the file is hostile; addresses
 * are SVMA.
 *
 *   entry   __mcount_loc (-mrecord-mcount), __patchable_function_entries;
 *           without either, a 5-byte nop at a function's very start.
 *   exit    relocations against __x86_return_thunk (link with --emit-relocs).
 */
#ifndef UNI_OBJ_SITES_H
#define UNI_OBJ_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "obj/image.h"

#define UNI_SITE_BYTES 5

enum uni_site_kind {
	UNI_SITE_ENTRY, /* traced: `call hook` */
	UNI_SITE_EXIT,	/* traced: `jmp hook` */
};

/* The instructions that the file has at a site. */
enum uni_site_state {
	UNI_SITE_FREE,	/* one 5-byte nop, or `ret` and int3: costs nothing while it is off */
	UNI_SITE_JUMPS, /* one call or jump to code that does nothing: may be patched at any time */
	UNI_SITE_PIECES, /* several instructions: may be patched only while no CPU is among them
			    (`uniscope trace prepare` makes one instruction of them) */
};

struct uni_site {
	uint64_t addr;
	uint8_t kind;  /* enum uni_site_kind */
	uint8_t state; /* enum uni_site_state */
	/* The bytes while it is not traced: the file's, unless `trace prepare --on` switched it on
	 */
	uint8_t off[UNI_SITE_BYTES];
};

/* The sites of a function are complete: one entry, then all exits. */
struct uni_site_function {
	uint64_t addr, size;
	const char *name; /* borrowed from the image */
	uint32_t first;	  /* its sites are site[first], first + 1, ... */
	uint32_t nr;
	uint8_t low; /* low nibble of the entry's return address. An aligned function has one that
			head.kinds calls an entry; for others hooks.entry_any is to be called */
	bool exits_known; /* its sites have all its returns: it can be traced with its exits */
	bool pieces;	  /* some site is UNI_SITE_PIECES */
};

struct uni_sites {
	struct uni_site *site;
	struct uni_site_function *function; /* by address; only those with an entry site */
	size_t nr_sites, nr_functions;
	size_t nr_foreign; /* sites that were left out: they are in no function, or have unexpected
			      bytes */
	uint64_t thunk;	   /* __x86_return_thunk; 0: none */
	/* The tracer's hooks that `trace prepare --on` uses; 0: none */
	uint64_t hook_entry, hook_entry_any, hook_exit;
	bool relocations; /* the exits come from relocations; without them no exits_known is set */
};

/*
 * Reads the files of img once more; img must outlive ret. -UNI_ENOENT: it has no such sites; the
 * message names the compiler flags.
 */
int uni_sites_read(const struct uni_image *img, struct uni_sites **ret, struct uni_err *err);
/* The same of one file in memory (img was made from it). */
int uni_sites_from_memory(const struct uni_image *img, void *data, size_t size,
	struct uni_sites **ret, struct uni_err *err);
void uni_sites_destroy(struct uni_sites *s); /* NULL-safe */

/* The function that starts at addr, or NULL. */
const struct uni_site_function *uni_sites_at(const struct uni_sites *s, uint64_t addr);

/*
 * The bytes that call, or jump to, `hook`; both addresses as loaded. False: the hook is too far
 * away.
 */
bool uni_site_on(const struct uni_site *site, uint64_t bias, uint64_t hook,
	uint8_t ret[static UNI_SITE_BYTES]);
/* The address that these bytes, read at the site, call or jump to; 0: they do neither. */
uint64_t uni_site_hook(
	const struct uni_site *site, uint64_t bias, const uint8_t bytes[static UNI_SITE_BYTES]);
/* Do these bytes of the site call one of the hooks above? */
bool uni_site_is_on(const struct uni_sites *s, const struct uni_site *site,
	const uint8_t bytes[static UNI_SITE_BYTES]);
/* The bytes that cost nothing while it is off; these are off[] if state is UNI_SITE_FREE. */
void uni_site_free_bytes(const struct uni_site *site, uint8_t ret[static UNI_SITE_BYTES]);

#endif
