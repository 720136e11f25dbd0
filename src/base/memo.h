/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table from texts to numbers; it does not copy the texts. Made for parsers that meet the same
 * few thousand names millions of times. Finding the end of a name and hashing it are one loop, over
 * eight bytes at a time.
 */
#ifndef UNI_BASE_MEMO_H
#define UNI_BASE_MEMO_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define UNI_MEMO_NONE UINT32_MAX

struct uni_memo_key {
	const char *s; /* borrowed */
	uint32_t len, hash;
};

struct uni_memo_slot {
	struct uni_memo_key key; /* s NULL: free */
	uint32_t value;
};

struct uni_memo {
	struct uni_memo_slot *slots;
	size_t nr_slots, nr; /* slots: a power of two, or 0 */
};

/* A zeroed memo is empty. Keeps only the pointer to the text. false: out of memory. */
bool uni_memo_put(struct uni_memo *m, struct uni_memo_key key, uint32_t value);
void uni_memo_deinit(struct uni_memo *m);

/* Sets the highest bit of each of the eight bytes that equals c. */
static inline uint64_t uni_memo_match(uint64_t w, char c)
{
	const uint64_t low = 0x7f7f7f7f7f7f7f7fu;
	uint64_t x = w ^ 0x0101010101010101u * (unsigned char)c;

	return ~(((x & low) + low) | x | low);
}

static inline uint64_t uni_memo_mix(uint64_t h, uint64_t w)
{
	unsigned __int128 m =
		(unsigned __int128)(h ^ 0x9e3779b97f4a7c15u) * (w ^ 0xd6e8feb86659fd93u);

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* The first eight bytes as a number, the first byte lowest; bytes after the first `left` are 0. */
static inline uint64_t uni_memo_word(const char *s, size_t left)
{
	uint64_t w = 0;

	if (left >= sizeof(w))
		memcpy(&w, s, sizeof(w));
	else
		memcpy(&w, s, left);
	return le64toh(w);
}

/* The text from s to the first `c`, or all of it; len must be below 4 GiB. */
static inline struct uni_memo_key uni_memo_key_until(const char *s, size_t len, char c)
{
	uint64_t h = 0;
	size_t at = 0;

	for (;;) {
		size_t left = len - at;
		uint64_t w = uni_memo_word(s + at, left), hit = uni_memo_match(w, c);
		size_t n = hit != 0 ? (size_t)__builtin_ctzll(hit) / 8 : 8;

		if (n < 8 || left < 8) {
			n = n < left ? n : left;
			w = n < 8 ? w & ((UINT64_C(1) << n * 8) - 1) : w;
			at += n;
			h = uni_memo_mix(uni_memo_mix(h, w), at);
			return (struct uni_memo_key){ s, (uint32_t)at, (uint32_t)(h >> 16) };
		}
		h = uni_memo_mix(h, w);
		at += 8;
	}
}

/* Fetches the key's slot into the cache, while the caller makes other keys. */
static inline void uni_memo_prefetch(const struct uni_memo *m, struct uni_memo_key key)
{
	if (m->nr_slots != 0)
		__builtin_prefetch(&m->slots[key.hash & (m->nr_slots - 1)]);
}

static inline bool uni_memo_same(const char *a, const char *b, size_t len)
{
	uint64_t x, y;
	size_t i = 0;

	for (; i + 8 <= len; i += 8) {
		memcpy(&x, a + i, 8);
		memcpy(&y, b + i, 8);
		if (x != y)
			return false;
	}
	if (len < 8)
		return memcmp(a, b, len) == 0;
	memcpy(&x, a + len - 8, 8);
	memcpy(&y, b + len - 8, 8);
	return x == y;
}

/* Returns UNI_MEMO_NONE if it is not there. */
static inline uint32_t uni_memo_find(const struct uni_memo *m, struct uni_memo_key key)
{
	size_t mask = m->nr_slots - 1;

	if (m->nr_slots == 0)
		return UNI_MEMO_NONE;
	for (size_t i = key.hash & mask; m->slots[i].key.s != NULL; i = (i + 1) & mask) {
		const struct uni_memo_key *k = &m->slots[i].key;

		if (k->hash == key.hash && k->len == key.len && uni_memo_same(k->s, key.s, key.len))
			return m->slots[i].value;
	}
	return UNI_MEMO_NONE;
}

#endif
