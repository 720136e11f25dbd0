/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of functions in debug data. */
#include <dwarf.h>

#include "base/text.h"
#include "obj/debug_priv.h"
#include "obj/demangle.h"

#define NAME_LINKS_MAX 16
#define SCOPES_MAX     64 /* namespaces, classes and blocks around a function */

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute a;

	if (dwarf_attr(die, DW_AT_linkage_name, &a) == NULL &&
		dwarf_attr(die, DW_AT_MIPS_linkage_name, &a) == NULL)
		return NULL;
	return dwarf_formstring(&a);
}

/*
 * The child of die that has the entry at that offset below it, or is it. False: the file is wrong,
 * or the search would take too long.
 */
static bool step_towards(struct uni_debug *d, Dwarf_Off offset, Dwarf_Die *die)
{
	Dwarf_Die child, next;

	if (dwarf_child(die, &child) != 0)
		return false;
	while (uni_debug_spend(d, 1)) {
		if (dwarf_siblingof(&child, &next) != 0 || dwarf_dieoffset(&next) > offset) {
			*die = child;
			return dwarf_dieoffset(&child) <= offset;
		}
		if (dwarf_dieoffset(&next) <= dwarf_dieoffset(&child))
			return false;
		child = next;
	}
	return false;
}

/*
 * The linkage name of a function, or its name in the source. An instance refers to its function,
 * and that to its declaration, which is in its class or namespace: die becomes the last one.
 */
static const char *follow_name(Dwarf_Die *die, bool *linkage_ret)
{
	const char *plain = NULL;

	for (unsigned i = 0; i < NAME_LINKS_MAX; i++) {
		const char *linkage = linkage_name(die);
		Dwarf_Attribute a;
		Dwarf_Die next;

		*linkage_ret = linkage != NULL;
		if (linkage != NULL)
			return linkage;
		if (plain == NULL && dwarf_attr(die, DW_AT_name, &a) != NULL)
			plain = dwarf_formstring(&a);
		if (dwarf_attr(die, DW_AT_abstract_origin, &a) == NULL &&
			dwarf_attr(die, DW_AT_specification, &a) == NULL)
			break;
		if (dwarf_formref_die(&a, &next) == NULL)
			break;
		*die = next;
	}
	return plain;
}

/* A linkage name has the scopes around that function, too. */
static void add_function_name(Dwarf_Die die, struct uni_strbuf *ret)
{
	char text[UNI_TEXT_MAX];
	bool linkage;
	const char *name = follow_name(&die, &linkage);

	if (name == NULL)
		return;
	if (linkage && ret->len != 0) {
		ret->len = 0;
		ret->s[0] = '\0';
	}
	if (linkage && uni_demangle_scope(name, text, sizeof(text)))
		name = text;
	uni_strbuf_addf(ret, "%s::", name);
}

static void add_scope_name(Dwarf_Die *die, struct uni_strbuf *ret)
{
	const char *name = dwarf_diename(die);

	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		uni_strbuf_addf(ret, "%s::", name != NULL ? name : "(anonymous namespace)");
		break;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		uni_strbuf_addf(ret, "%s::", name != NULL ? name : "(anonymous class)");
		break;
	case DW_TAG_subprogram:
		add_function_name(*die, ret);
		break;
	default:
		break;
	}
}

/*
 * The name in its namespaces, classes and functions. A function that no other file sees has no
 * linkage name, such as one of an anonymous namespace, or of a function's own class.
 */
static void add_scopes(struct uni_debug *d, Dwarf_Die *die, struct uni_strbuf *ret)
{
	Dwarf_Off offset = dwarf_dieoffset(die);
	Dwarf_Die at;

	if (dwarf_diecu(die, &at, NULL, NULL) == NULL)
		return;
	for (unsigned i = 0; i < SCOPES_MAX && step_towards(d, offset, &at); i++) {
		if (dwarf_dieoffset(&at) == offset)
			break;
		add_scope_name(&at, ret);
	}
}

const char *uni_debug_name(struct uni_debug *d, Dwarf_Die *die, struct uni_strbuf *scoped)
{
	bool linkage;
	const char *name = follow_name(die, &linkage);

	if (name == NULL || linkage)
		return name;
	add_scopes(d, die, scoped);
	uni_strbuf_adds(scoped, name);
	return uni_strbuf_failed(scoped) ? name : scoped->s;
}
