/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/core/elf.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define BYTES_MAX   (64u << 20)
#define HEADERS_MAX (1u << 20)

static const struct {
	const char *magic, *what, *remedy;
} others[] = {
	{ "makedumpfile", "a kdump-compressed dump",
		"dump the guest again as ELF (dump-guest-memory without -z, -l and -s; virsh dump "
		"--memory-only --format=elf)" },
	{ "KDUMP   ", "a kdump-compressed dump",
		"dump the guest again as ELF (dump-guest-memory without -z, -l and -s; virsh dump "
		"--memory-only --format=elf)" },
	{ "LibvirtQemud", "a libvirt save file", "use virsh dump --memory-only" },
	{ "QEVM", "a QEMU migration stream", "use dump-guest-memory at QEMU's monitor" },
	{ "UNIREPLY", "a replay file", "its target is replay:file=PATH" },
	{ "Xen saved domain", "a saved Xen domain", "use xl dump-core" },
	{ "\x1f\x8b", "compressed with gzip", "gunzip it first" },
	{ "\x28\xb5\x2f\xfd", "compressed with zstd", "unzstd it first" },
	{ "\xfd"
	  "7zXZ",
		"compressed with xz", "unxz it first" },
	{ "\x04\x22\x4d\x18", "compressed with lz4", "unlz4 it first" },
};

static int not_elf(const uint8_t *head, size_t size, struct uni_err *err)
{
	for (size_t i = 0; i < uni_array_len(others); i++) {
		size_t len = strlen(others[i].magic);

		if (len <= size && memcmp(head, others[i].magic, len) == 0)
			return uni_err_set(err, UNI_ENOTSUP, "this is %s, not an ELF core: %s",
				others[i].what, others[i].remedy);
	}
	return uni_err_set(err, UNI_EFORMAT,
		"this is not an ELF core; memory alone is core:raw=FILE,regs=FILE");
}

static int check_head(const uint8_t *head, size_t size, struct uni_err *err)
{
	if (size < sizeof(Elf64_Ehdr) || memcmp(head, ELFMAG, SELFMAG) != 0)
		return not_elf(head, size, err);
	if (head[EI_DATA] != ELFDATA2LSB)
		return uni_err_set(err, UNI_ENOTSUP, "it is a big-endian core");
	if (head[EI_CLASS] != ELFCLASS64)
		return uni_err_set(err, UNI_ENOTSUP,
			"it is a 32-bit core: the guest was not in 64-bit mode when it was dumped");
	if (head[16] != ET_CORE || head[17] != 0)
		return uni_err_set(err, UNI_EFORMAT,
			"it is an ELF file, but no core: is it the image? That goes to -e");
	return 0;
}

static struct uni_core_sh parse_sh(struct uni_cursor *c)
{
	struct uni_core_sh sh = { .name = uni_cursor_u32(c) };

	(void)uni_cursor_take(c, 4 + 8 + 8); /* type, flags, address */
	sh.offset = uni_cursor_u64(c);
	sh.size = uni_cursor_u64(c);
	sh.link = uni_cursor_u32(c);
	sh.info = uni_cursor_u32(c);
	(void)uni_cursor_take(c, 8); /* alignment */
	sh.ent_size = uni_cursor_u64(c);
	return sh;
}

static bool read_sh(const struct uni_core_elf *e, uint32_t i, struct uni_core_sh *ret)
{
	uint8_t raw[sizeof(Elf64_Shdr)];
	struct uni_cursor c = uni_cursor_make(raw, sizeof(raw));
	uint64_t off;

	if (__builtin_add_overflow(e->shoff, (uint64_t)i * sizeof(raw), &off) ||
		uni_core_src_read(e->src, off, raw, sizeof(raw)) != 0)
		return false;
	*ret = parse_sh(&c);
	return true;
}

/* How many of nr entries at off are in the file? */
static uint32_t clip_entries(struct uni_core_elf *e, uint64_t off, uint32_t nr, size_t size)
{
	uint64_t room = off < e->src->size ? (e->src->size - off) / size : 0;

	if (nr <= room)
		return nr;
	e->cut = true;
	return (uint32_t)room;
}

/* Counts that do not fit 16 bits are in section 0 (ELF gABI, "PN_XNUM"; section header 0). */
static int count_headers(struct uni_core_elf *e, uint32_t nr_ph, uint32_t nr_sh, uint32_t shstrndx,
	struct uni_err *err)
{
	struct uni_core_sh zero = { 0 };
	bool have = e->shoff != 0 && read_sh(e, 0, &zero);

	if (nr_ph == PN_XNUM && have)
		nr_ph = zero.info;
	if (nr_sh == 0 && have)
		nr_sh = (uint32_t)uni_min(zero.size, (uint64_t)UINT32_MAX);
	if (shstrndx == SHN_XINDEX && have)
		shstrndx = zero.link;
	if (nr_ph > HEADERS_MAX || nr_sh > HEADERS_MAX)
		return uni_err_set(err, UNI_EFORMAT, "it claims %u program and %u section headers",
			nr_ph, nr_sh);
	e->nr_ph = clip_entries(e, e->phoff, nr_ph, sizeof(Elf64_Phdr));
	e->nr_sh = e->shoff != 0 ? clip_entries(e, e->shoff, nr_sh, sizeof(Elf64_Shdr)) : 0;
	e->shstrndx = shstrndx;
	return 0;
}

int uni_core_elf_open(const struct uni_core_src *src, struct uni_core_elf *ret, struct uni_err *err)
{
	uint8_t head[sizeof(Elf64_Ehdr)];
	size_t size = (size_t)uni_min(src->size, (uint64_t)sizeof(head));
	struct uni_cursor c = uni_cursor_make(head, size);
	struct uni_core_elf e = { .src = src };
	uint32_t nr_ph, nr_sh, shstrndx;
	int rc;

	if (uni_core_src_read(src, 0, head, size) != 0)
		return uni_err_set(err, UNI_EIO, "its first bytes cannot be read");
	rc = check_head(head, size, err);
	if (rc != 0)
		return rc;
	uni_cursor_seek(&c, 18);
	e.machine = uni_cursor_u16(&c);
	(void)uni_cursor_take(&c, 4 + 8); /* version, entry */
	e.phoff = uni_cursor_u64(&c);
	e.shoff = uni_cursor_u64(&c);
	(void)uni_cursor_take(&c, 4 + 2); /* flags, size of this header (QEMU says 8) */
	if (uni_cursor_u16(&c) != sizeof(Elf64_Phdr) && e.phoff != 0)
		return uni_err_set(err, UNI_EFORMAT, "its program headers have a wrong size");
	nr_ph = uni_cursor_u16(&c);
	if (uni_cursor_u16(&c) != sizeof(Elf64_Shdr))
		e.shoff = 0;
	nr_sh = uni_cursor_u16(&c);
	shstrndx = uni_cursor_u16(&c);
	rc = count_headers(&e, nr_ph, nr_sh, shstrndx, err);
	if (rc == 0)
		*ret = e;
	return rc;
}

int uni_core_elf_phs(const struct uni_core_elf *e, struct uni_core_ph **ret, struct uni_err *err)
{
	uint8_t *raw = NULL;
	size_t size;
	struct uni_core_ph *ph;
	struct uni_cursor c;
	int rc = uni_core_elf_bytes(
		e, e->phoff, (uint64_t)e->nr_ph * sizeof(Elf64_Phdr), &raw, &size, err);

	if (rc != 0)
		return rc;
	ph = calloc((size_t)e->nr_ph + 1, sizeof(*ph));
	if (ph == NULL) {
		free(raw);
		return uni_err_set(err, UNI_ENOMEM, "no memory for its program headers");
	}
	c = uni_cursor_make(raw, size);
	for (uint32_t i = 0; i < e->nr_ph; i++) {
		ph[i].type = uni_cursor_u32(&c);
		(void)uni_cursor_u32(&c); /* flags */
		ph[i].offset = uni_cursor_u64(&c);
		ph[i].vaddr = uni_cursor_u64(&c);
		ph[i].paddr = uni_cursor_u64(&c);
		ph[i].file_size = uni_cursor_u64(&c);
		ph[i].mem_size = uni_cursor_u64(&c);
		(void)uni_cursor_u64(&c); /* alignment */
	}
	free(raw);
	*ret = ph;
	return 0;
}

/* Is this string, with its NUL, at off in the file? */
static bool string_is(const struct uni_core_elf *e, uint64_t off, const char *s)
{
	char buf[64];
	size_t len = strlen(s) + 1;

	return len <= sizeof(buf) && uni_core_src_read(e->src, off, buf, len) == 0 &&
	       memcmp(buf, s, len) == 0;
}

int uni_core_elf_section(const struct uni_core_elf *e, const char *name, struct uni_core_sh *ret)
{
	struct uni_core_sh strings, sh;

	if (e->shstrndx >= e->nr_sh || !read_sh(e, e->shstrndx, &strings))
		return -UNI_ENOENT;
	for (uint32_t i = 1; i < e->nr_sh; i++) {
		uint64_t off;

		if (!read_sh(e, i, &sh))
			break;
		if (__builtin_add_overflow(strings.offset, (uint64_t)sh.name, &off) ||
			!string_is(e, off, name))
			continue;
		*ret = sh;
		return 0;
	}
	return -UNI_ENOENT;
}

int uni_core_elf_bytes(const struct uni_core_elf *e, uint64_t off, uint64_t size, uint8_t **ret,
	size_t *size_ret, struct uni_err *err)
{
	uint64_t room = off < e->src->size ? e->src->size - off : 0;
	size_t n = (size_t)uni_min(uni_min(size, room), (uint64_t)BYTES_MAX);
	uint8_t *p = malloc(n + 1);

	if (p == NULL)
		return uni_err_set(err, UNI_ENOMEM, "no memory for %zu bytes of headers", n);
	if (uni_core_src_read(e->src, off, p, n) != 0) {
		free(p);
		return uni_err_set(err, UNI_EIO, "its headers cannot be read");
	}
	*ret = p;
	*size_ret = n;
	return 0;
}

/* Name and descriptor are each padded to 4 bytes, also in ELF64 files. */
static const uint8_t *take_padded(struct uni_cursor *c, size_t len)
{
	const uint8_t *p = uni_cursor_take(c, len);

	while (p != NULL && c->pos % 4 != 0 && uni_cursor_left(c) != 0)
		(void)uni_cursor_u8(c);
	return p;
}

bool uni_core_note_next(struct uni_cursor *c, struct uni_core_note *ret)
{
	uint32_t name_size = uni_cursor_u32(c), size = uni_cursor_u32(c);

	ret->type = uni_cursor_u32(c);
	ret->name = (const char *)take_padded(c, name_size);
	ret->name_size = name_size;
	ret->desc = take_padded(c, size);
	ret->size = size;
	return !c->failed;
}

bool uni_core_note_is(const struct uni_core_note *n, const char *name, uint32_t type)
{
	size_t len = strlen(name);

	return n->type == type && strnlen(n->name, n->name_size) == len &&
	       memcmp(n->name, name, len) == 0;
}
