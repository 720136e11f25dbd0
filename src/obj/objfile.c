/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/objfile.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/io.h"
#include "base/strbuf.h"

void uni_objfile_deinit(struct uni_objfile *f)
{
	uni_segments_deinit(&f->segs);
	uni_elf_close(&f->elf);
	free(f->data);
	free(f->path);
	*f = (struct uni_objfile){ 0 };
}

/* Takes over data. */
static int parse_objfile(
	const char *path, char *data, size_t size, struct uni_objfile *f, struct uni_err *err)
{
	int rc;

	f->data = data;
	f->path = strdup(path);
	if (f->path == NULL) {
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory loading %s", path);
	} else {
		rc = uni_elf_open(path, data, size, &f->elf, err);
		if (rc == 0)
			rc = uni_segments_read(path, &f->elf, &f->segs, err);
	}
	if (rc != 0) {
		uni_objfile_deinit(f);
		return rc;
	}
	uni_elf_notes(&f->elf, &f->notes);
	return 0;
}

int uni_objfile_load(const char *path, struct uni_objfile *f, struct uni_err *err)
{
	char *data;
	size_t size;
	int rc = uni_read_regular(path, UNI_ELF_FILE_MAX, &data, &size, err);

	return rc != 0 ? rc : parse_objfile(path, data, size, f, err);
}

int uni_objfile_from_memory(
	const char *name, const void *data, size_t size, struct uni_objfile *f, struct uni_err *err)
{
	char *copy;

	if (size > UNI_ELF_FILE_MAX)
		return uni_err_set(
			err, UNI_ERANGE, "%s is larger than %zu bytes", name, UNI_ELF_FILE_MAX);
	copy = malloc(size + 1);
	if (copy == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory loading %s", name);
	if (size != 0)
		memcpy(copy, data, size);
	return parse_objfile(name, copy, size, f, err);
}

bool uni_objfile_is_cut_copy(const struct uni_objfile *wrapper, const struct uni_objfile *sibling)
{
	return !wrapper->elf.is64 && sibling->elf.is64 &&
	       !uni_segments_same_code(&wrapper->segs, &sibling->segs, UINT64_MAX) &&
	       uni_segments_same_code(&wrapper->segs, &sibling->segs, UINT32_MAX);
}

bool uni_objfile_same_build(const struct uni_objfile *a, const struct uni_objfile *b)
{
	uint64_t mask = a->elf.is64 == b->elf.is64 ? UINT64_MAX : UINT32_MAX;

	if (a->notes.build_id_len != 0 && b->notes.build_id_len != 0)
		return a->notes.build_id_len == b->notes.build_id_len &&
		       memcmp(a->notes.build_id, b->notes.build_id, a->notes.build_id_len) == 0;
	return uni_segments_same_code(&a->segs, &b->segs, mask);
}

/* Does other have what f lacks? That is symbols if f has code, or code if f has only debug data. */
static bool objfile_completes(const struct uni_objfile *f, const struct uni_objfile *other)
{
	if (uni_elf_is_debug_only(&f->elf))
		return uni_segments_code_bytes(&other->segs) != 0;
	return uni_elf_find_section(&other->elf, SHT_SYMTAB) != 0;
}

static bool try_sibling(const struct uni_objfile *f, const char *path, struct uni_objfile *ret,
	struct uni_strbuf *note)
{
	struct uni_objfile other = { 0 };
	struct uni_err err = { 0 };

	if (strcmp(path, f->path) == 0)
		return false;
	uni_strbuf_addf(note, "%s%s", note->len != 0 ? ", " : "", path);
	if (uni_objfile_load(path, &other, &err) != 0) {
		uni_strbuf_addf(note, " (%s)",
			err.code == UNI_ENOENT ? "not there" : uni_strerror(err.code));
		return false;
	}
	if (uni_objfile_same_build(f, &other) && objfile_completes(f, &other)) {
		*ret = other;
		return true;
	}
	uni_strbuf_adds(note, objfile_completes(f, &other) ? " (of another build)"
							   : " (does not have them either)");
	uni_objfile_deinit(&other);
	return false;
}

/* PATH without an ending that builds add to the bootable file. */
static char *base_name(const char *path)
{
	static const char *const endings[] = { ".stripped", ".elf", ".img", ".bin", ".dbg",
		".debug" };
	size_t len = strlen(path);

	for (size_t i = 0; i < uni_array_len(endings); i++) {
		size_t n = strlen(endings[i]);

		if (len > n && path[len - n - 1] != '/' && strcmp(path + len - n, endings[i]) == 0)
			return strndup(path, len - n);
	}
	return NULL;
}

/* base: PATH without its ending, or NULL. */
static bool try_siblings(const struct uni_objfile *f, const char *base, struct uni_objfile *ret,
	struct uni_strbuf *note)
{
	static const char *const added[] = { ".dbg", ".debug", "", ".elf" };
	const char *const stems[] = { f->path, base };

	for (size_t i = 0; i < 2 * uni_array_len(added); i++) {
		const char *stem = stems[i / uni_array_len(added)];
		const char *end = added[i % uni_array_len(added)];
		_cleanup_strbuf_ struct uni_strbuf path;

		uni_strbuf_init(&path);
		/* PATH.elf is not used by any build: only BASE.elf is. */
		if (stem == NULL || (stem == f->path && strcmp(end, ".elf") == 0))
			continue;
		uni_strbuf_addf(&path, "%s%s", stem, end);
		if (!uni_strbuf_failed(&path) && try_sibling(f, path.s, ret, note))
			return true;
	}
	return false;
}

bool uni_objfile_find_sibling(
	const struct uni_objfile *f, struct uni_objfile *ret, struct uni_strbuf *note)
{
	char *base = base_name(f->path);
	bool found = try_siblings(f, base, ret, note);

	free(base);
	return found;
}
