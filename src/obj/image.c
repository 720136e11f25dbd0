/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/image.h"

#include <inttypes.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "obj/debugfile.h"
#include "obj/image_priv.h"

static void destroy_p(struct uni_image **img)
{
	uni_image_destroy(*img);
}

/* FNV-1a, 64 bit: fixed in docs/formats/usym.md, since ids name files. */
static uint64_t hash_fnv1a(uint64_t h, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h;
}

static uint64_t hash_file(const struct uni_objfile *f)
{
	uint64_t h = 0xcbf29ce484222325ull;

	if (uni_segments_code_bytes(&f->segs) == 0)
		return hash_fnv1a(h, f->elf.data, f->elf.size);
	for (size_t i = 0; i < f->segs.nr; i++) {
		if (f->segs.v[i].exec)
			h = hash_fnv1a(h, f->segs.v[i].bytes, f->segs.v[i].file_size);
	}
	return h;
}

static void make_id(struct uni_image *img, const struct uni_elf_notes *main_notes,
	const struct uni_elf_notes *sym_notes)
{
	const struct uni_elf_notes *n = main_notes->build_id_len != 0 ? main_notes : sym_notes;

	img->build_id_len = n->build_id_len;
	memcpy(img->build_id, n->build_id, sizeof(img->build_id));
	for (size_t i = 0; i < n->build_id_len; i++)
		(void)snprintf(img->id + 2 * i, 3, "%02x", n->build_id[i]);
	if (n->build_id_len == 0)
		(void)snprintf(img->id, sizeof(img->id), "x%016llx",
			(unsigned long long)hash_file(&img->file));
}

/*
 * Entry points are physical addresses in PVH notes, and in the e_entry of some higher-half images.
 */
static uint64_t entry_svma(const struct uni_segments *s, uint64_t entry, bool physical)
{
	for (size_t i = 0; i < s->nr && !physical; i++) {
		if (uni_range_has(s->v[i].vaddr, s->v[i].mem_size, entry))
			return entry;
	}
	for (size_t i = 0; i < s->nr; i++) {
		if (uni_range_has(s->v[i].paddr, s->v[i].mem_size, entry))
			return s->v[i].vaddr + (entry - s->v[i].paddr);
	}
	return entry;
}

static void find_entries(struct uni_image *img)
{
	const struct uni_objfile *f = &img->file;

	if (img->called)
		return;
	img->entries[img->nr_entries++] = entry_svma(&f->segs, f->elf.entry, false);
	if (f->notes.has_pvh_entry)
		img->entries[img->nr_entries++] = entry_svma(&f->segs, f->notes.pvh_entry, true);
	if (f->notes.has_pv_entry)
		img->entries[img->nr_entries++] = f->notes.pv_entry;
}

/* A page of one byte's value, as an image has it in which Xen fills it in. */
static bool is_empty_page(const struct uni_image *img, uint64_t svma)
{
	uint8_t page[UNI_STUBS_BYTES];

	return svma % sizeof(page) == 0 && uni_image_bytes(img, svma, page, sizeof(page)) &&
	       memcmp(page, page + 1, sizeof(page) - 1) == 0;
}

/* A guest that asks Xen for the page itself, by an MSR, needs no note for that: Solo5 has none. */
static void find_stubs(struct uni_image *img)
{
	/* Mini-OS and Unikraft have it in the section of their code. */
	static const char *const shared[] = { "shared_info", "_libxenplat_shared_info" };
	static const char *const names[] = { "hypercall_page", "HYPERCALL_PAGE",
		"solo5__xen_HYPERCALL_PAGE" };
	const struct uni_elf_notes *notes = &img->file.notes;
	uint64_t size;

	img->stubs = notes->stubs;
	img->has_stubs = notes->has_stubs;
	for (size_t i = 0; notes->has_pvh_entry && !img->has_stubs && i < uni_array_len(names); i++)
		img->has_stubs = uni_image_find(img, names[i], &img->stubs, &size) == 0 &&
				 is_empty_page(img, img->stubs);
	for (size_t i = 0; !img->has_shared && i < uni_array_len(shared); i++)
		img->has_shared = uni_image_find(img, shared[i], &img->shared, &size) == 0 &&
				  is_empty_page(img, img->shared);
}

/* From here on only the segments' bytes are needed; debug data is many times their size. */
static void drop_rest_of_file(struct uni_objfile *f)
{
	size_t total = 0, pos = 0;
	char *bytes;

	for (size_t i = 0; i < f->segs.nr; i++)
		total += f->segs.v[i].file_size;
	bytes = total < f->elf.size ? malloc(total + 1) : NULL;
	if (bytes == NULL)
		return; /* no error: it only stays larger */
	for (size_t i = 0; i < f->segs.nr; i++) {
		struct uni_segment *s = &f->segs.v[i];

		memcpy(bytes + pos, s->bytes, s->file_size);
		s->bytes = (const uint8_t *)bytes + pos;
		pos += s->file_size;
	}
	uni_elf_close(&f->elf);
	free(f->data);
	f->data = bytes;
}

static void find_dynamic(struct uni_image *img)
{
	for (uint32_t i = 0; i < img->file.elf.nr_ph; i++) {
		struct uni_elf_ph ph = uni_elf_ph(&img->file.elf, i);

		if (ph.type != PT_DYNAMIC)
			continue;
		img->dynamic = ph.vaddr;
		img->dynamic_size = ph.mem_size;
	}
}

/*
 * Takes over file. sym is the file with the symbols, or NULL if that is file itself. The machine is
 * the symbol file's: the other file may be a wrapper that claims to be i386.
 */
static int build_image(struct uni_image *img, struct uni_objfile *file,
	const struct uni_objfile *sym, struct uni_err *err)
{
	const struct uni_elf *elf;
	int rc;

	img->file = *file;
	*file = (struct uni_objfile){ 0 };
	if (sym == NULL)
		sym = &img->file;
	elf = sym->elf.is64 || !img->file.elf.is64 ? &sym->elf : &img->file.elf;
	img->symbol_path = strdup(sym->path);
	if (img->path == NULL || img->symbol_path == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory loading %s", img->file.path);
	rc = uni_symbols_read(sym->path, &sym->elf, &img->file.elf, &img->syms, err);
	if (rc != 0)
		return rc;
	img->machine = uni_elf_code_machine(elf, &img->file.segs);
	img->arch = uni_arch_by_elf_machine(img->machine);
	make_id(img, &img->file.notes, &sym->notes);
	find_entries(img);
	find_stubs(img);
	find_dynamic(img);
	rc = uni_image_read_cfi(img, sym, err);
	if (rc != 0)
		return rc;
	if (uni_changes_read(&img->file.elf, &img->file.segs, &img->syms, &img->changes) != 0)
		return uni_err_set(err, UNI_ENOMEM, "out of memory loading %s", img->path);
	drop_rest_of_file(&img->file);
	return 0;
}

static struct uni_image *image_new(const char *path)
{
	struct uni_image *img = calloc(1, sizeof(*img));

	if (img == NULL)
		return NULL;
	uni_symbols_init(&img->syms);
	img->path = strdup(path);
	return img;
}

/*
 * Decides which of two files of one build gives the segments: their addresses must match the
 * symbols'.
 */
static int build_pair(struct uni_image *img, struct uni_objfile *f, struct uni_objfile *other,
	struct uni_err *err)
{
	if (uni_elf_is_debug_only(&f->elf))
		return build_image(img, other, f, err);
	/* A 32-bit wrapper of a higher-half image has lost the upper half of each address. */
	if (uni_objfile_is_cut_copy(f, other))
		return build_image(img, other, NULL, err);
	return build_image(img, f, other, err);
}

/* Finds the other file of a split or stripped image; img->note lists the places that were tried. */
static bool find_other(struct uni_image *img, const struct uni_objfile *f,
	const struct uni_image_search *search, struct uni_objfile *ret)
{
	_cleanup_strbuf_ struct uni_strbuf note;
	bool no_code = uni_elf_is_debug_only(&f->elf);

	uni_strbuf_init(&note);
	if (uni_objfile_find_sibling(f, ret, &note))
		return true;
	if (!no_code && uni_objfile_find_debug(f, search, uni_elf_has_symtab, ret, &note))
		return true;
	(void)snprintf(img->note, sizeof(img->note), "%s: no %s in it; tried %s", f->path,
		no_code ? "code" : "symbols", note.s);
	return false;
}

static void take_search(struct uni_image *img, const struct uni_image_search *search)
{
	img->called = search != NULL && search->called;
	img->follow = search != NULL ? search->follow : 0;
}

int uni_image_load_from(const char *path, const struct uni_image_search *search,
	struct uni_image **ret, struct uni_err *err)
{
	_cleanup_(uni_objfile_deinit) struct uni_objfile f = { 0 };
	_cleanup_(uni_objfile_deinit) struct uni_objfile other = { 0 };
	_cleanup_(destroy_p) struct uni_image *img = image_new(path);
	int rc;

	if (img == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory loading %s", path);
	take_search(img, search);
	rc = uni_objfile_load(path, &f, err);
	if (rc != 0)
		return rc;
	if ((!uni_elf_has_symtab(&f.elf) || uni_elf_is_debug_only(&f.elf)) &&
		find_other(img, &f, search, &other))
		rc = build_pair(img, &f, &other, err);
	else
		rc = build_image(img, &f, NULL, err);
	if (rc == 0)
		*ret = uni_take(img);
	return rc;
}

int uni_image_load(const char *path, struct uni_image **ret, struct uni_err *err)
{
	return uni_image_load_from(path, NULL, ret, err);
}

int uni_image_from_memory(const char *name, const void *data, size_t size, struct uni_image **ret,
	struct uni_err *err)
{
	return uni_image_from_memory_for(name, data, size, NULL, ret, err);
}

int uni_image_from_memory_for(const char *name, const void *data, size_t size,
	const struct uni_image_search *search, struct uni_image **ret, struct uni_err *err)
{
	_cleanup_(uni_objfile_deinit) struct uni_objfile f = { 0 };
	_cleanup_(destroy_p) struct uni_image *img = image_new(name);
	int rc;

	if (img == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory loading %s", name);
	take_search(img, search);
	rc = uni_objfile_from_memory(name, data, size, &f, err);
	if (rc == 0)
		rc = build_image(img, &f, NULL, err);
	if (rc == 0)
		*ret = uni_take(img);
	return rc;
}

void uni_image_destroy(struct uni_image *img)
{
	if (img == NULL)
		return;
	uni_image_hints_free(img->hints);
	uni_cfi_destroy(img->cfi);
	uni_symbols_deinit(&img->syms);
	uni_changes_deinit(&img->changes);
	free(img->unnamed);
	uni_objfile_deinit(&img->file);
	free(img->path);
	free(img->symbol_path);
	free(img);
}

bool uni_image_set_path(struct uni_image *img, const char *path)
{
	char *copy = strdup(path);

	if (copy == NULL)
		return false;
	free(img->path);
	img->path = copy;
	return true;
}

uint64_t uni_image_follows(const struct uni_image *img)
{
	return img->cfi != NULL ? img->cfi->table.regs : 0;
}

const char *uni_image_path(const struct uni_image *img)
{
	return img->path;
}

const char *uni_image_symbol_path(const struct uni_image *img)
{
	return img->symbol_path;
}

const char *uni_image_note(const struct uni_image *img)
{
	return img->note[0] != '\0' ? img->note : NULL;
}

const struct uni_arch *uni_image_arch(const struct uni_image *img)
{
	return img->arch;
}

unsigned uni_image_machine(const struct uni_image *img)
{
	return img->machine;
}

size_t uni_image_build_id(const struct uni_image *img, const uint8_t **ret)
{
	*ret = img->build_id;
	return img->build_id_len;
}

const char *uni_image_id(const struct uni_image *img)
{
	return img->id;
}

uint64_t uni_image_entry(const struct uni_image *img)
{
	return img->file.elf.entry;
}

size_t uni_image_nr_segments(const struct uni_image *img)
{
	return img->file.segs.nr;
}

const struct uni_segment *uni_image_segment(const struct uni_image *img, size_t i)
{
	return i < img->file.segs.nr ? &img->file.segs.v[i] : NULL;
}

size_t uni_image_nr_symbols(const struct uni_image *img)
{
	return img->syms.nr;
}

const struct uni_symbol *uni_image_symbol(const struct uni_image *img, size_t i)
{
	return i < img->syms.nr ? &img->syms.v[i] : NULL;
}

const char *uni_image_sym_name(const struct uni_image *img, const struct uni_symbol *sym)
{
	return img->syms.names.s + sym->name;
}

const struct uni_symbol *uni_image_lookup(const struct uni_image *img, uint64_t svma)
{
	uint32_t i = uni_ranges_find(&img->syms.ranges, svma);

	return i == UNI_RANGE_GAP ? NULL : &img->syms.v[i];
}

/* Among symbols of one name: global before weak before local, then the lower address. */
static bool symbol_beats(const struct uni_named *a, const struct uni_named *b)
{
	return a->rank != b->rank ? a->rank < b->rank : a->addr < b->addr;
}

int uni_image_find(
	const struct uni_image *img, const char *name, uint64_t *addr_ret, uint64_t *size_ret)
{
	const struct uni_named *best = NULL;

	for (size_t i = 0; i < img->syms.nr_named; i++) {
		const struct uni_named *n = &img->syms.named[i];

		if (strcmp(img->syms.names.s + n->name, name) != 0)
			continue;
		if (best == NULL || symbol_beats(n, best))
			best = n;
	}
	if (best == NULL)
		return -UNI_ENOENT;
	*addr_ret = best->addr;
	*size_ret = best->size;
	return 0;
}

const char *uni_image_name_at(const struct uni_image *img, uint64_t svma, uint64_t *off_ret)
{
	const struct uni_named *best = NULL;

	for (size_t i = 0; i < img->syms.nr_named; i++) {
		const struct uni_named *n = &img->syms.named[i];

		if (!uni_range_has(n->addr, n->size, svma))
			continue;
		/*
		 * Prefers the smallest symbol: a member of a table may have a name, and the table,
		 * too.
		 */
		if (best == NULL || n->size < best->size ||
			(n->size == best->size && symbol_beats(n, best)))
			best = n;
	}
	if (best == NULL)
		return NULL;
	*off_ret = svma - best->addr;
	return img->syms.names.s + best->name;
}

bool uni_image_bytes(const struct uni_image *img, uint64_t svma, void *buf, size_t len)
{
	return uni_segments_copy(&img->file.segs, svma, buf, len);
}

bool uni_image_dynamic(const struct uni_image *img, uint64_t *svma_ret, uint64_t *size_ret)
{
	*svma_ret = img->dynamic;
	*size_ret = img->dynamic_size;
	return img->dynamic_size != 0;
}

bool uni_image_stubs(const struct uni_image *img, uint64_t *svma_ret)
{
	if (img->has_stubs)
		*svma_ret = img->stubs;
	return img->has_stubs;
}

bool uni_image_is_xens(const struct uni_image *img, uint64_t svma)
{
	return (img->has_stubs && uni_range_has(img->stubs, UNI_STUBS_BYTES, svma)) ||
	       (img->has_shared && uni_range_has(img->shared, UNI_STUBS_BYTES, svma));
}

uint64_t uni_image_bad_rows(const struct uni_image *img, char *ret, size_t cap)
{
	const struct uni_cfi_bad *b = &img->bad_cfi;

	ret[0] = '\0';
	if (b->nr != 0)
		(void)snprintf(ret, cap,
			"%" PRIu64 " function%s; the first, at %#" PRIx64
			": %s, entry at %#zx, instruction %#x at %#zx",
			b->nr, uni_plural(b->nr), b->start, b->eh ? ".eh_frame" : ".debug_frame",
			b->entry, b->opcode, b->insn);
	return b->nr;
}

bool uni_image_is_pvh(const struct uni_image *img)
{
	return img->file.notes.has_pvh_entry;
}
