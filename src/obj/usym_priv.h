/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a symbol source, for the files of this folder. */
#ifndef UNI_OBJ_USYM_PRIV_H
#define UNI_OBJ_USYM_PRIV_H

#include "base/strbuf.h"
#include "obj/ranges.h"
#include "obj/usym.h"

#define FNV_BASIS 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

/* Strings are offsets into the names; 0 (the offset of the id) means none. */
struct uni_symtab_place {
	uint32_t function, file, line;
};

struct uni_symtab_span {
	uint64_t start, size;
	uint32_t first, nr; /* indices into the places */
};

struct uni_symtab {
	struct uni_symbol *v;
	size_t nr;
	/*
	 * id, path, a name for each symbol in the symbols' order, then further strings of the
	 * places
	 */
	struct uni_strbuf names;
	uint32_t path; /* offset; the id is at 0 */
	unsigned machine;
	struct uni_ranges ranges;
	struct uni_symtab_span *spans; /* sorted, none overlaps */
	size_t nr_spans;
	struct uni_symtab_place *places;
	size_t nr_places;
	struct uni_debug *debug;      /* NULL: places are known for the spans only */
	struct uni_symtab_part *part; /* a join: its only contents */
	size_t nr_parts;
};

struct uni_symtab *uni_symtab_new(size_t nr); /* room for so many symbols; NULL: out of memory */

#endif
