/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds an image's call frame information. */
#include <elf.h>
#include <gelf.h>

#include "base/checked.h"
#include "obj/cfi_priv.h"
#include "obj/image_priv.h"

#define SECTION_MAX  ((uint64_t)128 << 20) /* the largest seen are a tenth of that */
#define SECTIONS_MAX 4
#define CODE_MAX     64

struct gathered {
	struct uni_cfi_section section[SECTIONS_MAX];
	size_t nr;
};

static void add_cfi_section(
	struct gathered *g, const uint8_t *data, uint64_t size, uint64_t addr, bool eh)
{
	if (data == NULL || size == 0 || size > SECTION_MAX || g->nr == SECTIONS_MAX)
		return;
	g->section[g->nr++] = (struct uni_cfi_section){
		.data = data, .size = (size_t)size, .addr = addr, .eh = eh
	};
}

/* Debug sections may be compressed (gABI, "Compression Header"). */
static const uint8_t *uncompressed_section(const struct uni_elf *e, uint32_t i, uint64_t *size_ret)
{
	Elf_Scn *scn = elf_getscn(e->elf, i);
	Elf_Data *data;
	GElf_Chdr ch;

	if (gelf_getchdr(scn, &ch) == NULL || ch.ch_size > SECTION_MAX)
		return NULL;
	if (elf_compress(scn, 0, 0) < 0)
		return NULL;
	data = elf_getdata(scn, NULL);
	if (data == NULL)
		return NULL;
	*size_ret = data->d_size;
	return data->d_buf;
}

static bool add_section(struct gathered *g, const struct uni_elf *e, const char *name, bool eh)
{
	uint32_t i = uni_elf_find_named(e, name);
	struct uni_elf_sh sh;
	const uint8_t *data;
	uint64_t size;

	if (i == 0)
		return false;
	sh = uni_elf_sh(e, i);
	size = sh.size;
	if ((sh.flags & SHF_COMPRESSED) != 0)
		data = uncompressed_section(e, i, &size);
	else
		data = uni_elf_section_bytes(e, &sh);
	add_cfi_section(g, data, size, sh.addr, eh);
	return data != NULL;
}

/*
 * Without section headers: PT_GNU_EH_FRAME (LSB, 10.6.2) points at a header, which points at
 * .eh_frame.
 */
static void add_loaded(struct gathered *g, const struct uni_objfile *f)
{
	for (uint32_t i = 0; i < f->elf.nr_ph; i++) {
		struct uni_elf_ph ph = uni_elf_ph(&f->elf, i);
		uint8_t hdr[16];
		struct uni_cursor c = uni_cursor_make(hdr, sizeof(hdr));
		uint64_t addr;

		if (ph.type != PT_GNU_EH_FRAME ||
			!uni_segments_copy(&f->segs, ph.vaddr, hdr, sizeof(hdr)) || hdr[0] != 1)
			continue;
		uni_cursor_seek(&c, 4);
		if (!uni_cfi_address(&c, hdr[1], f->elf.is64 ? 8 : 4, ph.vaddr, 0, &addr))
			continue;
		for (size_t k = 0; k < f->segs.nr; k++) {
			const struct uni_segment *s = &f->segs.v[k];
			uint64_t off = addr - s->vaddr;

			/* Up to the segment's end: an entry of length 0 ends it earlier. */
			if (uni_range_has(s->vaddr, s->file_size, addr))
				add_cfi_section(g, s->bytes + off, s->file_size - off, addr, true);
		}
	}
}

static size_t code_of(const struct uni_segments *s, struct uni_cfi_code *code)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr && nr < CODE_MAX; i++) {
		if (s->v[i].exec)
			code[nr++] = (struct uni_cfi_code){ s->v[i].vaddr, s->v[i].mem_size,
				s->v[i].bytes, s->v[i].file_size };
	}
	return nr;
}

int uni_image_read_cfi(struct uni_image *img, const struct uni_objfile *sym, struct uni_err *err)
{
	struct uni_cfi_code code[CODE_MAX];
	struct gathered g = { .nr = 0 };
	struct uni_cfi_source src = { .arch = img->arch,
		.section = g.section,
		.code = code,
		.entry = img->entries,
		.nr_entries = img->nr_entries,
		.follow = img->follow,
		.bad = &img->bad_cfi };

	if (img->arch == NULL)
		return 0;
	if (!add_section(&g, &img->file.elf, ".eh_frame", true))
		add_loaded(&g, &img->file);
	(void)add_section(&g, &img->file.elf, ".debug_frame", false);
	if (sym != &img->file)
		(void)add_section(&g, &sym->elf, ".debug_frame", false);
	src.nr_sections = g.nr;
	src.nr_code = code_of(&img->file.segs, code);
	if (uni_cfi_compile(&src, &img->cfi) != 0)
		return uni_err_set(
			err, UNI_ENOMEM, "out of memory for unwind rows of %s", img->path);
	return 0;
}
