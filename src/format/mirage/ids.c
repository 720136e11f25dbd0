/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/hash.h"
#include "base/vec.h"
#include "format/mirage/mirage.h"

/* Top digit of the ids made here; neither addresses nor counters have it. */
#define OURS 0x10ULL

struct pair {
	uint64_t id, now;
	uint32_t node; /* the newest promise of that id */
	bool used;
};

struct uni_mirage_ids {
	struct pair *slots;
	size_t nr_slots, nr;
	uint64_t made;
	UNI_VEC(uint32_t) heirs; /* by node: a step towards its last successor, or itself */
};

struct uni_mirage_ids *uni_mirage_ids_create(void)
{
	struct uni_mirage_ids *ids = calloc(1, sizeof(*ids));

	if (ids == NULL)
		return NULL;
	ids->nr_slots = 1024;
	ids->slots = calloc(ids->nr_slots, sizeof(*ids->slots));
	if (ids->slots == NULL) {
		free(ids);
		return NULL;
	}
	return ids;
}

void uni_mirage_ids_destroy(struct uni_mirage_ids *ids)
{
	if (ids == NULL)
		return;
	uni_vec_free(&ids->heirs);
	free(ids->slots);
	free(ids);
}

static struct pair *id_slot(const struct uni_mirage_ids *ids, uint64_t id)
{
	size_t at = uni_hash_pair(id, 0) & (ids->nr_slots - 1);

	while (ids->slots[at].used && ids->slots[at].id != id)
		at = (at + 1) & (ids->nr_slots - 1);
	return &ids->slots[at];
}

static int grow_ids(struct uni_mirage_ids *ids)
{
	struct pair *old = ids->slots;
	size_t nr = ids->nr_slots;

	ids->slots = calloc(nr * 2, sizeof(*ids->slots));
	if (ids->slots == NULL) {
		ids->slots = old;
		return -UNI_ENOMEM;
	}
	ids->nr_slots = nr * 2;
	for (size_t i = 0; i < nr; i++) {
		if (old[i].used)
			*id_slot(ids, old[i].id) = old[i];
	}
	free(old);
	return 0;
}

static uint64_t make_id(struct uni_mirage_ids *ids)
{
	return OURS << 56 | ++ids->made;
}

static int add_node(struct uni_mirage_ids *ids, uint32_t *ret)
{
	*ret = (uint32_t)ids->heirs.nr;
	return ids->heirs.nr < UINT32_MAX && uni_vec_push(&ids->heirs, *ret) ? 0 : -UNI_ENOMEM;
}

static uint32_t last_heir(struct uni_mirage_ids *ids, uint32_t node)
{
	uint32_t *heir = ids->heirs.v;

	for (; heir[node] != node; node = heir[node])
		heir[node] = heir[heir[node]];
	return node;
}

/* *node_ret does not change for nobody. */
static int replace_id(struct uni_mirage_ids *ids, uint64_t *id, bool created, uint32_t *node_ret)
{
	struct pair *p;

	if (*id == UNI_PROMISE_NOBODY)
		return 0;
	if (ids->nr >= ids->nr_slots / 2 && grow_ids(ids) != 0)
		return -UNI_ENOMEM;
	p = id_slot(ids, *id);
	if ((created || !p->used) && add_node(ids, &p->node) != 0)
		return -UNI_ENOMEM;
	if (p->used && created)
		p->now = make_id(ids);
	if (!p->used) {
		*p = (struct pair){ *id, *id >> 56 == OURS ? make_id(ids) : *id, p->node, true };
		ids->nr++;
	}
	*id = p->now;
	*node_ret = p->node;
	return 0;
}

/* A promise that became another one twice, or itself in the end, is an endless chain to old
 * viewers. */
static bool may_become(struct uni_mirage_ids *ids, uint32_t who, uint32_t other)
{
	if (who == UINT32_MAX || other == UINT32_MAX)
		return false;
	who = last_heir(ids, who);
	other = last_heir(ids, other);
	ids->heirs.v[who] = other;
	return who != other;
}

int uni_mirage_ids_replace(struct uni_mirage_ids *ids, struct uni_promise_event *e, bool *keep_ret)
{
	uint32_t who = UINT32_MAX, other = UINT32_MAX;
	int rc;

	/* Such an event only tells who ran. */
	if (e->kind == UNI_PE_CREATE && e->other == UNI_PROMISE_NOBODY)
		e->kind = UNI_PE_SWITCH;
	*keep_ret = true;
	rc = replace_id(ids, &e->thread, false, &who);
	if (rc == 0)
		rc = replace_id(ids, &e->other, e->kind == UNI_PE_CREATE, &other);
	if (rc == 0 && e->kind == UNI_PE_BECOME)
		*keep_ret = may_become(ids, who, other);
	return rc;
}
