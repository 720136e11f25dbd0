/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/strtab.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"

#define CHUNK (256 * 1024)

struct entry {
	const char *s;
	uint32_t len;
};

/* Has the hash, so that probing and growing need not read the strings. */
struct slot {
	uint32_t nr; /* number + 1; 0 = free */
	uint32_t hash;
};

struct uni_strtab {
	UNI_VEC(struct entry) strs;
	UNI_VEC(char *) chunks; /* strings never move, so borrowed pointers stay good */
	size_t chunk_left;
	char *chunk_next;
	struct slot *slots;
	size_t nr_slots; /* power of two */
};

static size_t probe_slot(const struct uni_strtab *t, const char *s, size_t len, uint32_t hash)
{
	size_t i = hash & (t->nr_slots - 1);

	for (; t->slots[i].nr != 0; i = (i + 1) & (t->nr_slots - 1)) {
		const struct entry *e;

		if (t->slots[i].hash != hash)
			continue;
		e = &t->strs.v[t->slots[i].nr - 1];
		if (e->len == len && memcmp(e->s, s, len) == 0)
			break;
	}
	return i;
}

static bool rehash_strings(struct uni_strtab *t, size_t nr_slots)
{
	struct slot *slots = calloc(nr_slots, sizeof(*slots));

	if (slots == NULL)
		return false;
	for (size_t k = 0; k < t->nr_slots; k++) {
		size_t i = t->slots[k].hash & (nr_slots - 1);

		if (t->slots[k].nr == 0)
			continue;
		while (slots[i].nr != 0)
			i = (i + 1) & (nr_slots - 1);
		slots[i] = t->slots[k];
	}
	free(t->slots);
	t->slots = slots;
	t->nr_slots = nr_slots;
	return true;
}

struct uni_strtab *uni_strtab_create(void)
{
	struct uni_strtab *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	if (!rehash_strings(t, 256) || uni_strtab_add(t, "", 0) != 0) {
		uni_strtab_destroy(t);
		return NULL;
	}
	return t;
}

void uni_strtab_destroy(struct uni_strtab *t)
{
	if (t == NULL)
		return;
	uni_vec_foreach (c, &t->chunks)
		free(*c);
	uni_vec_free(&t->chunks);
	uni_vec_free(&t->strs);
	free(t->slots);
	free(t);
}

static char *store_string(struct uni_strtab *t, const char *s, size_t len)
{
	char *p;

	if (len + 1 > t->chunk_left) {
		size_t size = len + 1 > CHUNK ? len + 1 : CHUNK;
		char *c = malloc(size);

		if (c == NULL)
			return NULL;
		if (!uni_vec_push(&t->chunks, c)) {
			free(c);
			return NULL;
		}
		t->chunk_next = c;
		t->chunk_left = size;
	}
	p = t->chunk_next;
	memcpy(p, s, len);
	p[len] = '\0';
	t->chunk_next += len + 1;
	t->chunk_left -= len + 1;
	return p;
}

uint32_t uni_strtab_add(struct uni_strtab *t, const char *s, size_t len)
{
	uint32_t hash = (uint32_t)uni_hash_bytes(s, len, 0);
	size_t i = probe_slot(t, s, len, hash);
	struct entry e = { .len = (uint32_t)len };

	if (t->slots[i].nr != 0)
		return t->slots[i].nr - 1;
	if (len >= UINT32_MAX || t->strs.nr >= UNI_STR_NONE - 1)
		return UNI_STR_NONE;
	if ((t->strs.nr + 1) * 2 > t->nr_slots) {
		if (!rehash_strings(t, t->nr_slots * 2))
			return UNI_STR_NONE;
		i = probe_slot(t, s, len, hash);
	}
	e.s = store_string(t, s, len);
	if (e.s == NULL || !uni_vec_push(&t->strs, e))
		return UNI_STR_NONE;
	t->slots[i] = (struct slot){ (uint32_t)t->strs.nr, hash };
	return (uint32_t)t->strs.nr - 1;
}

uint32_t uni_strtab_find(const struct uni_strtab *t, const char *s, size_t len)
{
	size_t i = probe_slot(t, s, len, (uint32_t)uni_hash_bytes(s, len, 0));

	return t->slots[i].nr != 0 ? t->slots[i].nr - 1 : UNI_STR_NONE;
}

const char *uni_strtab_get(const struct uni_strtab *t, uint32_t id)
{
	return id < t->strs.nr ? t->strs.v[id].s : "";
}

size_t uni_strtab_len(const struct uni_strtab *t, uint32_t id)
{
	return id < t->strs.nr ? t->strs.v[id].len : 0;
}

uint32_t uni_strtab_nr(const struct uni_strtab *t)
{
	return (uint32_t)t->strs.nr;
}
