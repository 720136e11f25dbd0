/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/vec.h"

#define MEMORY_MIN  (64u << 10)
#define SLOTS_MIN   1024u
#define CHAIN_BOOKS 32u /* bytes of a chain in the table and the index, about */
#define DISORDER_NS (5 * UNI_NSEC_PER_SEC)
#define NO_CHAIN    UINT32_MAX

struct entry {
	uint64_t t_ns, weight;
	uint32_t chain, pause_ns, thread;
};

struct chain {
	uint64_t weight, hash;
	uint64_t refs; /* entries that have it */
	uint32_t guest, vcpu;
	uint8_t stop, state;
	uint16_t nr;
	uint64_t pc[]; /* nr of them, then nr flags */
};

struct uni_history {
	size_t chain_bytes, chain_bytes_max;
	UNI_VEC(struct chain *) chain; /* NULL: free */
	UNI_VEC(uint32_t) spare;       /* free numbers */
	uint32_t *slot;		       /* open addressing: number of a chain, or NO_CHAIN */
	size_t nr_slots, nr_used;      /* nr_slots is a power of two */
	bool stale;		       /* slots name chains that were dropped */
	struct entry *entry;	       /* a ring */
	size_t nr_entries;	       /* its size */
	uint64_t first, next;	       /* [first, next) are kept; index modulo nr_entries */
	uint64_t seen, forgotten;
	uint64_t newest_ns;
};

static const uint8_t *chain_flags(const struct chain *c)
{
	return (const uint8_t *)(c->pc + c->nr);
}

static size_t chain_size(uint16_t nr)
{
	return sizeof(struct chain) + nr * (sizeof(uint64_t) + 1u);
}

static uint64_t hash_of(const struct uni_sample *s)
{
	uint64_t seed = (uint64_t)s->guest << 48 ^ (uint64_t)s->vcpu << 16 ^
			(uint64_t)s->state << 8 ^ s->stop;

	return s->nr == 0 ? uni_hash_pair(seed, 0)
			  : uni_hash_bytes(s->pc, s->nr * sizeof(*s->pc), seed);
}

static bool same_chain(const struct chain *c, const struct uni_sample *s, uint64_t hash)
{
	if (c == NULL || c->hash != hash || c->nr != s->nr || c->guest != s->guest ||
		c->vcpu != s->vcpu || c->state != s->state || c->stop != s->stop)
		return false;
	return s->nr == 0 || (memcmp(c->pc, s->pc, s->nr * sizeof(*s->pc)) == 0 &&
				     memcmp(chain_flags(c), s->flags, s->nr) == 0);
}

static void put_slot(struct uni_history *h, uint32_t number)
{
	size_t i = h->chain.v[number]->hash & (h->nr_slots - 1);

	while (h->slot[i] != NO_CHAIN)
		i = (i + 1) & (h->nr_slots - 1);
	h->slot[i] = number;
}

/* Makes the index anew for the chains that there are; false: out of memory, nothing changed. */
static bool reindex_chains(struct uni_history *h, size_t nr_slots)
{
	uint32_t *slot = malloc(nr_slots * sizeof(*slot));

	if (slot == NULL)
		return false;
	memset(slot, 0xff, nr_slots * sizeof(*slot));
	free(h->slot);
	h->slot = slot;
	h->nr_slots = nr_slots;
	h->stale = false;
	for (size_t i = 0; i < h->chain.nr; i++) {
		if (h->chain.v[i] != NULL)
			put_slot(h, (uint32_t)i);
	}
	return true;
}

struct uni_history *uni_history_create(size_t memory_bytes)
{
	struct uni_history *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	memory_bytes = uni_max(memory_bytes, (size_t)MEMORY_MIN);
	h->chain_bytes_max = memory_bytes / 2;
	h->nr_entries = memory_bytes / 2 / sizeof(*h->entry);
	/* Pages come as they are used. */
	h->entry = calloc(h->nr_entries, sizeof(*h->entry));
	if (h->entry == NULL || !reindex_chains(h, SLOTS_MIN)) {
		uni_history_destroy(h);
		return NULL;
	}
	return h;
}

void uni_history_destroy(struct uni_history *h)
{
	if (h == NULL)
		return;
	for (size_t i = 0; i < h->chain.nr; i++)
		free(h->chain.v[i]);
	uni_vec_free(&h->chain);
	uni_vec_free(&h->spare);
	free(h->slot);
	free(h->entry);
	free(h);
}

static struct entry *entry_at(const struct uni_history *h, uint64_t i)
{
	return &h->entry[i % h->nr_entries];
}

static void drop_oldest(struct uni_history *h)
{
	h->chain.v[entry_at(h, h->first)->chain]->refs--;
	h->first++;
}

static void drop_chain(struct uni_history *h, uint32_t number)
{
	struct chain *c = h->chain.v[number];

	h->chain_bytes -= chain_size(c->nr) + CHAIN_BOOKS;
	h->forgotten += c->weight;
	h->nr_used--;
	h->stale = true;
	free(c);
	h->chain.v[number] = NULL;
	/* There is room: each number is in it once at most. */
	h->spare.v[h->spare.nr++] = number;
}

/* Makes room for a chain of that size, and some more, so that this is rare. Drops chains without
 * samples; if needed, first drops the oldest quarter of the samples. */
static bool make_room(struct uni_history *h, size_t size)
{
	size_t enough = h->chain_bytes_max / 4 * 3;

	if (size <= h->chain_bytes_max - h->chain_bytes)
		return true;
	for (;;) {
		for (size_t i = 0; i < h->chain.nr; i++) {
			if (h->chain.v[i] != NULL && h->chain.v[i]->refs == 0)
				drop_chain(h, (uint32_t)i);
		}
		if (h->first == h->next || h->chain_bytes <= enough)
			break;
		for (uint64_t n = (h->next - h->first + 3) / 4; n != 0; n--)
			drop_oldest(h);
	}
	return size <= h->chain_bytes_max - h->chain_bytes;
}

static struct chain *chain_new(const struct uni_sample *s, uint64_t hash)
{
	struct chain *c = malloc(chain_size(s->nr));

	if (c == NULL)
		return NULL;
	*c = (struct chain){ .hash = hash,
		.guest = s->guest,
		.vcpu = s->vcpu,
		.stop = s->stop,
		.state = s->state,
		.nr = s->nr };
	if (s->nr != 0) {
		memcpy(c->pc, s->pc, s->nr * sizeof(*s->pc));
		memcpy(c->pc + s->nr, s->flags, s->nr);
	}
	return c;
}

static uint32_t add_chain(struct uni_history *h, const struct uni_sample *s, uint64_t hash)
{
	size_t size = chain_size(s->nr) + CHAIN_BOOKS;
	bool full;
	struct chain *c;
	uint32_t number;

	if (!make_room(h, size))
		return NO_CHAIN;
	full = (h->nr_used + 1) * 2 > h->nr_slots;
	if ((h->stale || full) && !reindex_chains(h, full ? h->nr_slots * 2 : h->nr_slots))
		return NO_CHAIN;
	if (!uni_vec_grow(&h->chain, 1) || !uni_vec_grow(&h->spare, h->chain.nr + 1 - h->spare.nr))
		return NO_CHAIN;
	c = chain_new(s, hash);
	if (c == NULL)
		return NO_CHAIN;
	number = h->spare.nr != 0 ? h->spare.v[--h->spare.nr] : (uint32_t)h->chain.nr++;
	h->chain.v[number] = c;
	h->chain_bytes += size;
	h->nr_used++;
	put_slot(h, number);
	return number;
}

static uint32_t find_chain(struct uni_history *h, const struct uni_sample *s)
{
	uint64_t hash = hash_of(s);
	size_t i = hash & (h->nr_slots - 1);

	for (; h->slot[i] != NO_CHAIN; i = (i + 1) & (h->nr_slots - 1)) {
		if (same_chain(h->chain.v[h->slot[i]], s, hash))
			return h->slot[i];
	}
	return add_chain(h, s, hash);
}

int uni_history_add(struct uni_history *h, const struct uni_sample *s)
{
	uint32_t chain;

	if (s->nr > UNI_CHAIN_MAX)
		return -UNI_EINVAL;
	chain = find_chain(h, s);
	if (chain == NO_CHAIN)
		return -UNI_ENOMEM;
	if (h->next - h->first == h->nr_entries)
		drop_oldest(h);
	*entry_at(h, h->next++) = (struct entry){ .t_ns = s->t_ns,
		.weight = s->weight,
		.chain = chain,
		.pause_ns = s->pause_ns,
		.thread = s->thread };
	h->chain.v[chain]->refs++;
	h->chain.v[chain]->weight += s->weight;
	h->seen++;
	h->newest_ns = uni_max(h->newest_ns, s->t_ns);
	return 0;
}

void uni_history_clear(struct uni_history *h)
{
	for (size_t i = 0; i < h->chain.nr; i++)
		free(h->chain.v[i]);
	h->chain.nr = h->spare.nr = h->nr_used = h->chain_bytes = 0;
	memset(h->slot, 0xff, h->nr_slots * sizeof(*h->slot));
	h->stale = false;
	h->first = h->next = 0;
	h->seen = h->forgotten = h->newest_ns = 0;
}

void uni_history_info(const struct uni_history *h, struct uni_history_info *ret)
{
	*ret = (struct uni_history_info){ .seen = h->seen,
		.kept = h->next - h->first,
		.forgotten = h->forgotten,
		.oldest_ns = h->first != h->next ? entry_at(h, h->first)->t_ns : 0,
		.newest_ns = h->newest_ns };
}

size_t uni_history_nr_chains(const struct uni_history *h)
{
	return h->chain.nr;
}

bool uni_history_chain(const struct uni_history *h, size_t i, struct uni_history_chain *ret)
{
	const struct chain *c = i < h->chain.nr ? h->chain.v[i] : NULL;

	if (c == NULL)
		return false;
	*ret = (struct uni_history_chain){ .weight = c->weight,
		.guest = c->guest,
		.vcpu = c->vcpu,
		.stop = c->stop,
		.state = c->state,
		.nr = c->nr,
		.pc = c->pc,
		.flags = chain_flags(c) };
	return true;
}

/* From the newest backwards: a window is short, the history long. */
void uni_history_weigh(
	const struct uni_history *h, uint64_t since_ns, uint64_t until_ns, uint64_t *ret)
{
	/* Samples of several vCPUs come in batches, so times are not quite in order. */
	uint64_t stop_ns = since_ns != 0 ? since_ns : until_ns;

	stop_ns = stop_ns > DISORDER_NS ? stop_ns - DISORDER_NS : 0;
	for (size_t i = 0; i < h->chain.nr; i++)
		ret[i] = since_ns == 0 && h->chain.v[i] != NULL ? h->chain.v[i]->weight : 0;
	for (uint64_t i = h->next; i != h->first;) {
		const struct entry *e = entry_at(h, --i);

		if (e->t_ns < stop_ns)
			break;
		if (since_ns == 0 && e->t_ns > until_ns)
			ret[e->chain] -= e->weight;
		else if (since_ns != 0 && e->t_ns > since_ns && e->t_ns <= until_ns)
			ret[e->chain] += e->weight;
	}
}

int uni_history_each(
	const struct uni_history *h, int (*fn)(void *ctx, const struct uni_sample *s), void *ctx)
{
	int rc = 0;

	for (uint64_t i = h->first; i != h->next && rc == 0; i++) {
		const struct entry *e = entry_at(h, i);
		const struct chain *c = h->chain.v[e->chain];
		struct uni_sample s = { .t_ns = e->t_ns,
			.weight = e->weight,
			.guest = c->guest,
			.vcpu = c->vcpu,
			.thread = e->thread,
			.pause_ns = e->pause_ns,
			.stop = c->stop,
			.state = c->state,
			.nr = c->nr,
			.pc = c->pc,
			.flags = chain_flags(c) };

		rc = fn(ctx, &s);
	}
	return rc;
}
