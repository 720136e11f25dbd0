/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/debug.h"

#include <dwarf.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "obj/debug_priv.h"
#include "obj/debugfile.h"
#include "obj/image_priv.h"

#define CUS_MAX	       ((size_t)1 << 20)
#define UNPACKED_MAX   ((uint64_t)4 << 30)
#define STEPS_PER_BYTE 4 /* ordinary files need a tenth of that */
#define STEPS_MIN      ((uint64_t)1 << 20)
#define TYPE_LINKS_MAX 16

bool uni_debug_spend(struct uni_debug *d, uint64_t steps)
{
	if (d->exhausted || steps > d->steps) {
		d->exhausted = true;
		return false;
	}
	d->steps -= steps;
	return true;
}

void uni_debug_destroy(struct uni_debug *d)
{
	if (d == NULL)
		return;
	for (size_t i = 0; i < d->cus.nr; i++) {
		uni_ranges_deinit(&d->cus.v[i].scopes);
		uni_ranges_deinit(&d->cus.v[i].rows);
		free(d->cus.v[i].scope);
		free(d->cus.v[i].row);
		free(d->cus.v[i].file);
		uni_line_unit_close(&d->cus.v[i].line);
	}
	uni_vec_free(&d->cus);
	uni_ranges_deinit(&d->ranges);
	free(d->range_cu);
	free(d->unnamed);
	uni_strtab_destroy(d->strings);
	if (d->dw != NULL)
		(void)dwarf_end(d->dw);
	uni_objfile_deinit(&d->file);
	free(d);
}

static void destroy_p(struct uni_debug **d)
{
	uni_debug_destroy(*d);
}

const char *uni_debug_note(const struct uni_debug *d)
{
	if (d->no_memory)
		return "out of memory: some lines and inlined functions are missing";
	if (d->exhausted)
		return "its DWARF takes more time than its size can justify: some lines and "
		       "inlined functions are missing";
	return NULL;
}

/*
 * libdw unpacks compressed sections when it first needs them, and trusts the size that they state
 * (libelf refuses impossible ratios).
 */
static int check_packed(const struct uni_elf *e, const char *name, struct uni_err *err)
{
	uint64_t total = 0;

	for (uint32_t i = 1; i < e->nr_sh; i++) {
		struct uni_elf_sh sh = uni_elf_sh(e, i);
		GElf_Chdr chdr;
		Elf_Scn *scn = elf_getscn(e->elf, i);

		if (!(sh.flags & SHF_COMPRESSED) || scn == NULL)
			continue;
		if (gelf_getchdr(scn, &chdr) == NULL)
			return uni_err_set(err, UNI_EFORMAT,
				"%s: section %u is compressed in a way that libelf does not know",
				name, i);
		if (chdr.ch_size > UNPACKED_MAX - total)
			return uni_err_set(err, UNI_ERANGE,
				"%s: its debug data would take more than %llu bytes", name,
				(unsigned long long)UNPACKED_MAX);
		total += chdr.ch_size;
	}
	return 0;
}

/* A range that starts at 0 is of code that the linker dropped, unless the image has code at 0. */
static bool code_at_zero(const struct uni_debug *d)
{
	for (uint32_t i = 1; i < d->file.elf.nr_sh; i++) {
		struct uni_elf_sh sh = uni_elf_sh(&d->file.elf, i);

		if (sh.addr == 0 && sh.size != 0 && (sh.flags & SHF_ALLOC) &&
			(sh.flags & SHF_EXECINSTR))
			return true;
	}
	return false;
}

struct cu_ranges {
	UNI_VEC(struct uni_symbol) v; /* name: index of the unit */
	bool zero_ok;
};

static bool add_cu(struct uni_debug *d, Dwarf_Die *die, struct cu_ranges *ranges)
{
	struct uni_cu cu = { .die = dwarf_dieoffset(die) };
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		struct uni_symbol r = {
			.addr = start, .size = end - start, .name = (uint32_t)d->cus.nr
		};

		if (!uni_debug_spend(d, 1))
			return true;
		if (end <= start || (start == 0 && !ranges->zero_ok))
			continue;
		if (!uni_vec_push(&ranges->v, r))
			return false;
	}
	return uni_vec_push(&d->cus, cu);
}

/* If units start together, the first one in the file counts: it is last in this order. */
static int cmp_ranges(const void *pa, const void *pb)
{
	const struct uni_symbol *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return (a->name < b->name) - (a->name > b->name);
}

static bool index_ranges(struct uni_debug *d, struct cu_ranges *ranges)
{
	d->range_cu = calloc(ranges->v.nr + 1, sizeof(*d->range_cu));
	if (d->range_cu == NULL)
		return false;
	if (ranges->v.nr != 0)
		qsort(ranges->v.v, ranges->v.nr, sizeof(*ranges->v.v), cmp_ranges);
	for (size_t i = 0; i < ranges->v.nr; i++)
		d->range_cu[i] = ranges->v.v[i].name;
	return uni_ranges_build(ranges->v.v, ranges->v.nr, &d->ranges);
}

/* Reads only the heads of the units: which addresses are in which unit. */
static bool index_cus(struct uni_debug *d)
{
	struct cu_ranges ranges = { .zero_ok = d->code_at_zero };
	Dwarf_CU *cu = NULL;
	uint8_t type;
	Dwarf_Half version;
	Dwarf_Die die;
	bool ok = true;

	while (ok && d->cus.nr < CUS_MAX && uni_debug_spend(d, 1) &&
		dwarf_get_units(d->dw, cu, &cu, &version, &type, &die, NULL) == 0) {
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			ok = add_cu(d, &die, &ranges);
	}
	ok = ok && index_ranges(d, &ranges);
	uni_vec_free(&ranges.v);
	return ok;
}

/*
 * libdw has unpacked the section in place, if it was compressed (also under the old name, .zdebug).
 */
static struct uni_bytes find_section(const struct uni_debug *d, const char *name)
{
	uint32_t i = uni_elf_find_named(&d->file.elf, name);
	char old[32];
	Elf_Data *data;

	(void)snprintf(old, sizeof(old), ".z%s", name + 1);
	if (i == 0)
		i = uni_elf_find_named(&d->file.elf, old);
	data = i != 0 ? elf_getdata(elf_getscn(d->file.elf.elf, i), NULL) : NULL;
	if (data == NULL || data->d_buf == NULL)
		return (struct uni_bytes){ 0 };
	return (struct uni_bytes){ data->d_buf, data->d_size };
}

/* Takes over d->file. */
static int open_dwarf(struct uni_debug *d, struct uni_err *err)
{
	const char *name = d->file.path;
	int rc = check_packed(&d->file.elf, name, err);

	if (rc != 0)
		return rc;
	d->dw = dwarf_begin_elf(d->file.elf.elf, DWARF_C_READ, NULL);
	if (d->dw == NULL)
		return uni_err_set(
			err, UNI_ENOENT, "%s has no debug data: %s", name, dwarf_errmsg(-1));
	/* Otherwise libdw would open any file that .gnu_debugaltlink names. */
	dwarf_setalt(d->dw, d->dw);
	d->steps = uni_max(STEPS_MIN, STEPS_PER_BYTE * (uint64_t)d->file.elf.size);
	d->sections = (struct uni_line_sections){ find_section(d, ".debug_line"),
		find_section(d, ".debug_line_str"), find_section(d, ".debug_str") };
	d->code_at_zero = code_at_zero(d);
	d->strings = uni_strtab_create();
	if (d->strings == NULL || !index_cus(d))
		return uni_err_set(err, UNI_ENOMEM, "out of memory for the debug data of %s", name);
	if (d->cus.nr == 0)
		return uni_err_set(err, UNI_ENOENT, "%s has no debug data", name);
	return 0;
}

static int debug_new(struct uni_objfile *file, struct uni_debug **ret, struct uni_err *err)
{
	_cleanup_(destroy_p) struct uni_debug *d = calloc(1, sizeof(*d));
	int rc;

	if (d == NULL) {
		uni_objfile_deinit(file);
		return uni_err_nomem(err);
	}
	d->file = *file;
	*file = (struct uni_objfile){ 0 };
	rc = open_dwarf(d, err);
	if (rc == 0)
		*ret = uni_take(d);
	return rc;
}

int uni_debug_from_memory(const char *name, const void *data, size_t size, struct uni_debug **ret,
	struct uni_err *err)
{
	struct uni_objfile file = { 0 };
	int rc = uni_objfile_from_memory(name, data, size, &file, err);

	return rc == 0 ? debug_new(&file, ret, err) : rc;
}

/* Is it still the file that the image was made from, and does it have DWARF? */
static bool load_own(const struct uni_image *img, const char *path, struct uni_objfile *ret)
{
	struct uni_objfile f = { 0 };

	if (uni_objfile_load(path, &f, NULL) != 0)
		return false;
	if (uni_elf_has_dwarf(&f.elf) && f.notes.build_id_len == img->build_id_len &&
		memcmp(f.notes.build_id, img->build_id, img->build_id_len) == 0) {
		*ret = f;
		return true;
	}
	uni_objfile_deinit(&f);
	return false;
}

static bool find_elsewhere(const struct uni_image *img, const struct uni_image_search *search,
	struct uni_objfile *ret, struct uni_strbuf *note)
{
	_cleanup_(uni_objfile_deinit) struct uni_objfile f = { 0 };

	if (uni_objfile_load(img->path, &f, NULL) != 0)
		return false;
	if (uni_objfile_find_debug(&f, search, uni_elf_has_dwarf, ret, note))
		return true;
	if (!uni_objfile_find_sibling(&f, ret, note))
		return false;
	if (uni_elf_has_dwarf(&ret->elf))
		return true;
	uni_objfile_deinit(ret);
	return false;
}

int uni_debug_of_image(const struct uni_image *img, const struct uni_image_search *search,
	struct uni_debug **ret, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf note;
	struct uni_objfile file = { 0 };
	int rc;

	uni_strbuf_init(&note);
	if (!load_own(img, img->symbol_path, &file) && !load_own(img, img->path, &file) &&
		!find_elsewhere(img, search, &file, &note))
		return uni_err_set(err, UNI_ENOENT, "%s has no debug data%s%s", img->path,
			note.len != 0 ? "; tried " : "", note.s);
	rc = debug_new(&file, ret, err);
	if (rc != 0 || img->nr_unnamed == 0)
		return rc;
	(*ret)->unnamed = calloc(img->nr_unnamed, sizeof(*img->unnamed));
	if ((*ret)->unnamed == NULL) {
		uni_debug_destroy(uni_take(*ret));
		return uni_err_nomem(err);
	}
	memcpy((*ret)->unnamed, img->unnamed, img->nr_unnamed * sizeof(*img->unnamed));
	(*ret)->nr_unnamed = img->nr_unnamed;
	return 0;
}

static void load_cu(struct uni_debug *d, struct uni_cu *cu)
{
	Dwarf_Die die;

	cu->loaded = true;
	if (d->exhausted || dwarf_offdie(d->dw, cu->die, &die) == NULL)
		return;
	if (!uni_cu_read_scopes(d, cu, &die) || !uni_cu_read_rows(d, cu, &die))
		d->no_memory = true;
}

void uni_debug_load_all(struct uni_debug *d)
{
	for (size_t i = 0; i < d->cus.nr; i++) {
		if (!d->cus.v[i].loaded)
			load_cu(d, &d->cus.v[i]);
	}
}

static uint32_t intern_name(struct uni_debug *d, const char *s)
{
	char clean[UNI_TEXT_MAX];
	size_t len;
	uint32_t id;

	if (s == NULL)
		return 0;
	len = uni_text_clean(clean, sizeof(clean), s, strlen(s));
	id = uni_strtab_add(d->strings, clean, len);
	if (id == UNI_STR_NONE) {
		d->no_memory = true;
		return 0;
	}
	return id;
}

static const char *scope_name(struct uni_debug *d, struct uni_scope *s)
{
	_cleanup_strbuf_ struct uni_strbuf scoped;
	Dwarf_Die die;

	uni_strbuf_init(&scoped);
	if (s->name == UNI_STR_NONE)
		s->name = dwarf_offdie(d->dw, s->die, &die) == NULL
				  ? 0
				  : intern_name(d, uni_debug_name(d, &die, &scoped));
	return s->name != 0 ? uni_strtab_get(d->strings, s->name) : NULL;
}

/*
 * A relative name is below a directory of the list, and that one is below the compiler's directory.
 */
static uint32_t intern_file(struct uni_debug *d, struct uni_cu *cu, const struct uni_line_file *f)
{
	const char *dir = f->dir, *comp = NULL;
	Dwarf_Attribute a;
	Dwarf_Die die;
	char path[UNI_TEXT_MAX];

	if (f->name == NULL || f->name[0] == '/')
		return intern_name(d, f->name);
	if ((dir == NULL || dir[0] != '/') && dwarf_offdie(d->dw, cu->die, &die) != NULL &&
		dwarf_attr(&die, DW_AT_comp_dir, &a) != NULL)
		comp = dwarf_formstring(&a);
	(void)snprintf(path, sizeof(path), "%s%s%s%s%s", comp != NULL ? comp : "",
		comp != NULL ? "/" : "", dir != NULL ? dir : "", dir != NULL ? "/" : "", f->name);
	return intern_name(d, path);
}

static const char *file_name(struct uni_debug *d, struct uni_cu *cu, uint32_t i)
{
	if (i >= cu->line.nr_files)
		return NULL;
	if (cu->file[i] == UNI_STR_NONE)
		cu->file[i] = intern_file(d, cu, &cu->line.files[i]);
	return cu->file[i] != 0 ? uni_strtab_get(d->strings, cu->file[i]) : NULL;
}

const char *uni_debug_source(const struct uni_debug *d, const char *file)
{
	uint32_t name = uni_strtab_find(d->strings, file, strlen(file));

	for (size_t k = 0; name != UNI_STR_NONE && k < d->cus.nr; k++) {
		const struct uni_cu *cu = &d->cus.v[k];

		for (size_t i = 0; cu->file != NULL && i < cu->line.nr_files; i++) {
			const char *text = cu->line.files[i].source;

			if (cu->file[i] == name && text != NULL && text[0] != '\0')
				return text;
		}
	}
	return NULL;
}

/* Puts the places from the innermost outward; `at` is the line of the code in that scope. */
static size_t put_places(struct uni_debug *d, struct uni_cu *cu, uint32_t scope, struct uni_row at,
	struct uni_place *ret)
{
	size_t n = 0;

	for (;;) {
		struct uni_scope *s = scope != UNI_SCOPE_NONE ? &cu->scope[scope] : NULL;

		ret[n++] = (struct uni_place){
			.function = s != NULL ? scope_name(d, s) : NULL,
			.file = file_name(d, cu, at.file),
			.line = at.line,
		};
		if (s == NULL || s->parent == UNI_SCOPE_NONE || n == UNI_INLINE_MAX)
			return n;
		at = (struct uni_row){ s->call_file, s->call_line };
		scope = s->parent;
	}
}

size_t uni_debug_lookup(struct uni_debug *d, uint64_t svma, struct uni_place ret[UNI_INLINE_MAX],
	struct uni_span *span_ret)
{
	struct uni_span span = { 0, UINT64_MAX };
	struct uni_row row = { UINT32_MAX, 0 };
	uint32_t i = uni_ranges_find_in(&d->ranges, svma, &span), scope;
	struct uni_cu *cu;

	if (i == UNI_RANGE_GAP || svma == UINT64_MAX ||
		uni_spans_has(d->unnamed, d->nr_unnamed, svma))
		return 0;
	cu = &d->cus.v[d->range_cu[i]];
	if (!cu->loaded)
		load_cu(d, cu);
	scope = uni_ranges_find_in(&cu->scopes, svma, &span);
	i = uni_ranges_find_in(&cu->rows, svma, &span);
	if (i != UNI_RANGE_GAP)
		row = cu->row[i];
	if (span_ret != NULL)
		*span_ret = span;
	if (scope == UNI_RANGE_GAP && i == UNI_RANGE_GAP)
		return 0;
	return put_places(d, cu, scope, row, ret);
}

bool uni_debug_function(struct uni_debug *d, uint64_t svma, Dwarf_Die *ret)
{
	struct uni_span span = { 0, UINT64_MAX };
	uint32_t i = uni_ranges_find_in(&d->ranges, svma, &span), scope;
	struct uni_cu *cu;

	if (i == UNI_RANGE_GAP)
		return false;
	cu = &d->cus.v[d->range_cu[i]];
	if (!cu->loaded)
		load_cu(d, cu);
	scope = uni_ranges_find_in(&cu->scopes, svma, &span);
	if (scope == UNI_RANGE_GAP)
		return false;
	while (cu->scope[scope].parent != UNI_SCOPE_NONE)
		scope = cu->scope[scope].parent;
	return dwarf_offdie(d->dw, cu->scope[scope].die, ret) != NULL;
}

bool uni_debug_plain_type(struct uni_debug *d, Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute a;

	*ret = *die;
	for (unsigned i = 0; i < TYPE_LINKS_MAX && uni_debug_spend(d, 1); i++) {
		if (dwarf_attr_integrate(ret, DW_AT_type, &a) == NULL ||
			dwarf_formref_die(&a, ret) == NULL)
			return false;
		switch (dwarf_tag(ret)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			break;
		default:
			return true;
		}
	}
	return false;
}
