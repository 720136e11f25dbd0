/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/places.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "obj/debug.h"
#include "obj/demangle.h"
#include "recording/folder.h"

#define ADDRESSES_MAX ((size_t)1 << 22)

/* A set of addresses; 0 is a free slot, and never one of them. */
struct addresses {
	uint64_t *slot;
	size_t nr, nr_slots; /* nr_slots is a power of two */
	const struct uni_recording *rec;
	const char *id; /* of the image that has these addresses */
};

static size_t probe_address(const struct addresses *a, uint64_t addr)
{
	size_t i = (size_t)uni_hash_pair(addr, 0) & (a->nr_slots - 1);

	while (a->slot[i] != 0 && a->slot[i] != addr)
		i = (i + 1) & (a->nr_slots - 1);
	return i;
}

static bool grow_addresses(struct addresses *a, size_t nr_slots)
{
	struct addresses bigger = { .slot = calloc(nr_slots, sizeof(*a->slot)),
		.nr_slots = nr_slots };

	if (bigger.slot == NULL)
		return false;
	for (size_t i = 0; i < a->nr_slots; i++) {
		if (a->slot[i] != 0)
			bigger.slot[probe_address(&bigger, a->slot[i])] = a->slot[i];
	}
	free(a->slot);
	a->slot = bigger.slot;
	a->nr_slots = nr_slots;
	return true;
}

static bool add_address(struct addresses *a, uint64_t addr)
{
	size_t i;

	if (addr == 0 || a->nr == ADDRESSES_MAX)
		return true;
	if ((a->nr + 1) * 2 > a->nr_slots &&
		!grow_addresses(a, a->nr_slots != 0 ? 2 * a->nr_slots : 1024))
		return false;
	i = probe_address(a, addr);
	if (a->slot[i] == 0) {
		a->slot[i] = addr;
		a->nr++;
	}
	return true;
}

/* As the profile will ask: callers at the call. */
static bool add_chain(
	struct addresses *a, const uint64_t *pc, const uint8_t *flags, size_t nr, uint64_t bias)
{
	for (size_t i = 0; i < nr; i++) {
		bool exact = i == 0 || (flags[i] & UNI_FRAME_EXACT) != 0;

		if (!add_address(a, pc[i] - bias - (exact ? 0 : 1)))
			return false;
	}
	return true;
}

static int add_frames(
	struct addresses *a, uint32_t guest, const uint64_t *pc, const uint8_t *flags, size_t nr)
{
	const struct uni_record_meta *meta = uni_recording_guest(a->rec, guest).meta;
	bool ok = strcmp(meta->image_id, a->id) != 0 || add_chain(a, pc, flags, nr, meta->bias);

	for (uint32_t i = 0; ok && i < meta->nr_more; i++)
		ok = strcmp(meta->more[i].id, a->id) != 0 ||
		     add_chain(a, pc, flags, nr, meta->more[i].bias);
	return ok ? 0 : -UNI_ENOMEM;
}

static int add_sample(void *ctx, const struct uni_sample *s)
{
	return add_frames(ctx, s->guest, s->pc, s->flags, s->nr);
}

static int add_exit(void *ctx, const struct uni_stream_exit *e)
{
	return add_frames(ctx, e->guest, e->pc, e->flags, e->nr);
}

/* The addresses to the front of the slots. */
static void compact_addresses(struct addresses *a)
{
	size_t nr = 0;

	for (size_t i = 0; i < a->nr_slots; i++) {
		if (a->slot[i] != 0)
			a->slot[nr++] = a->slot[i];
	}
}

/* Adds the first addresses of functions without a name: their line is shown. */
static bool add_starts(struct addresses *a, const struct uni_symtab *symtab)
{
	_cleanup_free_ uint64_t *addr = malloc(a->nr * sizeof(*addr) + 1);
	const char *name;
	uint64_t off;
	size_t nr = 0;

	for (size_t i = 0; addr != NULL && i < a->nr_slots; i++) {
		if (a->slot[i] != 0 && uni_symtab_lookup(symtab, a->slot[i], &name, &off) &&
			uni_demangle_is_anonymous(name))
			addr[nr++] = a->slot[i] - off;
	}
	for (size_t i = 0; i < nr; i++) {
		if (!add_address(a, addr[i]))
			return false;
	}
	return addr != NULL;
}

static int collect_addresses(
	const char *path, const struct uni_symtab *symtab, struct addresses *a, struct uni_err *err)
{
	struct uni_recording *rec = NULL;
	int rc = uni_recording_open(path, &rec, err);

	if (rc != 0)
		return rc;
	a->rec = rec;
	rc = uni_recording_each(rec, add_sample, a, NULL, err);
	if (rc == 0)
		rc = uni_recording_each_exit(rec, add_exit, a, NULL, err);
	uni_recording_close(rec);
	if (rc == 0 && !add_starts(a, symtab))
		rc = -UNI_ENOMEM;
	compact_addresses(a);
	return rc != -UNI_ENOMEM ? rc : uni_err_nomem(err);
}

static int write_places(
	const char *path, struct uni_symtab *symtab, struct addresses *a, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	int rc = uni_symtab_keep_places(symtab, a->slot, a->nr, err);

	if (rc == 0)
		rc = uni_sdir_open(path, &fd, err);
	return rc == 0 ? uni_sdir_add_symbols(path, fd, symtab, err) : rc;
}

int uni_session_keep_symbols(const char *path, struct uni_symtab *symtab, struct uni_err *err)
{
	struct addresses a = { .id = uni_symtab_id(symtab) };
	_cleanup_close_ int fd = -1;
	int rc = collect_addresses(path, symtab, &a, err);

	if (rc == 0)
		rc = uni_symtab_keep_symbols(symtab, a.slot, a.nr, err);
	if (rc == 0)
		rc = uni_sdir_open(path, &fd, err);
	if (rc == 0)
		rc = uni_sdir_add_symbols(path, fd, symtab, err);
	free(a.slot);
	return rc;
}

int uni_session_add_places(const char *path, const struct uni_image *img,
	const struct uni_image_search *search, const char **note_ret, struct uni_err *err)
{
	struct addresses a = { .id = uni_image_id(img) };
	struct uni_symtab *symtab = NULL;
	struct uni_debug *debug = NULL;
	int rc = uni_debug_of_image(img, search, &debug, err);

	*note_ret = NULL;
	if (rc != 0)
		return rc;
	rc = uni_symtab_of_image(img, &symtab, err);
	if (rc != 0) {
		uni_debug_destroy(debug);
		return rc;
	}
	uni_symtab_set_debug(symtab, debug);
	rc = collect_addresses(path, symtab, &a, err);
	if (rc == 0)
		rc = write_places(path, symtab, &a, err);
	*note_ret = uni_debug_note(debug);
	uni_symtab_destroy(symtab);
	free(a.slot);
	return rc;
}
