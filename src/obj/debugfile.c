/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/debugfile.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/checked.h"

#define SYSTEM_DEBUG_DIR "/usr/lib/debug"

struct finder {
	const struct uni_objfile *f;
	bool (*wanted)(const struct uni_elf *e);
	struct uni_objfile *ret;
	struct uni_strbuf *note;
	bool check_crc; /* a link that states the file's checksum led to it */
	uint32_t crc;
};

bool uni_elf_has_dwarf(const struct uni_elf *e)
{
	return uni_elf_find_named(e, ".debug_info") != 0 ||
	       uni_elf_find_named(e, ".zdebug_info") != 0;
}

bool uni_elf_has_symtab(const struct uni_elf *e)
{
	return uni_elf_find_section(e, SHT_SYMTAB) != 0;
}

static bool crc_matches(const struct uni_objfile *f, uint32_t crc)
{
	return crc32_z(0, f->elf.data, f->elf.size) == crc;
}

/* Without a build-id, the link's checksum proves that it is the same build. */
static bool same_build(const struct finder *s, const struct uni_objfile *other)
{
	if (s->f->notes.build_id_len != 0 && other->notes.build_id_len != 0)
		return uni_objfile_same_build(s->f, other);
	return s->check_crc ? crc_matches(other, s->crc) : uni_objfile_same_build(s->f, other);
}

static bool try_file(struct finder *s, const struct uni_strbuf *path)
{
	struct uni_objfile other = { 0 };
	struct uni_err err = { 0 };

	if (uni_strbuf_failed(path) || strcmp(path->s, s->f->path) == 0)
		return false;
	uni_strbuf_addf(s->note, "%s%s", s->note->len != 0 ? ", " : "", path->s);
	if (uni_objfile_load(path->s, &other, &err) != 0) {
		uni_strbuf_addf(s->note, " (%s)",
			err.code == UNI_ENOENT ? "not there" : uni_strerror(err.code));
		return false;
	}
	if (same_build(s, &other) && s->wanted(&other.elf)) {
		*s->ret = other;
		return true;
	}
	uni_strbuf_adds(s->note,
		s->wanted(&other.elf) ? " (of another build)" : " (does not have them either)");
	uni_objfile_deinit(&other);
	return false;
}

static bool by_build_id(struct finder *s, const char *dir)
{
	const struct uni_elf_notes *n = &s->f->notes;
	_cleanup_strbuf_ struct uni_strbuf path;

	uni_strbuf_init(&path);
	if (n->build_id_len < 2)
		return false;
	uni_strbuf_addf(&path, "%s/.build-id/%02x/", dir, n->build_id[0]);
	for (size_t i = 1; i < n->build_id_len; i++)
		uni_strbuf_addf(&path, "%02x", n->build_id[i]);
	uni_strbuf_adds(&path, ".debug");
	return try_file(s, &path);
}

/* .gnu_debuglink: a file name, zeros up to a multiple of 4, the CRC32 of the file. */
static const char *debug_link(const struct uni_elf *e, uint32_t *crc_ret)
{
	uint32_t i = uni_elf_find_named(e, ".gnu_debuglink");
	struct uni_elf_sh sh = i != 0 ? uni_elf_sh(e, i) : (struct uni_elf_sh){ 0 };
	const uint8_t *data = i != 0 ? uni_elf_section_bytes(e, &sh) : NULL;
	size_t len = data != NULL ? strnlen((const char *)data, sh.size) : 0,
	       at = (len + 4) & ~3ull;

	/* A plain name only: the file must not lead us to another folder. */
	if (len == 0 || !uni_range_contains(0, sh.size, at, 4) || memchr(data, '/', len) != NULL)
		return NULL;
	*crc_ret = data[at] | (uint32_t)data[at + 1] << 8 | (uint32_t)data[at + 2] << 16 |
		   (uint32_t)data[at + 3] << 24;
	return (const char *)data;
}

/* prefix + the directory of the image + between + name. */
static bool try_link(struct finder *s, const char *prefix, const char *between, const char *name)
{
	const char *slash = strrchr(s->f->path, '/');
	_cleanup_strbuf_ struct uni_strbuf path;

	uni_strbuf_init(&path);
	uni_strbuf_adds(&path, prefix);
	if (prefix[0] != '\0' && s->f->path[0] != '/')
		uni_strbuf_addc(&path, '/');
	if (slash != NULL)
		uni_strbuf_add(&path, s->f->path, (size_t)(slash - s->f->path) + 1);
	uni_strbuf_adds(&path, between);
	uni_strbuf_adds(&path, name);
	return try_file(s, &path);
}

/* The file directly in a directory that the user gave, not in a folder below it. */
static bool try_in(struct finder *s, const char *dir, const char *name)
{
	_cleanup_strbuf_ struct uni_strbuf path;

	uni_strbuf_init(&path);
	uni_strbuf_addf(&path, "%s/%s", dir, name);
	return try_file(s, &path);
}

/* Directory i of the search; the last one is the system's own. */
static const char *debug_dir(const struct uni_image_search *search, size_t i)
{
	size_t nr = search != NULL ? search->nr_debug_dirs : 0;

	if (i < nr)
		return search->debug_dirs[i];
	return i == nr ? SYSTEM_DEBUG_DIR : NULL;
}

bool uni_objfile_find_debug(const struct uni_objfile *f, const struct uni_image_search *search,
	bool (*wanted)(const struct uni_elf *e), struct uni_objfile *ret, struct uni_strbuf *note)
{
	struct finder s = { .f = f, .wanted = wanted, .ret = ret, .note = note };
	const char *dir, *link;

	for (size_t i = 0; (dir = debug_dir(search, i)) != NULL; i++) {
		if (by_build_id(&s, dir))
			return true;
	}
	link = debug_link(&f->elf, &s.crc);
	if (link == NULL)
		return false;
	s.check_crc = true;
	if (try_link(&s, "", "", link) || try_link(&s, "", ".debug/", link))
		return true;
	for (size_t i = 0; (dir = debug_dir(search, i)) != NULL; i++) {
		if (try_link(&s, dir, "", link) ||
			(search != NULL && i < search->nr_debug_dirs && try_in(&s, dir, link)))
			return true;
	}
	return false;
}
