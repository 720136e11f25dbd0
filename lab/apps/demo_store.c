/* SPDX-License-Identifier: BSD-2-Clause */
/* Hash table and sorting of the demo. */
#include "demo.h"

LAB_FUNC static uint32_t hash_key(const char *key)
{
	uint32_t h = 2166136261u;

	while (*key)
		h = (h ^ (unsigned char)*key++) * 16777619u;
	return h;
}

LAB_FUNC static bool key_equal(const char *a, const char *b)
{
	return lab_strcmp(a, b) == 0;
}

LAB_FUNC static struct item *bucket_find(struct item *item, const char *key)
{
	while (item && !key_equal(item->key, key))
		item = item->next;
	return item;
}

LAB_FUNC struct item *store_lookup(struct store *s, const char *key)
{
	return bucket_find(s->bucket[hash_key(key) % NR_BUCKETS], key);
}

static void copy_text(char *dst, const char *src, size_t size)
{
	size_t i = 0;

	for (; src[i] && i + 1 < size; i++)
		dst[i] = src[i];
	dst[i] = '\0';
}

LAB_FUNC static struct item *item_create(struct store *s, const char *key)
{
	struct item **bucket = &s->bucket[hash_key(key) % NR_BUCKETS];
	struct item *item;

	if (s->nr_items == NR_ITEMS)
		return NULL;
	item = &s->items[s->nr_items++];
	copy_text(item->key, key, KEY_SIZE);
	item->next = *bucket;
	*bucket = item;
	return item;
}

LAB_FUNC struct item *store_insert(struct store *s, const char *key, const char *value)
{
	struct item *item = store_lookup(s, key);

	if (!item)
		item = item_create(s, key);
	if (!item)
		return NULL;
	copy_text(item->value, value, VALUE_SIZE);
	item->version = ++s->version;
	return item;
}

static bool starts_with(const char *s, const char *prefix)
{
	while (*prefix && *s == *prefix) {
		s++;
		prefix++;
	}
	return !*prefix;
}

LAB_FUNC unsigned store_collect(
	struct store *s, const char *prefix, const struct item **ret, unsigned max)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < s->nr_items && nr < max; i++) {
		if (starts_with(s->items[i].key, prefix))
			ret[nr++] = &s->items[i];
	}
	return nr;
}

LAB_FUNC unsigned store_count(const struct store *s)
{
	return s->nr_items;
}

LAB_FUNC static int item_compare(const struct item *a, const struct item *b)
{
	return lab_strcmp(a->key, b->key);
}

static void item_swap(const struct item **a, const struct item **b)
{
	const struct item *t = *a;

	*a = *b;
	*b = t;
}

LAB_FUNC static int sort_partition(const struct item **items, int first, int last)
{
	const struct item *pivot = items[last];
	int at = first;

	for (int i = first; i < last; i++) {
		if (item_compare(items[i], pivot) < 0)
			item_swap(&items[i], &items[at++]);
	}
	item_swap(&items[at], &items[last]);
	return at;
}

LAB_FUNC void sort_items(const struct item **items, int first, int last)
{
	int at;

	if (first >= last)
		return;
	at = sort_partition(items, first, last);
	sort_items(items, first, at - 1);
	sort_items(items, at + 1, last);
}

LAB_FUNC static void store_unlink_all(struct store *s)
{
	for (unsigned i = 0; i < NR_BUCKETS; i++)
		s->bucket[i] = NULL;
}

LAB_FUNC static void store_relink(struct store *s, struct item *item)
{
	struct item **bucket = &s->bucket[hash_key(item->key) % NR_BUCKETS];

	item->next = *bucket;
	*bucket = item;
}

/* Drops the older half of what is stored once it is nearly full, and rehashes the rest. */
LAB_FUNC void compact_store(struct store *s)
{
	uint64_t oldest = s->version - s->nr_items / 2;
	unsigned kept = 0;

	store_unlink_all(s);
	for (unsigned i = 0; i < s->nr_items; i++) {
		if (s->nr_items > NR_ITEMS * 3 / 4 && s->items[i].version < oldest)
			continue;
		if (kept != i)
			s->items[kept] = s->items[i];
		store_relink(s, &s->items[kept++]);
	}
	s->nr_items = kept;
}
