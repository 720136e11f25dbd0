/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/members.h"

#include <dwarf.h>
#include <string.h>

#include "obj/debug_priv.h"

#define NESTING_MAX 8 /* unnamed structures, and names of one path */

struct spot {
	Dwarf_Die die;	 /* of the member's type */
	uint64_t offset; /* from the outermost structure */
	bool has_die;
};

bool uni_debug_is_structure(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_class_type;
}

/* The number of elements of a dimension; 0: it is not known, or not numbered from 0. */
static uint64_t count_of(Dwarf_Die *range)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	if (dwarf_tag(range) != DW_TAG_subrange_type ||
		(dwarf_attr(range, DW_AT_lower_bound, &a) != NULL &&
			(dwarf_formudata(&a, &v) != 0 || v != 0)))
		return 0;
	if (dwarf_attr(range, DW_AT_count, &a) != NULL)
		return dwarf_formudata(&a, &v) == 0 ? v : 0;
	if (dwarf_attr(range, DW_AT_upper_bound, &a) != NULL && dwarf_formudata(&a, &v) == 0)
		return v < UNI_MEMBER_MAX ? v + 1 : 0;
	return 0;
}

bool uni_debug_array(struct uni_debug *d, Dwarf_Die *type, struct uni_array *ret)
{
	Dwarf_Word size;
	Dwarf_Die range;
	int more;

	*ret = (struct uni_array){ 0 };
	if (dwarf_tag(type) != DW_TAG_array_type || dwarf_hasattr(type, DW_AT_byte_stride) != 0 ||
		dwarf_hasattr(type, DW_AT_bit_stride) != 0 ||
		!uni_debug_plain_type(d, type, &ret->element) ||
		dwarf_aggregate_size(&ret->element, &size) != 0)
		return false;
	more = dwarf_child(type, &range);
	for (; more == 0 && uni_debug_spend(d, 1); more = dwarf_siblingof(&range, &range)) {
		if (ret->nr == UNI_ARRAY_DIMENSIONS)
			return false;
		ret->count[ret->nr++] = count_of(&range);
	}
	for (unsigned i = ret->nr; i-- != 0;) {
		if (size == 0 || size > UNI_MEMBER_MAX || ret->count[i] == 0 ||
			ret->count[i] > UNI_MEMBER_MAX / size)
			return false;
		ret->stride[i] = size;
		size *= ret->count[i];
	}
	return ret->nr != 0;
}

/* A union's members need not state their offset, which is 0. */
bool uni_debug_offset_of(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	*ret = 0;
	if (dwarf_attr(die, DW_AT_data_bit_offset, &a) != NULL)
		return false;
	if (dwarf_attr(die, DW_AT_data_member_location, &a) == NULL)
		return true;
	if (dwarf_formudata(&a, &v) != 0 || v > UNI_MEMBER_MAX)
		return false;
	*ret = v;
	return true;
}

/* Finds the member of that name in the structure, or in an unnamed structure inside it. */
static bool find_here(struct uni_debug *d, Dwarf_Die *structure, const char *name, size_t len,
	unsigned depth, struct spot *ret)
{
	Dwarf_Die die, type;
	int more = dwarf_child(structure, &die);

	for (; more == 0 && uni_debug_spend(d, 1); more = dwarf_siblingof(&die, &die)) {
		const char *is = dwarf_diename(&die);
		uint64_t offset;

		if (dwarf_tag(&die) != DW_TAG_member || !uni_debug_offset_of(&die, &offset))
			continue;
		if (is != NULL && strlen(is) == len && memcmp(is, name, len) == 0) {
			ret->offset += offset;
			ret->has_die = uni_debug_plain_type(d, &die, &ret->die);
			return true;
		}
		if (is == NULL && depth < NESTING_MAX && uni_debug_plain_type(d, &die, &type) &&
			uni_debug_is_structure(&type) &&
			find_here(d, &type, name, len, depth + 1, ret)) {
			ret->offset += offset;
			return true;
		}
	}
	return false;
}

bool uni_debug_member(
	struct uni_debug *d, Dwarf_Die *structure, struct uni_member *m, Dwarf_Die *type_ret)
{
	struct spot at = { .die = *structure, .has_die = true };
	const char *name = m->path;
	Dwarf_Word size;

	m->found = false;
	for (unsigned i = 0; i < NESTING_MAX; i++) {
		size_t len = strcspn(name, ".");
		struct spot next = { .offset = at.offset };

		if (!at.has_die || !find_here(d, &at.die, name, len, 0, &next))
			return false;
		at = next;
		name += len;
		if (*name == '\0') {
			m->offset = at.offset;
			m->size = 0;
			if (at.has_die && dwarf_aggregate_size(&at.die, &size) == 0)
				m->size = size;
			*type_ret = at.die;
			m->found = m->offset <= UNI_MEMBER_MAX;
			return m->found;
		}
		name++;
	}
	return false;
}

/* NULL if all required members are there; else the path of the first missing one. */
static const char *first_missing(
	struct uni_debug *d, Dwarf_Die *structure, struct uni_member *member, size_t nr)
{
	Dwarf_Die type;

	for (size_t i = 0; i < nr; i++) {
		if (!uni_debug_member(d, structure, &member[i], &type) && !member[i].optional)
			return member[i].path;
	}
	return NULL;
}

static bool has_tag(Dwarf_Die *die, const char *tag)
{
	const char *name = uni_debug_is_structure(die) ? dwarf_diename(die) : NULL;

	return name != NULL && strcmp(name, tag) == 0 && dwarf_hasattr(die, DW_AT_declaration) == 0;
}

int uni_debug_members(struct uni_debug *d, const char *tag, struct uni_member *member, size_t nr,
	const char **missing_ret)
{
	const char *lacks = NULL;

	for (size_t i = 0; i < nr; i++)
		member[i].found = false;
	for (size_t i = 0; i < d->cus.nr; i++) {
		Dwarf_Die cu, die;
		int more;

		if (dwarf_offdie(d->dw, d->cus.v[i].die, &cu) == NULL)
			continue;
		more = dwarf_child(&cu, &die);
		for (; more == 0 && uni_debug_spend(d, 1); more = dwarf_siblingof(&die, &die)) {
			if (!has_tag(&die, tag))
				continue;
			lacks = first_missing(d, &die, member, nr);
			if (lacks == NULL)
				return 0;
		}
	}
	for (size_t i = 0; i < nr; i++)
		member[i].found = false;
	if (missing_ret != NULL)
		*missing_ret = lacks;
	return -UNI_ENOENT;
}
