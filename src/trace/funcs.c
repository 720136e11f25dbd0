/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/funcs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/strtab.h"
#include "base/text.h"
#include "base/vec.h"
#include "obj/demangle.h"

#define UNNAMED UINT32_MAX /* its name was not asked for yet */

struct func {
	uint64_t address;
	uint32_t name; /* string */
};

struct uni_funcs {
	struct uni_funcs_naming naming;
	UNI_VEC(struct func) func;
	struct uni_strtab *names;
	uint32_t *slot; /* func by address; 0 is free */
	size_t nr_slots;
	UNI_VEC(uint32_t) by_name; /* func by string, 0: none */
};

struct uni_funcs *uni_funcs_create(const struct uni_funcs_naming *naming)
{
	struct uni_funcs *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	if (naming != NULL)
		f->naming = *naming;
	f->nr_slots = 1024;
	f->slot = calloc(f->nr_slots, sizeof(*f->slot));
	f->names = uni_strtab_create();
	if (f->slot == NULL || f->names == NULL || !uni_vec_push(&f->func, (struct func){ 0 })) {
		uni_funcs_destroy(f);
		return NULL;
	}
	return f;
}

void uni_funcs_destroy(struct uni_funcs *f)
{
	if (f == NULL)
		return;
	uni_strtab_destroy(f->names);
	uni_vec_free(&f->func);
	uni_vec_free(&f->by_name);
	free(f->slot);
	free(f);
}

static size_t probe_function(const struct uni_funcs *f, uint64_t address)
{
	size_t mask = f->nr_slots - 1, i = (size_t)(uni_hash_pair(address, 0) >> 7) & mask;

	while (f->slot[i] != 0 && f->func.v[f->slot[i]].address != address)
		i = (i + 1) & mask;
	return i;
}

static bool grow_functions(struct uni_funcs *f)
{
	uint32_t *old = f->slot;

	if (f->func.nr < f->nr_slots / 2)
		return true;
	f->slot = calloc(f->nr_slots * 2, sizeof(*f->slot));
	if (f->slot == NULL) {
		f->slot = old;
		return false;
	}
	f->nr_slots *= 2;
	free(old);
	for (uint32_t i = 1; i < f->func.nr; i++) {
		if (f->func.v[i].address != 0)
			f->slot[probe_function(f, f->func.v[i].address)] = i;
	}
	return true;
}

int uni_funcs_at(struct uni_funcs *f, uint64_t address, uint32_t *ret)
{
	size_t i = probe_function(f, address);

	*ret = address != 0 ? f->slot[i] : UNI_FUNC_NONE;
	if (*ret != UNI_FUNC_NONE || address == 0)
		return 0;
	if (f->func.nr >= UNI_FUNCS_MAX)
		return -UNI_ERANGE;
	if (!grow_functions(f) || !uni_vec_push(&f->func, ((struct func){ address, UNNAMED })))
		return -UNI_ENOMEM;
	*ret = (uint32_t)f->func.nr - 1;
	f->slot[probe_function(f, address)] = *ret;
	return 0;
}

int uni_funcs_within(struct uni_funcs *f, uint64_t address, uint32_t *ret)
{
	const char *name;
	uint64_t off = 0;

	if (address != 0 && f->naming.symtab != NULL &&
		!uni_symtab_lookup(f->naming.symtab, address - f->naming.bias, &name, &off))
		off = 0;
	return uni_funcs_at(f, address - off, ret);
}

uint32_t uni_funcs_named(struct uni_funcs *f, const char *name, size_t len)
{
	char clean[UNI_TEXT_MAX];
	uint32_t s;

	s = uni_strtab_add(f->names, clean, uni_text_clean(clean, sizeof(clean), name, len));
	if (s == UNI_STR_NONE || s == 0)
		return UNI_FUNC_NONE;
	while (f->by_name.nr <= s) {
		if (!uni_vec_push(&f->by_name, 0))
			return UNI_FUNC_NONE;
	}
	if (f->by_name.v[s] != 0)
		return f->by_name.v[s];
	if (f->func.nr >= UNI_FUNCS_MAX || !uni_vec_push(&f->func, ((struct func){ 0, s })))
		return UNI_FUNC_NONE;
	f->by_name.v[s] = (uint32_t)f->func.nr - 1;
	return f->by_name.v[s];
}

/* Traces have addresses of functions' beginnings, so an offset means that a symbol is missing. */
static uint32_t find_name(struct uni_funcs *f, uint64_t address)
{
	char text[UNI_TEXT_MAX];
	const char *name;
	uint64_t off;
	int n;

	if (f->naming.symtab == NULL ||
		!uni_symtab_lookup(f->naming.symtab, address - f->naming.bias, &name, &off)) {
		n = snprintf(text, sizeof(text), "%#" PRIx64, address);
		return uni_strtab_add(f->names, text, (size_t)n);
	}
	if (!f->naming.mangled && uni_demangle(name, text, sizeof(text)))
		name = text;
	return uni_strtab_add(f->names, name, strlen(name));
}

const char *uni_funcs_name(struct uni_funcs *f, uint32_t func)
{
	struct func *fn;

	if (func >= f->func.nr)
		return "";
	fn = &f->func.v[func];
	if (fn->name == UNNAMED)
		fn->name = find_name(f, fn->address);
	/* Out of memory is an unknown name, asked for again. */
	if (fn->name == UNI_STR_NONE)
		return "";
	return uni_strtab_get(f->names, fn->name);
}

uint64_t uni_funcs_address(const struct uni_funcs *f, uint32_t func)
{
	return func < f->func.nr ? f->func.v[func].address : 0;
}

uint32_t uni_funcs_nr(const struct uni_funcs *f)
{
	return (uint32_t)f->func.nr;
}
