/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/namer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/frame.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/vec.h"
#include "obj/demangle.h"

#define SUFFIX_MAX 300 /* "+0xoff (file.c:12)" */
#define MARK_MAX   6

/* Its frames are nr entries of the pool. */
struct known {
	uint64_t pc;
	uint32_t first;
	uint16_t nr; /* 0 = free slot */
	uint8_t flags;
};

struct uni_namer {
	struct uni_namer_from from;
	uint32_t image; /* string; of the address that is being named */
	struct known *known;
	size_t nr_slots, nr_known; /* nr_slots is a power of two */
	UNI_VEC(uint32_t) pool;	   /* frames */
};

/* Facts about one address before it becomes frames. */
struct found {
	uint64_t pc, svma, off;
	const char *symbol; /* NULL: none covers it */
	bool exact, marked, kernel;
};

static size_t known_probe(const struct uni_namer *n, uint64_t pc, unsigned flags)
{
	size_t mask = n->nr_slots - 1, i = (size_t)(uni_hash_pair(pc, flags) >> 7) & mask;

	while (n->known[i].nr != 0 && (n->known[i].pc != pc || n->known[i].flags != flags))
		i = (i + 1) & mask;
	return i;
}

static bool known_grow(struct uni_namer *n, size_t nr_slots)
{
	struct known *old = n->known;
	size_t nr_old = n->nr_slots;

	n->known = calloc(nr_slots, sizeof(*n->known));
	if (n->known == NULL) {
		n->known = old;
		return false;
	}
	n->nr_slots = nr_slots;
	for (size_t i = 0; i < nr_old; i++) {
		if (old[i].nr != 0)
			n->known[known_probe(n, old[i].pc, old[i].flags)] = old[i];
	}
	free(old);
	return true;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* "/boot/app.dbg" is shown as "app.dbg". */
static uint32_t image_string(struct uni_profile *p, const char *path)
{
	const char *base = base_of(path);
	char clean[256];
	size_t len = uni_text_clean(clean, sizeof(clean), base, strlen(base));

	return uni_strtab_add(uni_profile_strings(p), clean, len);
}

struct uni_namer *uni_namer_create(const struct uni_namer_from *from)
{
	struct uni_namer *n = calloc(1, sizeof(*n));

	if (n == NULL)
		return NULL;
	n->from = *from;
	n->image = image_string(from->p, from->image);
	if (n->image == UNI_STR_NONE || !known_grow(n, 1024)) {
		uni_namer_destroy(n);
		return NULL;
	}
	return n;
}

void uni_namer_destroy(struct uni_namer *n)
{
	if (n == NULL)
		return;
	free(n->known);
	uni_vec_free(&n->pool);
	free(n);
}

static bool push_named_frame(struct uni_namer *n, const struct uni_frame *f)
{
	uint32_t frame = f->name != UNI_STR_NONE ? uni_profile_frame(n->from.p, f) : UNI_NODE_NONE;

	return frame != UNI_NODE_NONE && uni_vec_push(&n->pool, frame);
}

/* Names the frame, and marks a guess; the bare name is kept, too. */
static void put_frame_name(
	struct uni_namer *n, const struct found *at, struct uni_frame *f, char *text, size_t len)
{
	struct uni_strtab *strings = uni_profile_strings(n->from.p);

	if (at->marked || at->kernel) {
		if (f->plain == 0)
			f->plain = uni_strtab_add(strings, text, len);
		if (f->plain == UNI_STR_NONE)
			f->plain = 0;
		len += (size_t)snprintf(
			text + len, MARK_MAX, "%s", at->kernel ? UNI_KERNEL_MARK : " ?");
		f->guess = at->marked;
	}
	f->name = uni_strtab_add(strings, text, len);
}

static bool push_address(struct uni_namer *n, const struct found *at)
{
	struct uni_frame f = { .kind = UNI_FK_UNKNOWN, .addr = at->pc };
	char text[32 + MARK_MAX];
	int len = snprintf(text, 32, "0x%" PRIx64, at->pc);

	put_frame_name(n, at, &f, text, (size_t)len);
	return push_named_frame(n, &f);
}

/* A frame of the kernel below a process. Its address may have no name. */
static bool push_kernel(struct uni_namer *n, const struct found *at)
{
	struct uni_frame f = { .kind = UNI_FK_KERNEL, .image = n->image };
	char text[UNI_TEXT_MAX + SUFFIX_MAX + MARK_MAX];
	size_t len;

	if (at->pc == 0)
		len = (size_t)snprintf(text, SUFFIX_MAX, "[kernel]");
	else if (at->symbol == NULL || n->from.naming->addresses)
		len = (size_t)snprintf(text, SUFFIX_MAX, "0x%" PRIx64, at->pc);
	else
		len = uni_text_clean(text, UNI_TEXT_MAX, at->symbol, UNI_TEXT_MAX);
	if (at->symbol != NULL)
		f.addr = at->pc - (at->exact ? 0 : 1) - (n->from.naming->sites ? 0 : at->off);
	if (at->symbol != NULL && n->from.naming->offsets)
		len += (size_t)snprintf(
			text + len, SUFFIX_MAX, "+0x%" PRIx64, at->off + (at->exact ? 0 : 1));
	put_frame_name(n, at, &f, text, len);
	return push_named_frame(n, &f);
}

static bool make_kernel_frame(struct uni_namer *n, struct found *at)
{
	n->image = image_string(n->from.p, UNI_KERNEL_IMAGE);
	at->kernel = true;
	at->marked = false;
	if (n->from.symtab == NULL || at->pc == 0 ||
		!uni_symtab_lookup(n->from.symtab, at->svma, &at->symbol, &at->off))
		at->symbol = NULL;
	return n->image != UNI_STR_NONE && push_kernel(n, at);
}

/* The name as it is shown, clean; its length. */
static size_t put_name(const struct uni_namer *n, const char *name, char text[UNI_TEXT_MAX])
{
	if (!n->from.naming->mangled && !n->from.names_only &&
		uni_demangle(name, text, UNI_TEXT_MAX))
		return strlen(text);
	return uni_text_clean(text, UNI_TEXT_MAX, name, UNI_TEXT_MAX);
}

/* Adds the line to the name and to the frame, which also keeps the bare name. */
static size_t put_line(struct uni_namer *n, const struct uni_place *place, struct uni_frame *f,
	char *text, size_t len)
{
	struct uni_strtab *strings = uni_profile_strings(n->from.p);

	if (place->file == NULL || place->line == 0)
		return len;
	f->plain = uni_strtab_add(strings, text, len);
	f->file = uni_strtab_add(strings, place->file, strlen(place->file));
	if (f->plain == UNI_STR_NONE || f->file == UNI_STR_NONE)
		f->plain = f->file = 0;
	f->line = place->line;
	return len + (size_t)snprintf(text + len, SUFFIX_MAX, " (%.255s:%" PRIu32 ")",
			     base_of(place->file), place->line);
}

/* A function that has no name in the source has its line instead. */
static size_t put_start_line(
	struct uni_namer *n, const struct found *at, struct uni_frame *f, char *text, size_t len)
{
	struct uni_place place[UNI_INLINE_MAX];
	size_t nr = 0;

	if (uni_demangle_is_anonymous(at->symbol))
		nr = uni_symtab_places(n->from.symtab, at->svma - at->off, place);
	return nr != 0 ? put_line(n, &place[nr - 1], f, text, len) : len;
}

/* The function with that code; NULL for a name: the one of the place. */
static bool push_function(
	struct uni_namer *n, const struct found *at, const struct uni_place *place)
{
	const char *name = at->symbol != NULL ? at->symbol : place->function;
	struct uni_frame f = { .kind = UNI_FK_GUEST, .image = n->image };
	char text[UNI_TEXT_MAX + 2 * SUFFIX_MAX + MARK_MAX];
	size_t len;

	if (name == NULL)
		return push_address(n, at);
	len = put_name(n, name, text);
	if (n->from.names_only) {
		f.kind = (uint8_t)uni_frame_kind_of(text);
		f.image = 0;
	} else if (at->symbol != NULL) {
		f.addr = at->svma + n->from.bias - (n->from.naming->sites ? 0 : at->off);
		if (n->from.naming->offsets)
			len += (size_t)snprintf(text + len, SUFFIX_MAX, "+0x%" PRIx64,
				at->off + (at->exact ? 0 : 1));
	}
	if (n->from.naming->lines)
		len = put_line(n, place, &f, text, len);
	else if (at->symbol != NULL && !n->from.names_only)
		len = put_start_line(n, at, &f, text, len);
	put_frame_name(n, at, &f, text, len);
	return push_named_frame(n, &f);
}

static bool push_inlined(struct uni_namer *n, const struct found *at, const struct uni_place *place)
{
	struct uni_frame f = { .kind = UNI_FK_INLINED, .image = n->image };
	char text[UNI_TEXT_MAX + 2 * SUFFIX_MAX + MARK_MAX];
	size_t len = put_name(n, place->function != NULL ? place->function : "[inlined]", text);

	if (n->from.naming->sites)
		f.addr = at->svma + n->from.bias;
	if (n->from.naming->lines)
		len = put_line(n, place, &f, text, len);
	put_frame_name(n, at, &f, text, len);
	return push_named_frame(n, &f);
}

/* A guest may have several images. */
static bool pick_image(struct uni_namer *n, uint64_t svma)
{
	const struct uni_symtab *whole = n->from.symtab, *part;
	bool is_first;

	part = uni_symtab_part(whole, svma, &svma);
	is_first = strcmp(uni_symtab_id(part), uni_symtab_id(whole)) == 0;
	n->image = image_string(n->from.p, is_first ? n->from.image : uni_symtab_path(part));
	return n->image != UNI_STR_NONE;
}

/* Adds the frames of one address to the pool. */
static bool make_frames(struct uni_namer *n, uint64_t pc, unsigned flags)
{
	const struct uni_naming *how = n->from.naming;
	bool exact = (flags & UNI_FRAME_EXACT) != 0;
	struct found at = { .pc = pc,
		.svma = (exact ? pc : pc - 1) - n->from.bias,
		.exact = exact,
		.marked = (flags & UNI_FRAME_GUESS) != 0 && !how->unmarked };
	struct uni_place place[UNI_INLINE_MAX];
	const struct uni_place none = { 0 };
	size_t nr = 0;
	bool guess;

	if ((flags & UNI_FRAME_KERNEL) != 0)
		return make_kernel_frame(n, &at);
	if (n->from.symtab == NULL || (how->addresses && !n->from.names_only))
		return push_address(n, &at);
	if (!n->from.names_only && !pick_image(n, at.svma))
		return false;
	if (!uni_symtab_lookup(n->from.symtab, at.svma, &at.symbol, &at.off)) {
		at.symbol = NULL;
		/* No call before it: a signal handler's return address, put there by the kernel. */
		if (!exact && uni_symtab_lookup(n->from.symtab, at.svma + 1, &at.symbol, &at.off) &&
			at.off == 0) {
			at.exact = true;
			at.svma++;
		} else {
			at.symbol = NULL;
		}
	}
	guess = at.symbol == NULL || uni_symtab_is_guess(n->from.symtab, at.svma);
	if (!n->from.names_only && (how->inlined || how->lines || guess))
		nr = uni_symtab_places(n->from.symtab, at.svma, place);
	if (guess && at.symbol != NULL && nr != 0 && place[nr - 1].function != NULL &&
		strcmp(at.symbol, place[nr - 1].function) != 0)
		at.symbol = NULL;
	if (!push_function(n, &at, nr != 0 ? &place[nr - 1] : &none))
		return false;
	for (size_t i = nr != 0 ? nr - 1 : 0; how->inlined && i-- != 0;) {
		if (!push_inlined(n, &at, &place[i]))
			return false;
	}
	return true;
}

const uint32_t *uni_namer_frames(struct uni_namer *n, uint64_t pc, unsigned flags, size_t *nr_ret)
{
	const struct known *k = &n->known[known_probe(n, pc, flags)];
	size_t first = n->pool.nr, nr;

	if (k->nr != 0) {
		*nr_ret = k->nr;
		return &n->pool.v[k->first];
	}
	if (((n->nr_known + 1) * 2 > n->nr_slots && !known_grow(n, n->nr_slots * 2)) ||
		first > UINT32_MAX - UNI_INLINE_MAX || !make_frames(n, pc, flags))
		return NULL;
	nr = n->pool.nr - first;
	n->known[known_probe(n, pc, flags)] = (struct known){
		.pc = pc, .first = (uint32_t)first, .nr = (uint16_t)nr, .flags = (uint8_t)flags
	};
	n->nr_known++;
	*nr_ret = nr;
	return &n->pool.v[first];
}
