/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/uktrace/fetch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "obj/objfile.h"
#include "format/uktrace/buffer.h"

#define BUFFER_MAX (UINT64_C(256) << 20)
#define TRIES	   8 /* for a pointer and a count that belong together */

/* trace.h writes the name so that GCC's assembler takes what follows it for a comment; clang takes
 * all of it for the name. */
static const uint8_t *read_section(const struct uni_objfile *f, const char *name, size_t *size_ret)
{
	uint32_t i = uni_elf_find_named(&f->elf, name);
	struct uni_elf_sh sh;
	const uint8_t *bytes;
	char theirs[64];

	(void)snprintf(theirs, sizeof(theirs), "%s,\"\",@note#", name);
	if (i == 0)
		i = uni_elf_find_named(&f->elf, theirs);

	if (i == 0)
		return NULL;
	sh = uni_elf_sh(&f->elf, i);
	bytes = uni_elf_section_bytes(&f->elf, &sh);
	*size_ret = (size_t)sh.size;
	return bytes;
}

/* "format_version = 1" among NUL-terminated pairs; 0: not stated. */
static uint64_t version_of(const uint8_t *s, size_t size)
{
	static const char key[] = "format_version = ";
	const uint8_t *end = s + size, *at = s;
	char value[32] = "";
	uint64_t v;

	while (at != NULL && at < end) {
		const uint8_t *nul = memchr(at, '\0', (size_t)(end - at));
		size_t len = nul != NULL ? (size_t)(nul - at) : (size_t)(end - at);

		if (len > sizeof(key) - 1 && len - (sizeof(key) - 1) < sizeof(value) &&
			memcmp(at, key, sizeof(key) - 1) == 0) {
			memcpy(value, at + sizeof(key) - 1, len - (sizeof(key) - 1));
			return uni_parse_u64(value, &v) ? v : 0;
		}
		at = nul != NULL ? nul + 1 : NULL;
	}
	return 0;
}

static int copy_defs(const struct uni_objfile *f, const char *path, struct uni_ukt_file *ret,
	struct uni_err *err)
{
	size_t size = 0, pairs_size = 0;
	const uint8_t *defs = read_section(f, ".uk_tracepoints_list", &size);
	const uint8_t *pairs = read_section(f, ".uk_trace_keyvals", &pairs_size);

	if (defs == NULL)
		return uni_err_set(err, UNI_ENOENT,
			"%s has no tracepoints of Unikraft (section .uk_tracepoints_list): give "
			"the "
			".dbg image of a build with LIBUKDEBUG_TRACEPOINTS",
			path);
	ret->version = pairs != NULL ? version_of(pairs, pairs_size) : 0;
	ret->ptr_size = f->elf.is64 ? 8 : 4;
	ret->defs = malloc(size + 1);
	ret->elf = strdup(path);
	if (ret->defs == NULL || ret->elf == NULL)
		return uni_err_nomem(err);
	memcpy(ret->defs, defs, size);
	ret->defs_size = size;
	return 0;
}

int uni_ukt_image_defs(const struct uni_image *img, struct uni_ukt_file *ret, struct uni_err *err)
{
	struct uni_objfile f = { 0 };
	const char *path = uni_image_symbol_path(img);
	int rc;

	*ret = (struct uni_ukt_file){ 0 };
	rc = uni_objfile_load(path, &f, err);
	if (rc != 0)
		return rc;
	rc = copy_defs(&f, path, ret, err);
	uni_objfile_deinit(&f);
	if (rc != 0)
		uni_ukt_file_free(ret);
	return rc;
}

/* Addresses of the guest's buffer and of its write position. */
struct places {
	uint64_t buffer, size; /* size 0: the symbol has none */
	uint64_t writep, free;
};

static int find_one(const struct uni_image *img, const char *name, uint64_t bias, uint64_t *ret,
	uint64_t *size_ret, struct uni_err *err)
{
	if (uni_image_find(img, name, ret, size_ret) != 0)
		return uni_err_set(err, UNI_ENOENT,
			"%s has no symbol %s: is it of a build with LIBUKDEBUG_TRACEPOINTS?",
			uni_image_symbol_path(img), name);
	*ret += bias;
	return 0;
}

static int find_buffers(
	const struct uni_image *img, uint64_t bias, struct places *ret, struct uni_err *err)
{
	uint64_t size;
	int rc = find_one(img, "uk_trace_buffer", bias, &ret->buffer, &ret->size, err);

	if (rc == 0)
		rc = find_one(img, "uk_trace_buffer_writep", bias, &ret->writep, &size, err);
	if (rc == 0)
		rc = find_one(img, "uk_trace_buffer_free", bias, &ret->free, &size, err);
	return rc;
}

static int read_word(const struct uni_ring_source *m, uint64_t va, unsigned size, uint64_t *ret)
{
	*ret = 0;
	return m->read(m->ctx, va, ret, size);
}

struct state {
	uint64_t used, free;
};

/* Reads both as of one moment: the guest may write between two reads. */
static int read_state(const struct uni_ring_source *m, const struct places *p, unsigned ptr_size,
	struct state *ret)
{
	uint64_t writep = 0, again;
	int rc = 0;

	for (int i = 0; rc == 0 && i < TRIES; i++) {
		rc = read_word(m, p->writep, ptr_size, &writep);
		if (rc == 0)
			rc = read_word(m, p->free, ptr_size, &ret->free);
		if (rc == 0)
			rc = read_word(m, p->writep, ptr_size, &again);
		if (rc == 0 && again == writep)
			break;
	}
	/* 0: the guest has not come to set it. */
	ret->used = writep != 0 ? writep - p->buffer : 0;
	return rc;
}

static int read_buffer(const struct uni_ring_source *m, const struct places *p,
	const struct state *s, struct uni_ukt_file *ret, struct uni_err *err)
{
	uint64_t size = p->size, used = s->used;
	int rc;

	if (size == 0 && __builtin_add_overflow(used, s->free, &size))
		size = UINT64_MAX;
	if (size > BUFFER_MAX)
		return uni_err_set(err, UNI_EFORMAT,
			"the guest's trace buffer cannot be %" PRIu64 " bytes large", size);
	/* Unikraft of before 2023 could write past the end of a full buffer. */
	if (used > size + UNI_TEXT_MAX)
		return uni_err_set(err, UNI_EFORMAT,
			"uk_trace_buffer_writep points outside the trace buffer: is this the image "
			"that the guest runs?");
	used = uni_min(used, size);
	ret->buffer = malloc((size_t)used + 1);
	if (ret->buffer == NULL)
		return uni_err_nomem(err);
	ret->capacity = size;
	ret->buffer_size = (size_t)used;
	/* The guest writes nothing more if there is no room for a record's head. */
	ret->full = s->free < uni_ukt_head_size(ret->ptr_size);
	rc = used != 0 ? m->read(m->ctx, p->buffer, ret->buffer, (size_t)used) : 0;
	return rc == 0 ? 0
		       : uni_err_set(err, (enum uni_errcode) - rc,
				 "cannot read the guest's trace buffer at 0x%" PRIx64 ": %s",
				 p->buffer, uni_strerror(rc));
}

int uni_ukt_fetch(const struct uni_image *img, uint64_t bias, const struct uni_ring_source *memory,
	struct uni_ukt_file *ret, struct uni_err *err)
{
	struct places p;
	struct state s = { 0 };
	int rc = uni_ukt_image_defs(img, ret, err);

	if (rc != 0)
		return rc;
	ret->bias = bias;
	rc = find_buffers(img, bias, &p, err);
	if (rc == 0) {
		rc = read_state(memory, &p, ret->ptr_size, &s);
		if (rc != 0)
			(void)uni_err_set(err, (enum uni_errcode) - rc,
				"cannot read uk_trace_buffer_writep at 0x%" PRIx64 ": %s", p.writep,
				uni_strerror(rc));
	}
	if (rc == 0)
		rc = read_buffer(memory, &p, &s, ret, err);
	if (rc != 0)
		uni_ukt_file_free(ret);
	return rc;
}
