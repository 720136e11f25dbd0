/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/line_unit.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/vec.h"
#include "obj/cfi_priv.h"

#define DWARF64_MARK 0xffffffffu
#define FORMATS_MAX  16u

/* The lists of directories and files, while they are read. */
struct lists {
	const struct uni_line_sections *from;
	bool is64;
	UNI_VEC(const char *) dirs;
	UNI_VEC(struct uni_line_file) files;
};

#define LNCT_LLVM_SOURCE 0x2001 /* the text of a file */

/* The fields of each entry in a list of version 5. */
struct format {
	uint64_t type[FORMATS_MAX], form[FORMATS_MAX];
	size_t nr;
};

struct entry {
	const char *path, *source;
	uint64_t dir;
};

static uint64_t take_offset(struct uni_cursor *c, bool is64)
{
	return is64 ? uni_cursor_u64(c) : uni_cursor_u32(c);
}

static const char *take_string(struct uni_cursor *c)
{
	const uint8_t *begin = c->data + c->pos;
	const uint8_t *nul = c->failed ? NULL : memchr(begin, '\0', uni_cursor_left(c));

	if (nul == NULL) {
		c->failed = true;
		return "";
	}
	c->pos += (size_t)(nul - begin) + 1;
	return (const char *)begin;
}

static const char *string_at(const struct uni_bytes *section, uint64_t offset)
{
	if (section->p == NULL || offset >= section->size ||
		memchr(section->p + offset, '\0', section->size - (size_t)offset) == NULL)
		return NULL;
	return (const char *)section->p + offset;
}

static const char *dir_at(const struct lists *l, uint64_t i)
{
	return i < l->dirs.nr && l->dirs.v != NULL ? l->dirs.v[i] : NULL;
}

/* Versions 2 to 4: file numbers begin at 1; directory 0 is the compiler's. */
static bool read_old_lists(struct uni_cursor *c, struct lists *l)
{
	const struct uni_line_file none = { 0 };
	const char *s;

	if (!uni_vec_push(&l->dirs, NULL) || !uni_vec_push(&l->files, none))
		return false;
	while (*(s = take_string(c)) != '\0') {
		if (!uni_vec_push(&l->dirs, s))
			return false;
	}
	while (*(s = take_string(c)) != '\0') {
		uint64_t dir = uni_cfi_uleb(c);
		struct uni_line_file f = { s, dir_at(l, dir), NULL };

		(void)uni_cfi_uleb(c); /* time */
		(void)uni_cfi_uleb(c); /* size */
		if (!uni_vec_push(&l->files, f))
			return false;
	}
	return !c->failed;
}

static bool read_format(struct uni_cursor *c, struct format *ret)
{
	ret->nr = uni_cursor_u8(c);
	if (ret->nr > FORMATS_MAX)
		return false;
	for (size_t i = 0; i < ret->nr; i++) {
		ret->type[i] = uni_cfi_uleb(c);
		ret->form[i] = uni_cfi_uleb(c);
	}
	return !c->failed;
}

/* Reads a number or a string, by its form; takes at least one byte. */
static bool read_form(struct uni_cursor *c, const struct lists *l, uint64_t form,
	const char **text_ret, uint64_t *number_ret)
{
	switch (form) {
	case DW_FORM_string:
		*text_ret = take_string(c);
		break;
	case DW_FORM_line_strp:
		*text_ret = string_at(&l->from->line_str, take_offset(c, l->is64));
		break;
	case DW_FORM_strp:
		*text_ret = string_at(&l->from->str, take_offset(c, l->is64));
		break;
	case DW_FORM_udata:
		*number_ret = uni_cfi_uleb(c);
		break;
	case DW_FORM_data1:
		*number_ret = uni_cursor_u8(c);
		break;
	case DW_FORM_data2:
		*number_ret = uni_cursor_u16(c);
		break;
	case DW_FORM_data4:
		*number_ret = uni_cursor_u32(c);
		break;
	case DW_FORM_data8:
		*number_ret = uni_cursor_u64(c);
		break;
	case DW_FORM_data16:
		(void)uni_cursor_take(c, 16);
		break;
	case DW_FORM_block:
		(void)uni_cursor_take(c, (size_t)uni_cfi_uleb(c));
		break;
	default:
		return false;
	}
	return !c->failed;
}

static bool read_entry(
	struct uni_cursor *c, const struct lists *l, const struct format *f, struct entry *ret)
{
	*ret = (struct entry){ 0 };
	for (size_t i = 0; i < f->nr; i++) {
		const char *text = NULL;
		uint64_t number = 0;

		if (!read_form(c, l, f->form[i], &text, &number))
			return false;
		if (f->type[i] == DW_LNCT_path)
			ret->path = text;
		else if (f->type[i] == DW_LNCT_directory_index)
			ret->dir = number;
		else if (f->type[i] == LNCT_LLVM_SOURCE)
			ret->source = text;
	}
	return true;
}

/* The number of entries that follow. Each has at least a byte, so the section bounds it. */
static bool read_count(struct uni_cursor *c, const struct format *f, uint64_t *ret)
{
	*ret = uni_cfi_uleb(c);
	return !c->failed && (*ret == 0 || f->nr != 0) && *ret <= uni_cursor_left(c);
}

/* Version 5: both lists begin at 0; directory 0 is the compiler's. */
static bool read_lists(struct uni_cursor *c, struct lists *l)
{
	struct format f;
	struct entry e;
	uint64_t nr;

	if (!read_format(c, &f) || !read_count(c, &f, &nr))
		return false;
	for (; nr != 0; nr--) {
		if (!read_entry(c, l, &f, &e) || !uni_vec_push(&l->dirs, e.path))
			return false;
	}
	if (!read_format(c, &f) || !read_count(c, &f, &nr))
		return false;
	for (; nr != 0; nr--) {
		struct uni_line_file file;

		if (!read_entry(c, l, &f, &e))
			return false;
		file = (struct uni_line_file){ e.path, dir_at(l, e.dir), e.source };
		if (!uni_vec_push(&l->files, file))
			return false;
	}
	return true;
}

/* Reads up to the lists. Afterwards c ends with the unit. */
static bool read_head(struct uni_cursor *c, struct uni_line_unit *u, bool *is64_ret)
{
	uint64_t size = uni_cursor_u32(c), head;

	*is64_ret = size == DWARF64_MARK;
	if (*is64_ret)
		size = uni_cursor_u64(c);
	if (c->failed || size > uni_cursor_left(c))
		return false;
	c->size = c->pos + (size_t)size;
	u->version = uni_cursor_u16(c);
	if (u->version < 2 || u->version > 5)
		return false;
	if (u->version == 5)
		(void)uni_cursor_u16(c); /* sizes of an address and of a segment selector */
	head = take_offset(c, *is64_ret);
	if (c->failed || head > uni_cursor_left(c))
		return false;
	u->program = *c;
	u->program.pos += (size_t)head;
	u->min_length = uni_cursor_u8(c);
	u->max_ops = u->version >= 4 ? uni_cursor_u8(c) : 1;
	(void)uni_cursor_u8(c); /* is_stmt */
	u->line_base = (int8_t)uni_cursor_u8(c);
	u->line_range = uni_cursor_u8(c);
	u->opcode_base = uni_cursor_u8(c);
	/*
	 * If max_ops > 1, instructions come in bundles. That is not supported; no compiler for our
	 * machines does it.
	 */
	if (u->line_range == 0 || u->opcode_base == 0 || u->max_ops > 1)
		return false;
	u->nr_args = uni_cursor_take(c, u->opcode_base - 1u);
	return !c->failed;
}

bool uni_line_unit_open(
	const struct uni_line_sections *from, uint64_t offset, struct uni_line_unit *ret)
{
	struct uni_cursor c = uni_cursor_make(from->line.p, from->line.size);
	struct lists l = { .from = from };
	struct uni_line_unit u = { 0 };
	bool ok;

	if (offset >= from->line.size)
		return false;
	uni_cursor_seek(&c, (size_t)offset);
	ok = read_head(&c, &u, &l.is64) &&
	     (u.version >= 5 ? read_lists(&c, &l) : read_old_lists(&c, &l));
	uni_vec_free(&l.dirs);
	u.files = l.files.v;
	u.nr_files = l.files.nr;
	if (ok)
		*ret = u;
	else
		uni_line_unit_close(&u);
	return ok;
}

void uni_line_unit_close(struct uni_line_unit *u)
{
	free(u->files);
	u->files = NULL;
	u->nr_files = 0;
}
