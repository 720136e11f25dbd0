/* SPDX-License-Identifier: BSD-2-Clause */
#include "guest/ocaml.h"

#include "base/checked.h"
#include "base/cursor.h"

#define SIZE_MAX_WORDS (1u << 24) /* of a block that is taken for one */

void uni_ocaml_of_image(const struct uni_image *img, uint64_t bias, struct uni_ocaml *ret)
{
	*ret = (struct uni_ocaml){ .start = UINT64_MAX };
	for (size_t i = 0; i < uni_image_nr_segments(img); i++) {
		const struct uni_segment *s = uni_image_segment(img, i);
		uint64_t start = s->vaddr + bias, end;

		if (__builtin_add_overflow(start, s->mem_size, &end))
			continue;
		ret->start = uni_min(ret->start, start);
		ret->end = uni_max(ret->end, end);
		if (s->exec && ret->nr_codes < UNI_OCAML_CODES) {
			ret->code[ret->nr_codes].start = start;
			ret->code[ret->nr_codes++].end = end;
		}
	}
}

bool uni_ocaml_may_be_block(const struct uni_ocaml *o, uint64_t v)
{
	return (v & 7) == 0 && v >= 4096 && (v < o->start || v >= o->end);
}

static bool read_words(struct uni_look *look, uint64_t at, uint64_t *ret, size_t nr)
{
	uint64_t end;

	if (__builtin_add_overflow(at, nr * 8, &end) ||
		uni_as_read(look->as, uni_gva_of(at), ret, nr * 8) != 0)
		return false;
	for (size_t i = 0; i < nr; i++)
		ret[i] = uni_le64((const uint8_t *)&ret[i]);
	return true;
}

/* A closure's second word: arity in its first byte, then where its environment begins. */
static uint64_t environment_of(uint64_t info)
{
	return info << 8 >> 9;
}

/* A block that was copied out of the young heap has a header of 0, and its new address. */
uint64_t uni_ocaml_moved(struct uni_look *look, uint64_t v)
{
	uint64_t word[2];

	return read_words(look, v - 8, word, 2) && word[0] == 0 && word[1] >= 4096 &&
			       (word[1] & 7) == 0
		       ? word[1]
		       : v;
}

static bool read_header(struct uni_look *look, uint64_t v, struct uni_ocaml_block *ret)
{
	uint64_t header;

	if (!read_words(look, v - 8, &header, 1))
		return false;
	ret->size = header >> 10;
	ret->tag = (uint8_t)header;
	ret->first = 0;
	if (ret->tag != UNI_OCAML_INFIX)
		return ret->size != 0 && ret->size <= SIZE_MAX_WORDS;
	/* The size is the distance to the begin of the block. */
	if (ret->size == 0 || ret->size > UNI_OCAML_WORDS ||
		!read_words(look, v - 8 * ret->size - 8, &header, 1) ||
		(uint8_t)header != UNI_OCAML_CLOSURE || header >> 10 <= ret->size)
		return false;
	ret->size = (header >> 10) - ret->size;
	return true;
}

bool uni_ocaml_read(struct uni_look *look, uint64_t v, struct uni_ocaml_block *ret)
{
	v = uni_ocaml_moved(look, v);
	if (!read_header(look, v, ret))
		return false;
	ret->nr = (uint32_t)uni_min(ret->size, (uint64_t)UNI_OCAML_WORDS);
	if (!read_words(look, v, ret->word, ret->nr))
		return false;
	if (ret->tag != UNI_OCAML_CLOSURE && ret->tag != UNI_OCAML_INFIX)
		return true;
	if (ret->nr < 2 || !uni_ocaml_is_number(ret->word[1]))
		return false;
	ret->first = (uint32_t)uni_min(environment_of(ret->word[1]), (uint64_t)ret->nr);
	return true;
}

bool uni_ocaml_is(struct uni_look *look, uint64_t v, uint8_t tag, size_t size, uint64_t *ret)
{
	struct uni_ocaml_block b;

	if (v < 4096 || (v & 7) != 0)
		return false;
	v = uni_ocaml_moved(look, v);
	return read_header(look, v, &b) && b.tag == tag && b.size == size &&
	       read_words(look, v, ret, size);
}

uint64_t uni_ocaml_code(struct uni_look *look, const struct uni_ocaml *o, uint64_t v)
{
	struct uni_ocaml_block b;
	uint64_t code;
	uint8_t arity;

	if (v < 4096 || (v & 7) != 0)
		return 0;
	v = uni_ocaml_moved(look, v);
	if (!read_header(look, v, &b) || b.size < 2 ||
		(b.tag != UNI_OCAML_CLOSURE && b.tag != UNI_OCAML_INFIX) ||
		!read_words(look, v, b.word, uni_min(b.size, (uint64_t)3)) ||
		!uni_ocaml_is_number(b.word[1]))
		return 0;
	/* With several arguments, or a tuple of them, the first word is code that takes them one
	 * by one, or apart. */
	arity = (uint8_t)(b.word[1] >> 56);
	if (arity > 1 && b.size < 3)
		return 0;
	code = b.word[arity > 1 ? 2 : 0];
	for (size_t i = 0; i < o->nr_codes; i++) {
		if (code >= o->code[i].start && code < o->code[i].end)
			return code;
	}
	return 0;
}
