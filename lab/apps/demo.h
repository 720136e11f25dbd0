/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the demo's key-value server. */
#ifndef LAB_DEMO_H
#define LAB_DEMO_H

#include "lab.h"

#define KEY_SIZE   24
#define VALUE_SIZE 64
#define TEXT_SIZE  768
#define NR_BUCKETS 64
#define NR_ITEMS   512
#define RANGE_MAX  48

struct text {
	unsigned used;
	char data[TEXT_SIZE];
};

struct rng {
	uint64_t state;
};

struct request {
	char verb[8], key[KEY_SIZE], value[VALUE_SIZE];
};

struct item {
	struct item *next;
	uint64_t version;
	char key[KEY_SIZE], value[VALUE_SIZE];
};

struct store {
	struct item *bucket[NR_BUCKETS];
	struct item items[NR_ITEMS];
	unsigned nr_items;
	uint64_t version;
};

/* demo_text.c: requests in, replies out */
void text_clear(struct text *t);
void text_char(struct text *t, char c);
void text_append(struct text *t, const char *s);
bool request_parse(const struct text *text, struct request *ret);
void json_string(struct text *t, const char *s);
void json_number(struct text *t, uint64_t n);
void json_item(struct text *t, const struct item *item);
void json_list(struct text *t, const struct item *const *items, unsigned nr);
uint32_t checksum_update(uint32_t sum, const char *data, unsigned size);
void client_key(struct rng *rng, struct text *key);
void client_value(struct rng *rng, struct text *value);
void client_request(struct rng *rng, struct text *text);

/* demo_store.c */
struct item *store_lookup(struct store *s, const char *key);
struct item *store_insert(struct store *s, const char *key, const char *value);
unsigned store_collect(struct store *s, const char *prefix, const struct item **ret, unsigned max);
unsigned store_count(const struct store *s);
void compact_store(struct store *s);
void sort_items(const struct item **items, int first, int last);

#endif
