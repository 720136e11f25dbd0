/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/elffile.h"

#include <elf.h>
#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"

/* public/elfnote.h */
#define XEN_ELFNOTE_ENTRY	   1
#define XEN_ELFNOTE_HYPERCALL_PAGE 2
#define XEN_ELFNOTE_PHYS32_ENTRY   18

/* Limits for hostile files: real images have a few notes of some dozen bytes. */
#define NOTE_AREAS_MAX 64
#define NOTE_AREA_SIZE 65536

/* The first note of a kind counts. */
static void take_address(const uint8_t *desc, size_t len, uint64_t *ret, bool *has_ret)
{
	struct uni_cursor c = uni_cursor_make(desc, len);

	if ((len != 4 && len != 8) || *has_ret)
		return;
	*ret = len == 4 ? uni_cursor_u32(&c) : uni_cursor_u64(&c);
	*has_ret = true;
}

static void take_xen_note(uint32_t type, const uint8_t *desc, size_t len, struct uni_elf_notes *ret)
{
	if (type == XEN_ELFNOTE_PHYS32_ENTRY)
		take_address(desc, len, &ret->pvh_entry, &ret->has_pvh_entry);
	if (type == XEN_ELFNOTE_ENTRY)
		take_address(desc, len, &ret->pv_entry, &ret->has_pv_entry);
	if (type == XEN_ELFNOTE_HYPERCALL_PAGE)
		take_address(desc, len, &ret->stubs, &ret->has_stubs);
}

typedef void (*note_fn)(void *ctx, const uint8_t *name, size_t name_len, uint32_t type,
	const uint8_t *desc, size_t len);

static void take_note(void *ctx, const uint8_t *name, size_t name_len, uint32_t type,
	const uint8_t *desc, size_t len)
{
	struct uni_elf_notes *ret = ctx;

	if (name_len != 4)
		return;
	if (memcmp(name, "GNU", 4) == 0 && type == NT_GNU_BUILD_ID && len != 0 &&
		len <= UNI_BUILD_ID_MAX && ret->build_id_len == 0) {
		memcpy(ret->build_id, desc, len);
		ret->build_id_len = len;
	}
	if (memcmp(name, "Xen", 4) == 0)
		take_xen_note(type, desc, len, ret);
}

static void take_solo5_note(void *ctx, const uint8_t *name, size_t name_len, uint32_t type,
	const uint8_t *desc, size_t len)
{
	if (name_len == sizeof("Solo5") && memcmp(name, "Solo5", name_len) == 0)
		uni_solo5_take(type, desc, len, ctx);
}

/* Name and descriptor are each padded to 4 bytes, also in ELF64 files. */
static const uint8_t *take_padded(struct uni_cursor *c, size_t len)
{
	const uint8_t *p = uni_cursor_take(c, len);

	while (p != NULL && c->pos % 4 != 0 && uni_cursor_left(c) != 0)
		(void)uni_cursor_u8(c);
	return p;
}

static void walk_area(const uint8_t *data, size_t size, note_fn take, void *ctx)
{
	struct uni_cursor c = uni_cursor_make(data, uni_min(size, (size_t)NOTE_AREA_SIZE));

	while (uni_cursor_left(&c) >= sizeof(Elf64_Nhdr)) {
		uint32_t name_len = uni_cursor_u32(&c), len = uni_cursor_u32(&c);
		uint32_t type = uni_cursor_u32(&c);
		const uint8_t *name = take_padded(&c, name_len);
		const uint8_t *desc = take_padded(&c, len);

		if (desc == NULL)
			return;
		take(ctx, name, name_len, type, desc, len);
	}
}

void uni_elf_notes_parse(const uint8_t *data, size_t size, struct uni_elf_notes *ret)
{
	walk_area(data, size, take_note, ret);
}

static void read_area(const struct uni_elf *e, uint64_t off, uint64_t size, note_fn take, void *ctx)
{
	if (uni_range_contains(0, e->size, off, size))
		walk_area(e->data + off, (size_t)size, take, ctx);
}

static void walk_areas(const struct uni_elf *e, note_fn take, void *ctx)
{
	unsigned areas = 0;

	/* A segment may join notes of several sections, and a debug file has sections only. */
	for (uint32_t i = 1; i < e->nr_sh && areas < NOTE_AREAS_MAX; i++) {
		struct uni_elf_sh sh = uni_elf_sh(e, i);

		if (sh.type != SHT_NOTE)
			continue;
		read_area(e, sh.offset, sh.size, take, ctx);
		areas++;
	}
	for (uint32_t i = 0; i < e->nr_ph && areas < 2 * NOTE_AREAS_MAX; i++) {
		struct uni_elf_ph ph = uni_elf_ph(e, i);

		if (ph.type != PT_NOTE)
			continue;
		read_area(e, ph.offset, ph.file_size, take, ctx);
		areas++;
	}
}

void uni_elf_notes(const struct uni_elf *e, struct uni_elf_notes *ret)
{
	*ret = (struct uni_elf_notes){ 0 };
	walk_areas(e, take_note, ret);
}

void uni_elf_solo5(const struct uni_elf *e, struct uni_solo5 *ret)
{
	*ret = (struct uni_solo5){ 0 };
	walk_areas(e, take_solo5_note, ret);
}
