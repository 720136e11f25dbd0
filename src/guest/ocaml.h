/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values of OCaml (4.12 and later, 64 bits) in a guest's memory. A value is a word: a number if it
 * is odd, else the address of a block. The word before a block has its size and its tag, so that
 * the heap describes itself. For the files of this folder.
 */
#ifndef UNI_GUEST_OCAML_H
#define UNI_GUEST_OCAML_H

#include "guest/model.h"

#define UNI_OCAML_WORDS 256 /* that are read of one block */
#define UNI_OCAML_CODES 4   /* parts of an image */

/* Tags of blocks that are no tuple, record or variant. */
enum {
	UNI_OCAML_CONTINUATION = 245,
	UNI_OCAML_CLOSURE = 247,
	UNI_OCAML_INFIX = 249, /* a closure within another one's block */
	UNI_OCAML_OPAQUE = 251 /* this one and those above have no values */
};

/* The place of the image, and of its code. */
struct uni_ocaml {
	uint64_t start, end; /* in the guest */
	size_t nr_codes;
	struct {
		uint64_t start, end;
	} code[UNI_OCAML_CODES];
};

struct uni_ocaml_block {
	uint64_t size;	/* words */
	uint32_t first; /* of a closure: the first word that is a value of its environment */
	uint32_t nr;	/* words that were read: all, or the first ones */
	uint8_t tag;
	uint64_t word[UNI_OCAML_WORDS];
};

void uni_ocaml_of_image(const struct uni_image *img, uint64_t bias, struct uni_ocaml *ret);

static inline bool uni_ocaml_is_number(uint64_t v)
{
	return (v & 1) != 0;
}

/* Could it be the address of a block in the heap? The image's own blocks do not count. */
bool uni_ocaml_may_be_block(const struct uni_ocaml *o, uint64_t v);
/* The new place of a block that the collector has moved; v: it has not moved. */
uint64_t uni_ocaml_moved(struct uni_look *look, uint64_t v);
/* The following read a block where it is now. */
/* False: not readable, or no block. Within a closure's block, it is the rest from v on. */
bool uni_ocaml_read(struct uni_look *look, uint64_t v, struct uni_ocaml_block *ret);
/* Is it a block of that tag, with that many words? Reads them. */
bool uni_ocaml_is(struct uni_look *look, uint64_t v, uint8_t tag, size_t size, uint64_t *ret);
/* The code that an application of the closure v runs; 0: it is no closure. */
uint64_t uni_ocaml_code(struct uni_look *look, const struct uni_ocaml *o, uint64_t v);

#endif
