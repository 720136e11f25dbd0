/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree of functions and inlined functions of one unit, flattened to pieces. The file decides
 * offsets, links and nesting. So the walk only goes forward, its depth is limited, and each step is
 * paid for.
 */
#include <dwarf.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "obj/debug_priv.h"

#define TREE_DEPTH_MAX 200

struct walk {
	struct uni_debug *d;
	UNI_VEC(struct uni_scope) scopes;
	UNI_VEC(struct uni_symbol) ranges; /* name: index of the scope */
	bool no_memory;
};

/* A position of the walk. */
struct spot {
	uint32_t scope;	  /* scope of the code here */
	unsigned depth;	  /* depth in the tree */
	unsigned inlined; /* inlined functions around it */
};

static uint32_t die_number(Dwarf_Die *die, unsigned attr)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	if (dwarf_attr(die, attr, &a) == NULL || dwarf_formudata(&a, &v) != 0 || v > UINT32_MAX)
		return 0;
	return (uint32_t)v;
}

/* The code of die, as ranges of that scope. False if it has none. */
static bool add_ranges(struct walk *w, Dwarf_Die *die, uint32_t scope)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	bool any = false;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		struct uni_symbol r = { .addr = start, .size = end - start, .name = scope };

		if (!uni_debug_spend(w->d, 1))
			break;
		if (end <= start)
			continue;
		if (!uni_vec_push(&w->ranges, r)) {
			w->no_memory = true;
			return false;
		}
		any = true;
	}
	return any;
}

/* UNI_SCOPE_NONE: it has no code of its own, like the abstract form of an inlined function. */
static uint32_t add_scope(struct walk *w, Dwarf_Die *die, uint32_t parent)
{
	struct uni_scope s = {
		.die = dwarf_dieoffset(die), .parent = parent, .name = UNI_STR_NONE
	};
	uint32_t index = (uint32_t)w->scopes.nr;

	if (index == UNI_SCOPE_NONE || !add_ranges(w, die, index))
		return UNI_SCOPE_NONE;
	if (parent != UNI_SCOPE_NONE) {
		s.call_file = die_number(die, DW_AT_call_file);
		s.call_line = die_number(die, DW_AT_call_line);
	}
	if (!uni_vec_push(&w->scopes, s)) {
		w->no_memory = true;
		return UNI_SCOPE_NONE;
	}
	return index;
}

/* Can the children of die have code? Then makes spot theirs. */
static bool enter_die(struct walk *w, Dwarf_Die *die, struct spot *spot)
{
	uint32_t scope;

	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		scope = add_scope(w, die, UNI_SCOPE_NONE);
		spot->inlined = 0;
		break;
	case DW_TAG_inlined_subroutine:
		if (spot->scope == UNI_SCOPE_NONE || ++spot->inlined >= UNI_INLINE_MAX)
			return false;
		scope = add_scope(w, die, spot->scope);
		break;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return ++spot->depth < TREE_DEPTH_MAX;
	default:
		return false;
	}
	spot->scope = scope;
	return scope != UNI_SCOPE_NONE && ++spot->depth < TREE_DEPTH_MAX;
}

/* False: no more steps, or no memory. */
static bool walk_children(struct walk *w, Dwarf_Die *parent, struct spot spot)
{
	Dwarf_Die die, next;
	int r = dwarf_child(parent, &die);

	while (r == 0) {
		struct spot inner = spot;

		if (!uni_debug_spend(w->d, 1))
			return false;
		if (enter_die(w, &die, &inner) && dwarf_haschildren(&die) == 1 &&
			!walk_children(w, &die, inner))
			return false;
		if (w->no_memory)
			return false;
		r = dwarf_siblingof(&die, &next);
		if (r == 0 && dwarf_dieoffset(&next) <= dwarf_dieoffset(&die))
			break; /* a sibling that comes earlier would make an endless loop */
		die = next;
	}
	return true;
}

/* Ranges that start together stay in the order of the walk: the outer before the inner. */
static int cmp_ranges(const void *pa, const void *pb)
{
	const struct uni_symbol *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

/* Replaces the numbers of the pieces by those of the scopes. */
static void renumber_pieces(struct uni_ranges *r, const struct uni_symbol *ranges)
{
	for (size_t i = 0; i < r->nr; i++) {
		if (r->sym[i] != UNI_RANGE_GAP)
			r->sym[i] = ranges[r->sym[i]].name;
	}
}

bool uni_cu_read_scopes(struct uni_debug *d, struct uni_cu *cu, Dwarf_Die *die)
{
	struct walk w = { .d = d };
	bool ok;

	(void)walk_children(&w, die, (struct spot){ .scope = UNI_SCOPE_NONE });
	if (w.ranges.nr != 0)
		qsort(w.ranges.v, w.ranges.nr, sizeof(*w.ranges.v), cmp_ranges);
	ok = !w.no_memory && uni_ranges_build(w.ranges.v, w.ranges.nr, &cu->scopes);
	if (ok && w.ranges.v != NULL)
		renumber_pieces(&cu->scopes, w.ranges.v);
	cu->scope = w.scopes.v;
	uni_vec_free(&w.ranges);
	return ok;
}
