/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of debug data, for the files of this folder. */
#ifndef UNI_OBJ_DEBUG_PRIV_H
#define UNI_OBJ_DEBUG_PRIV_H

#include <elfutils/libdw.h>

#include "base/strbuf.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "obj/debug.h"
#include "obj/line_unit.h"
#include "obj/members.h"
#include "obj/objfile.h"
#include "obj/params.h"
#include "obj/ranges.h"

#define UNI_SCOPE_NONE UINT32_MAX

/* A function, or one that was inlined into it. Its name is looked up at the first use. */
struct uni_scope {
	Dwarf_Off die;
	uint32_t parent; /* a lower index: UNI_SCOPE_NONE if it is not inlined */
	uint32_t name;	 /* string; UNI_STR_NONE: not looked up yet; 0: it has none */
	uint32_t call_file, call_line;
};

struct uni_row {
	uint32_t file, line;
};

struct uni_cu {
	Dwarf_Off die;
	bool loaded;
	struct uni_ranges scopes,
		rows; /* pieces; their numbers are indices into scope[] and row[]: */
	struct uni_scope *scope;
	struct uni_row *row;
	struct uni_line_unit line; /* only its files are kept */
	uint32_t *file; /* strings, by file number; special values as in uni_scope.name */
};

struct uni_debug {
	struct uni_objfile file;
	Dwarf *dw;
	struct uni_line_sections sections; /* borrowed from file */
	bool code_at_zero;
	struct uni_strtab *strings;
	UNI_VEC(struct uni_cu) cus;
	struct uni_ranges ranges; /* of all units */
	uint32_t *range_cu;	  /* index of a unit, by the number in `ranges` */
	struct uni_span *unnamed; /* no names are given for these: the guest has other code there */
	size_t nr_unnamed;
	uint64_t steps; /* steps that are left: bounds the time that a malicious file can cost */
	bool exhausted, no_memory;
};

/* Pays for so many steps; false if fewer are left. */
bool uni_debug_spend(struct uni_debug *d, uint64_t steps);

/* The type of die, or its return type, without typedefs and qualifiers; false if it has none. */
bool uni_debug_plain_type(struct uni_debug *d, Dwarf_Die *die, Dwarf_Die *ret);
bool uni_debug_is_structure(Dwarf_Die *die); /* or a union, or a class */

#define UNI_ARRAY_DIMENSIONS 4
struct uni_array {
	Dwarf_Die element;
	unsigned nr;			       /* of dimensions */
	uint64_t count[UNI_ARRAY_DIMENSIONS];  /* of elements, at least 1 */
	uint64_t stride[UNI_ARRAY_DIMENSIONS]; /* bytes from one to the next, at least 1 */
};
/* An array whose elements are numbered from 0, without gaps. At most UNI_MEMBER_MAX bytes. */
bool uni_debug_array(struct uni_debug *d, Dwarf_Die *type, struct uni_array *ret);
/* The place of a member in its structure. False: not known, or a bit field. */
bool uni_debug_offset_of(Dwarf_Die *member, uint64_t *ret);
/* The member at m->path, and its type if m->size is not 0. */
bool uni_debug_member(
	struct uni_debug *d, Dwarf_Die *structure, struct uni_member *m, Dwarf_Die *type_ret);
/* Form and size of a plain type. True: it is a structure, which the calling convention may spread
 * over registers. */
bool uni_debug_describe_type(Dwarf_Die *type, uint64_t size, struct uni_param *p);
/* The function that has code at this address, with all functions inlined there. */
bool uni_debug_function(struct uni_debug *d, uint64_t svma, Dwarf_Die *ret);

/*
 * The name of a function; NULL: it has none. The linkage name goes first, as it has more
 * (namespaces, types), even if it is farther away. Otherwise the name and what it is in are put
 * into `scoped`, which is empty and holds the result.
 */
const char *uni_debug_name(struct uni_debug *d, Dwarf_Die *die, struct uni_strbuf *scoped);

/* Fills the tables of a unit; leaves out what cannot be read. False: out of memory. */
bool uni_cu_read_scopes(struct uni_debug *d, struct uni_cu *cu, Dwarf_Die *die);
bool uni_cu_read_rows(struct uni_debug *d, struct uni_cu *cu, Dwarf_Die *die);

#endif
