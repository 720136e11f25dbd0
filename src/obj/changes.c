/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/changes.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "base/vec.h"
#include "obj/symbols.h"

#define CHANGES_MAX  ((size_t)1 << 20)
#define OVERLAPS_MAX 16u /* an alternative may contain other places */

/*
 * Linux' lists of the places in its code that it changes itself. A list is a section of its own, or
 * is between two symbols (include/asm-generic/vmlinux.lds.h). Entries are addresses, or distances
 * from themselves.
 */
static const struct list {
	const char *section, *start, *stop;
	uint8_t kind;
	uint8_t stride; /* bytes of an entry; 0: 12, 13 or 14, whichever fits */
	uint8_t len;	/* bytes of code; 0: see len_at */
	uint8_t len_at; /* offset in the entry that has the length */
	bool absolute;
} lists[] = {
	{ ".altinstructions", "__alt_instructions", "__alt_instructions_end",
		UNI_CHANGE_ALTERNATIVE, 0, 0, 0, false },
	{ ".smp_locks", "__smp_locks", "__smp_locks_end", UNI_CHANGE_ALTERNATIVE, 4, 1, 0, false },
	{ ".retpoline_sites", "__retpoline_sites", "__retpoline_sites_end", UNI_CHANGE_ALTERNATIVE,
		4, 6, 0, false },
	{ ".return_sites", "__return_sites", "__return_sites_end", UNI_CHANGE_ALTERNATIVE, 4, 5, 0,
		false },
	{ ".call_sites", "__call_sites", "__call_sites_end", UNI_CHANGE_ALTERNATIVE, 4, 5, 0,
		false },
	{ ".ibt_endbr_seal", "__ibt_endbr_seal", "__ibt_endbr_seal_end", UNI_CHANGE_ALTERNATIVE, 4,
		4, 0, false },
	{ ".parainstructions", "__parainstructions", "__parainstructions_end",
		UNI_CHANGE_ALTERNATIVE, 16, 0, 9, true },
	{ "__jump_table", "__start___jump_table", "__stop___jump_table", UNI_CHANGE_KEY, 16, 5, 0,
		false },
	{ ".static_call_sites", "__start_static_call_sites", "__stop_static_call_sites",
		UNI_CHANGE_KEY, 8, 5, 0, false },
	{ "__mcount_loc", "__start_mcount_loc", "__stop_mcount_loc", UNI_CHANGE_TRACER, 8, 5, 0,
		true },
};

struct reader {
	const struct uni_elf *elf;
	const struct uni_segments *segs;
	const struct uni_symbols *syms;
	UNI_VEC(struct uni_span) code;
	UNI_VEC(struct uni_change) v;
};

const char *uni_change_text(enum uni_change_kind kind)
{
	static const char *const text[UNI_CHANGE_NR] = {
		[UNI_CHANGE_NONE] = "of unknown reason",
		[UNI_CHANGE_ALTERNATIVE] = "alternatives for the CPU",
		[UNI_CHANGE_KEY] = "static keys and calls",
		[UNI_CHANGE_TRACER] = "a tracer's places",
		[UNI_CHANGE_HYPERVISOR] = "pages of the hypervisor",
		[UNI_CHANGE_MOVED] = "addresses of an image that was moved",
		[UNI_CHANGE_TABLE] = "page tables' bits",
		[UNI_CHANGE_ASSEMBLER] = "code without a type (boot code, padding)",
	};

	return text[kind];
}

static bool starts_with(const char *s, const char *head)
{
	return strncmp(s, head, strlen(head)) == 0;
}

/* Linux frees the memory of these sections, or keeps only a copy of some parts. */
static bool is_freed(const char *section)
{
	return starts_with(section, ".init") || starts_with(section, ".exit") ||
	       starts_with(section, ".altinstr_");
}

static const char *section_name(const struct uni_elf *e, uint32_t i)
{
	Elf_Scn *scn = elf_getscn(e->elf, i);
	size_t names;
	GElf_Shdr sh;
	const char *name;

	if (scn == NULL || gelf_getshdr(scn, &sh) == NULL || elf_getshdrstrndx(e->elf, &names) != 0)
		return "";
	name = elf_strptr(e->elf, names, sh.sh_name);
	return name != NULL ? name : "";
}

/* Only those bytes of a section count that a segment loads. */
static bool add_code(struct reader *r, uint64_t addr, uint64_t size)
{
	for (size_t i = 0; i < r->segs->nr; i++) {
		const struct uni_segment *s = &r->segs->v[i];

		if (uni_range_contains(s->vaddr, s->file_size, addr, size))
			return uni_vec_push(&r->code, ((struct uni_span){ addr, size }));
	}
	return true;
}

static bool read_code(struct reader *r)
{
	bool ok = true;

	for (uint32_t i = 1; ok && i < r->elf->nr_sh; i++) {
		struct uni_elf_sh sh = uni_elf_sh(r->elf, i);

		if ((sh.flags & SHF_ALLOC) && (sh.flags & SHF_EXECINSTR) && sh.size != 0 &&
			sh.type == SHT_PROGBITS && uni_range_ok(sh.addr, sh.size) &&
			!is_freed(section_name(r->elf, i)))
			ok = add_code(r, sh.addr, sh.size);
	}
	for (size_t i = 0; ok && r->code.nr == 0 && i < r->segs->nr; i++) {
		if (r->segs->v[i].exec && r->segs->v[i].file_size != 0)
			ok = add_code(r, r->segs->v[i].vaddr, r->segs->v[i].file_size);
	}
	return ok;
}

static bool find_symbol(const struct uni_symbols *s, const char *name, uint64_t *ret)
{
	for (size_t i = 0; i < s->nr_named; i++) {
		if (strcmp(s->names.s + s->named[i].name, name) == 0) {
			*ret = s->named[i].addr;
			return true;
		}
	}
	return false;
}

/* The bytes of a list and its address; NULL: the image has none. */
static const uint8_t *find_list(
	const struct reader *r, const struct list *l, uint64_t *svma_ret, uint64_t *size_ret)
{
	uint32_t i = uni_elf_find_named(r->elf, l->section);
	uint64_t stop;

	if (i != 0) {
		struct uni_elf_sh sh = uni_elf_sh(r->elf, i);

		*svma_ret = sh.addr;
		*size_ret = sh.size;
	} else if (!find_symbol(r->syms, l->start, svma_ret) ||
		   !find_symbol(r->syms, l->stop, &stop) || stop <= *svma_ret) {
		return NULL;
	} else {
		*size_ret = stop - *svma_ret;
	}
	for (size_t k = 0; k < r->segs->nr; k++) {
		const struct uni_segment *s = &r->segs->v[k];

		if (uni_range_contains(s->vaddr, s->file_size, *svma_ret, *size_ret))
			return s->bytes + (*svma_ret - s->vaddr);
	}
	return NULL;
}

static uint64_t place_of(const struct list *l, const uint8_t *entry, uint64_t svma)
{
	struct uni_cursor c = uni_cursor_make(entry, l->absolute ? 8 : 4);

	return l->absolute ? uni_cursor_u64(&c)
			   : svma + (uint64_t)(int64_t)(int32_t)uni_cursor_u32(&c);
}

static bool in_exec(const struct reader *r, uint64_t svma)
{
	for (size_t i = 0; i < r->segs->nr; i++) {
		if (r->segs->v[i].exec &&
			uni_range_has(r->segs->v[i].vaddr, r->segs->v[i].file_size, svma))
			return true;
	}
	return false;
}

/*
 * struct alt_instr has grown over time: with the right size, all entries name code. 0: none fits.
 */
static uint8_t find_stride(const struct reader *r, const struct list *l, const uint8_t *bytes,
	uint64_t svma, uint64_t size)
{
	for (uint8_t stride = 12; stride <= 14; stride++) {
		uint64_t i = 0;

		while (size % stride == 0 && i < size &&
			in_exec(r, place_of(l, bytes + i, svma + i)))
			i += stride;
		if (size % stride == 0 && i >= size)
			return stride;
	}
	return 0;
}

static bool read_list(struct reader *r, const struct list *from)
{
	struct list l = *from;
	uint64_t svma, size;
	const uint8_t *bytes = find_list(r, &l, &svma, &size);
	bool ok = true;

	if (bytes == NULL)
		return true;
	if (l.stride == 0) {
		l.stride = find_stride(r, &l, bytes, svma, size);
		l.len_at = l.stride == 14 ? 12 : 10;
	}
	for (uint64_t i = 0; ok && l.stride != 0 && size - i >= l.stride && r->v.nr < CHANGES_MAX;
		i += l.stride) {
		struct uni_change p = { .addr = place_of(&l, bytes + i, svma + i),
			.size = l.len != 0 ? l.len : bytes[i + l.len_at],
			.kind = l.kind };

		if (p.size != 0 && in_exec(r, p.addr))
			ok = uni_vec_push(&r->v, p);
	}
	return ok;
}

/* The jumps for static calls that are no call sites: __SCT__NAME. */
static bool read_trampolines(struct reader *r)
{
	bool ok = true;

	for (size_t i = 0; ok && i < r->syms->nr; i++) {
		const struct uni_symbol *s = &r->syms->v[i];

		if (starts_with(r->syms->names.s + s->name, "__SCT__") && r->v.nr < CHANGES_MAX)
			ok = uni_vec_push(
				&r->v, ((struct uni_change){ s->addr, 8, UNI_CHANGE_KEY }));
	}
	return ok;
}

static int compare_changes(const void *a, const void *b)
{
	const struct uni_change *p = a, *q = b;

	return p->addr < q->addr ? -1 : p->addr > q->addr;
}

void uni_changes_sort(struct uni_change *v, size_t nr)
{
	if (nr != 0)
		qsort(v, nr, sizeof(*v), compare_changes);
}

const struct uni_change *uni_changes_find(const struct uni_change *v, size_t nr, uint64_t svma)
{
	size_t low = 0, high = nr;

	while (low < high) { /* the first entry behind svma */
		size_t mid = low + (high - low) / 2;

		if (v[mid].addr <= svma)
			low = mid + 1;
		else
			high = mid;
	}
	for (unsigned i = 0; low-- != 0 && i < OVERLAPS_MAX; i++) {
		if (svma - v[low].addr < v[low].size)
			return &v[low];
	}
	return NULL;
}

int uni_changes_read(const struct uni_elf *e, const struct uni_segments *segs,
	const struct uni_symbols *syms, struct uni_changes *ret)
{
	struct reader r = { .elf = e, .segs = segs, .syms = syms };
	bool ok = read_code(&r);

	for (size_t i = 0; ok && i < uni_array_len(lists); i++)
		ok = read_list(&r, &lists[i]);
	ok = ok && read_trampolines(&r);
	uni_changes_sort(r.v.v, r.v.nr);
	*ret = (struct uni_changes){ r.code.v, r.code.nr, r.v.v, r.v.nr };
	if (!ok)
		uni_changes_deinit(ret);
	return ok ? 0 : -UNI_ENOMEM;
}

void uni_changes_deinit(struct uni_changes *p)
{
	free(p->code);
	free(p->v);
	*p = (struct uni_changes){ 0 };
}
