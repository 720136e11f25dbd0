/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/headers.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "obj/elffile.h"

#define HEAD_BYTES 8192
#define NOTE_BYTES 4096
#define SEGMENTS   64

static void take_segment(struct uni_cursor *c, struct uni_headers *ret)
{
	uint32_t type = uni_cursor_u32(c);
	uint64_t offset, svma, file_size;

	(void)uni_cursor_u32(c); /* flags */
	offset = uni_cursor_u64(c);
	svma = uni_cursor_u64(c);
	(void)uni_cursor_u64(c); /* physical address */
	file_size = uni_cursor_u64(c);
	(void)uni_cursor_take(c, 16); /* size in memory, alignment */
	if (c->failed)
		return;
	if (type == PT_LOAD && offset == 0 && file_size >= UNI_HEADERS_MIN && !ret->loaded) {
		ret->base = svma;
		ret->loaded = true;
	}
	if (type == PT_NOTE && ret->nr_notes < UNI_HEADERS_NOTES) {
		ret->note[ret->nr_notes].svma = svma;
		ret->note[ret->nr_notes].offset = offset;
		ret->note[ret->nr_notes++].size = file_size;
	}
	if (type == PT_DYNAMIC) {
		ret->dynamic = svma;
		ret->dynamic_size = file_size;
	}
}

bool uni_headers_parse(const void *data, size_t size, struct uni_headers *ret)
{
	struct uni_cursor c = uni_cursor_make(data, size);
	const uint8_t *ident = uni_cursor_take(&c, EI_NIDENT);
	uint16_t type = uni_cursor_u16(&c), entry_size, nr;
	struct uni_headers h = { 0 };
	uint64_t offset;

	if (ident == NULL || memcmp(ident, ELFMAG, SELFMAG) != 0 || ident[EI_CLASS] != ELFCLASS64 ||
		ident[EI_DATA] != ELFDATA2LSB || (type != ET_EXEC && type != ET_DYN))
		return false;
	(void)uni_cursor_take(&c, 2 + 4 + 8); /* machine, version, entry */
	offset = uni_cursor_u64(&c);
	(void)uni_cursor_take(&c, 8 + 4 + 2); /* sections, flags, size of this header */
	entry_size = uni_cursor_u16(&c);
	nr = uni_cursor_u16(&c);
	if (c.failed || entry_size != sizeof(Elf64_Phdr) || nr > SEGMENTS || offset > size)
		return false;
	uni_cursor_seek(&c, (size_t)offset);
	for (uint16_t i = 0; i < nr; i++)
		take_segment(&c, &h);
	if (c.failed)
		return false;
	*ret = h;
	return true;
}

size_t uni_headers_build_id(const uint8_t *notes, size_t size, uint8_t ret[static UNI_BUILD_ID_MAX])
{
	struct uni_elf_notes n = { 0 };

	uni_elf_notes_parse(notes, size, &n);
	memcpy(ret, n.build_id, n.build_id_len);
	return n.build_id_len;
}

size_t uni_file_build_id(int fd, uint8_t ret[static UNI_BUILD_ID_MAX])
{
	uint8_t head[HEAD_BYTES], notes[NOTE_BYTES];
	struct uni_headers h;
	ssize_t n = pread(fd, head, sizeof(head), 0);
	size_t len = 0;

	if (n < UNI_HEADERS_MIN || !uni_headers_parse(head, (size_t)n, &h))
		return 0;
	for (size_t i = 0; len == 0 && i < h.nr_notes; i++) {
		uint64_t want = uni_min(h.note[i].size, (uint64_t)sizeof(notes));

		if (h.note[i].offset > INT64_MAX)
			continue;
		n = pread(fd, notes, (size_t)want, (off_t)h.note[i].offset);
		if (n > 0)
			len = uni_headers_build_id(notes, (size_t)n, ret);
	}
	return len;
}
