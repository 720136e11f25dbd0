/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of a trace: small numbers, with their addresses and names. */
#ifndef UNI_TRACE_FUNCS_H
#define UNI_TRACE_FUNCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "obj/usym.h"

#define UNI_FUNCS_MAX (1u << 18) /* numbers, UNI_FUNC_NONE is one of them */
#define UNI_FUNC_NONE 0		 /* not known; its name is "" */

struct uni_funcs; /* opaque */

struct uni_funcs_naming {
	const struct uni_symtab *symtab; /* borrowed; NULL: no names, addresses are shown */
	uint64_t bias;			 /* address in the guest minus address in the image */
	bool mangled;			 /* names as the linker has them */
};

/* naming NULL: of names only. NULL: out of memory. */
struct uni_funcs *uni_funcs_create(const struct uni_funcs_naming *naming);
void uni_funcs_destroy(struct uni_funcs *f); /* NULL-safe */
/* The number of the function at this address; UNI_FUNC_NONE for address 0. -UNI_ERANGE: there are
 * too many others; -UNI_ENOMEM: ask again. Then *ret is UNI_FUNC_NONE. */
int uni_funcs_at(struct uni_funcs *f, uint64_t address, uint32_t *ret);
/* The same of a function that has this address within it, as far as symbols tell. */
int uni_funcs_within(struct uni_funcs *f, uint64_t address, uint32_t *ret);
/* The same by name, for functions parsed from text. UNI_FUNC_NONE: too many, or out of memory. */
uint32_t uni_funcs_named(struct uni_funcs *f, const char *name, size_t len);
/* Clean, borrowed, stable; an address in hex if it has no name. */
const char *uni_funcs_name(struct uni_funcs *f, uint32_t func);
uint64_t uni_funcs_address(const struct uni_funcs *f, uint32_t func); /* 0: known by name only */
/* Numbers are below this. */
uint32_t uni_funcs_nr(const struct uni_funcs *f);

#endif
