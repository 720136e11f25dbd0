/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/variable.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "obj/debug_priv.h"

#define NESTING_MAX 8

/* Is it the variable at this address? One whose place is not a plain address is told by its name
 * alone. */
static bool is_at(Dwarf_Die *die, uint64_t svma)
{
	Dwarf_Attribute a;
	Dwarf_Op *op;
	size_t nr;

	if (dwarf_attr(die, DW_AT_location, &a) == NULL || dwarf_getlocation(&a, &op, &nr) != 0 ||
		nr == 0)
		return false;
	return op[0].atom != DW_OP_addr || op[0].number == svma;
}

/* The type of the variable of this name, which is at this address. */
static bool find_type(struct uni_debug *d, const char *name, uint64_t svma, Dwarf_Die *ret)
{
	for (size_t i = 0; d != NULL && i < d->cus.nr; i++) {
		Dwarf_Die cu, die;
		int more;

		if (dwarf_offdie(d->dw, d->cus.v[i].die, &cu) == NULL)
			continue;
		more = dwarf_child(&cu, &die);
		for (; more == 0 && uni_debug_spend(d, 1); more = dwarf_siblingof(&die, &die)) {
			const char *is =
				dwarf_tag(&die) == DW_TAG_variable ? dwarf_diename(&die) : NULL;

			if (is != NULL && strcmp(is, name) == 0 && is_at(&die, svma))
				return uni_debug_plain_type(d, &die, ret);
		}
	}
	return false;
}

/* size 0: it is no number. */
static int take_number(const char *path, uint64_t size, bool is_signed, struct uni_variable *ret,
	struct uni_err *err)
{
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s is no number of 1, 2, 4 or 8 bytes; members of a structure are "
			"%s.MEMBER, elements of an array %s[N], if the image has debug data",
			path, path, path);
	ret->size = (uint8_t)size;
	ret->is_signed = is_signed;
	return 0;
}

static int take_type(
	Dwarf_Die *type, const char *path, struct uni_variable *ret, struct uni_err *err)
{
	struct uni_param p = { 0 };
	Dwarf_Word size = 0;

	(void)dwarf_aggregate_size(type, &size);
	if (!uni_debug_is_structure(type))
		(void)uni_debug_describe_type(type, size, &p);
	return take_number(
		path, p.form != UNI_PARAM_OTHER ? size : 0, p.form == UNI_PARAM_SIGNED, ret, err);
}

/* Part of a variable: of an array of several dimensions, `done` of them are chosen. */
struct part {
	Dwarf_Die type;
	uint64_t offset;
	struct uni_array array;
	unsigned done;
};

/* ".heap" */
static bool take_member(struct uni_debug *d, const char **path, struct part *p)
{
	size_t len = strcspn(++*path, ".[");
	char name[UNI_VARIABLE_NAME];
	struct uni_member m = { .path = name };

	if (len >= sizeof(name) || !uni_debug_is_structure(&p->type))
		return false;
	memcpy(name, *path, len);
	name[len] = '\0';
	*path += len;
	if (!uni_debug_member(d, &p->type, &m, &p->type) || m.size == 0)
		return false;
	p->offset += m.offset;
	return true;
}

/* "[3]": of the first dimension that is not chosen yet. */
static bool take_element(struct uni_debug *d, const char **path, struct part *p)
{
	size_t len = strcspn(++*path, "]");
	char number[24];
	uint64_t i;

	if (p->done == 0 && !uni_debug_array(d, &p->type, &p->array))
		return false;
	if (len >= sizeof(number) || (*path)[len] != ']')
		return false;
	memcpy(number, *path, len);
	number[len] = '\0';
	*path += len + 1;
	if (!uni_parse_u64(number, &i) || i >= p->array.count[p->done])
		return false;
	p->offset += i * p->array.stride[p->done];
	p->done++;
	if (p->done == p->array.nr) {
		p->type = p->array.element;
		p->done = 0;
	}
	return true;
}

/* A part of the variable `name`, which the path begins with. */
static int find_part(struct uni_debug *d, const char *path, const char *name,
	struct uni_variable *ret, struct uni_err *err)
{
	const char *at = path + strlen(name), *here = at;
	struct part p = { 0 };
	bool found = find_type(d, name, ret->svma, &p.type);

	for (unsigned i = 0; found && *at != '\0'; i++) {
		here = at;
		found = i < NESTING_MAX && (*at != '.' || p.done == 0) &&
			(*at == '.'	     ? take_member(d, &at, &p)
				: *at == '[' ? take_element(d, &at, &p)
					     : false);
	}
	if (!found)
		return uni_err_set(err, UNI_ENOENT,
			"%.*s has no %s '%s', as far as the image's debug data tells",
			(int)(here - path), path, *here == '[' ? "element" : "member",
			here + (*here == '.'));
	if (p.done != 0)
		return take_number(path, 0, false, ret, err);
	ret->svma += p.offset;
	return take_type(&p.type, path, ret, err);
}

int uni_variable_find(const struct uni_image *img, struct uni_debug *d, const char *path,
	struct uni_variable *ret, struct uni_err *err)
{
	char name[UNI_VARIABLE_NAME];
	size_t len = strcspn(path, ".[");
	uint64_t size;
	Dwarf_Die type;

	if (uni_image_find(img, path, &ret->svma, &size) == 0)
		return find_type(d, path, ret->svma, &type)
			       ? take_type(&type, path, ret, err)
			       : take_number(path, size, false, ret, err);
	if (len < sizeof(name) && path[len] != '\0') {
		memcpy(name, path, len);
		name[len] = '\0';
		if (uni_image_find(img, name, &ret->svma, &size) == 0)
			return find_part(d, path, name, ret, err);
	}
	return uni_err_set(err, UNI_ENOENT, "%s has no variable '%.*s' (nm lists names)",
		uni_image_path(img), (int)len, path);
}

static bool add_part(struct uni_debug *d, Dwarf_Die *type, uint64_t offset, unsigned depth,
	struct uni_strbuf *out);

/* The member at this offset, and what is in it. */
static bool add_member(struct uni_debug *d, Dwarf_Die *structure, uint64_t offset, unsigned depth,
	struct uni_strbuf *out)
{
	Dwarf_Die die, type;
	int more = dwarf_child(structure, &die);

	for (; more == 0 && uni_debug_spend(d, 1); more = dwarf_siblingof(&die, &die)) {
		const char *name = dwarf_diename(&die);
		Dwarf_Word size;
		uint64_t at;

		if (dwarf_tag(&die) != DW_TAG_member || !uni_debug_offset_of(&die, &at) ||
			offset < at || !uni_debug_plain_type(d, &die, &type) ||
			dwarf_aggregate_size(&type, &size) != 0 || offset - at >= size)
			continue;
		if (name != NULL)
			uni_strbuf_addf(out, ".%s", name);
		return add_part(d, &type, offset - at, depth + 1, out);
	}
	return false;
}

static bool add_element(struct uni_debug *d, struct uni_array *a, uint64_t offset, unsigned depth,
	struct uni_strbuf *out)
{
	for (unsigned i = 0; i < a->nr; i++) {
		if (offset / a->stride[i] >= a->count[i])
			return false;
		uni_strbuf_addf(out, "[%" PRIu64 "]", offset / a->stride[i]);
		offset %= a->stride[i];
	}
	return add_part(d, &a->element, offset, depth + 1, out);
}

/* Appends the name of the number at this offset in the type. False: none is known. */
static bool add_part(struct uni_debug *d, Dwarf_Die *type, uint64_t offset, unsigned depth,
	struct uni_strbuf *out)
{
	struct uni_array a;

	if (depth > NESTING_MAX)
		return false;
	if (uni_debug_is_structure(type))
		return add_member(d, type, offset, depth, out);
	if (uni_debug_array(d, type, &a))
		return add_element(d, &a, offset, depth, out);
	return offset == 0;
}

void uni_variable_name(const struct uni_image *img, struct uni_debug *d, uint64_t svma,
	char ret[UNI_VARIABLE_NAME])
{
	uint64_t offset;
	const char *name = uni_image_name_at(img, svma, &offset);
	char clean[UNI_VARIABLE_NAME];
	struct uni_strbuf member;
	Dwarf_Die type;

	if (name == NULL) {
		(void)snprintf(ret, UNI_VARIABLE_NAME, "0x%" PRIx64, svma);
		return;
	}
	uni_strbuf_init(&member);
	if (find_type(d, name, svma - offset, &type) && add_part(d, &type, offset, 0, &member) &&
		member.len != 0 && uni_text_clean(clean, sizeof(clean), member.s, member.len) != 0)
		(void)snprintf(ret, UNI_VARIABLE_NAME, "%s%s", name, clean);
	else if (offset != 0)
		(void)snprintf(ret, UNI_VARIABLE_NAME, "%s+%" PRIu64, name, offset);
	else
		(void)snprintf(ret, UNI_VARIABLE_NAME, "%s", name);
	uni_strbuf_deinit(&member);
}
