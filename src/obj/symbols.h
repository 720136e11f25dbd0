/* SPDX-License-Identifier: BSD-2-Clause */
/* The names in an ELF file, cleaned, sized and without aliases. */
#ifndef UNI_OBJ_SYMBOLS_H
#define UNI_OBJ_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "obj/elffile.h"
#include "obj/image.h"
#include "obj/ranges.h"

/* Any symbol with an address, also data and aliases: to find symbols by name. */
struct uni_named {
	uint64_t addr, size;
	uint32_t name;
	uint8_t rank; /* global 0, weak 1, local 2 */
};

struct uni_symbols {
	struct uni_symbol *v; /* code, sorted, one for each address */
	size_t nr;
	struct uni_named *named;
	size_t nr_named;
	struct uni_strbuf names; /* NUL-terminated strings, one after the other */
	struct uni_ranges ranges;
};

void uni_symbols_init(struct uni_symbols *s);
/*
 * Reads .symtab, else .dynsym; it is no error if there is neither. s is initialised and empty.
 * `code` has the same build's code; it may be e.
 */
int uni_symbols_read(const char *file, const struct uni_elf *e, const struct uni_elf *code,
	struct uni_symbols *s, struct uni_err *err);
void uni_symbols_deinit(struct uni_symbols *s);

#endif
