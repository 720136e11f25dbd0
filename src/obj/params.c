/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/params.h"

#include <dwarf.h>
#include <string.h>

#include "base/text.h"
#include "obj/debug_priv.h"

#define REG_BYTES   8
#define REGS_MAX    8  /* general argument registers, at most */
#define MEMORY_FROM 16 /* bytes: larger types are passed in memory, returned by pointer */

/* Registers used so far. */
struct regs {
	int next;
	bool lost; /* the place of the next parameter is not known */
};

static void describe_base(Dwarf_Die *type, struct uni_param *p)
{
	Dwarf_Attribute a;
	Dwarf_Word encoding;

	if (dwarf_attr(type, DW_AT_encoding, &a) == NULL || dwarf_formudata(&a, &encoding) != 0)
		return;
	switch (encoding) {
	case DW_ATE_boolean:
		p->form = UNI_PARAM_BOOL;
		break;
	case DW_ATE_signed:
	case DW_ATE_signed_char:
		p->form = UNI_PARAM_SIGNED;
		break;
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char:
	case DW_ATE_UTF:
		p->form = UNI_PARAM_UNSIGNED;
		break;
	default: /* in a floating-point register */
		break;
	}
}

bool uni_debug_describe_type(Dwarf_Die *type, uint64_t size, struct uni_param *p)
{
	p->size = (uint8_t)(size <= REG_BYTES ? size : 0);
	switch (dwarf_tag(type)) {
	case DW_TAG_base_type:
		describe_base(type, p);
		/* A value of 16 bytes takes two registers, or two halves on the stack. */
		return p->form != UNI_PARAM_OTHER && p->size == 0;
	case DW_TAG_enumeration_type:
		p->form = UNI_PARAM_SIGNED;
		return false;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		p->form = UNI_PARAM_POINTER;
		p->size = REG_BYTES;
		return false;
	default:
		return size <= MEMORY_FROM;
	}
}

static bool type_of(struct uni_debug *d, Dwarf_Die *die, Dwarf_Die *type, uint64_t *size)
{
	Dwarf_Word bytes;

	if (!uni_debug_plain_type(d, die, type))
		return false;
	*size = dwarf_aggregate_size(type, &bytes) == 0 ? bytes : UINT64_MAX;
	return true;
}

static void take_register(struct regs *r, bool spreads, struct uni_param *p)
{
	p->reg = UNI_PARAM_NO_REG;
	if (p->form != UNI_PARAM_OTHER && !spreads && !r->lost && r->next < REGS_MAX)
		p->reg = (int8_t)r->next++;
	r->lost = r->lost || spreads;
}

static void read_name(Dwarf_Die *die, struct uni_param *p)
{
	Dwarf_Attribute a;
	const char *name =
		dwarf_attr_integrate(die, DW_AT_name, &a) != NULL ? dwarf_formstring(&a) : NULL;

	if (name != NULL)
		(void)uni_text_clean(p->name, sizeof(p->name), name, strlen(name));
}

/* A parameter whose value the compiler knows is not passed. */
static bool is_passed(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_formal_parameter &&
	       dwarf_hasattr(die, DW_AT_const_value) == 0;
}

static void read_value(
	struct uni_debug *d, Dwarf_Die *function, struct uni_params *ret, struct regs *regs)
{
	struct regs own = { 0 };
	Dwarf_Die type;
	uint64_t size;
	bool spreads;

	ret->value.reg = UNI_PARAM_NO_REG;
	ret->returns = type_of(d, function, &type, &size);
	if (!ret->returns)
		return;
	spreads = uni_debug_describe_type(&type, size, &ret->value);
	take_register(&own, spreads, &ret->value);
	/* The address of the result is passed as a hidden first argument. */
	if (ret->value.form == UNI_PARAM_OTHER && !spreads && dwarf_tag(&type) != DW_TAG_base_type)
		regs->next++;
}

int uni_debug_params(struct uni_debug *d, uint64_t svma, struct uni_params *ret)
{
	Dwarf_Die function, die, type;
	struct regs regs = { 0 };
	uint64_t size;
	int more;

	if (!uni_debug_function(d, svma, &function))
		return -UNI_ENOENT;
	memset(ret, 0, sizeof(*ret));
	read_value(d, &function, ret, &regs);
	more = dwarf_child(&function, &die);
	for (; more == 0 && ret->nr < UNI_PARAMS_MAX && uni_debug_spend(d, 1);
		more = dwarf_siblingof(&die, &die)) {
		struct uni_param *p = &ret->param[ret->nr];
		bool spreads = true;

		if (!is_passed(&die))
			continue;
		read_name(&die, p);
		if (type_of(d, &die, &type, &size))
			spreads = uni_debug_describe_type(&type, size, p);
		take_register(&regs, spreads, p);
		ret->nr++;
	}
	return 0;
}
