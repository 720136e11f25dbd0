/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/profile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/vec.h"
#include "profile/order.h"
#include "profile/pile.h"
#include "profile/profile_priv.h"

/* Frames */

static uint32_t frame_hash(const struct uni_frame *f)
{
	uint64_t h = uni_hash_pair((uint64_t)f->name << 32 | f->image, f->addr);

	h = uni_hash_pair(h, (uint64_t)f->file << 32 | f->line);
	return (uint32_t)(uni_hash_pair(h, f->kind) >> 16);
}

static bool frame_equal(const struct uni_frame *a, const struct uni_frame *b)
{
	return a->name == b->name && a->image == b->image && a->file == b->file &&
	       a->line == b->line && a->addr == b->addr && a->kind == b->kind;
}

static size_t frame_probe(const struct uni_profile *p, const struct uni_frame *f, uint32_t tag)
{
	size_t mask = p->nr_frame_slots - 1, i = tag & mask;

	for (; p->frame_slots[i].node != UNI_NODE_NONE; i = (i + 1) & mask) {
		if (p->frame_slots[i].tag == tag &&
			frame_equal(&p->frames.v[p->frame_slots[i].node], f))
			break;
	}
	return i;
}

static void slot_put(struct uni_slot *slots, size_t nr_slots, struct uni_slot s)
{
	size_t i = s.tag & (nr_slots - 1);

	while (slots[i].node != UNI_NODE_NONE)
		i = (i + 1) & (nr_slots - 1);
	slots[i] = s;
}

static bool slots_resize(struct uni_slot **slots, size_t *nr_slots, size_t nr)
{
	struct uni_slot *more = malloc(nr * sizeof(*more));

	if (more == NULL)
		return false;
	memset(more, 0xff, nr * sizeof(*more));
	for (size_t i = 0; i < *nr_slots; i++) {
		if ((*slots)[i].node != UNI_NODE_NONE)
			slot_put(more, nr, (*slots)[i]);
	}
	free(*slots);
	*slots = more;
	*nr_slots = nr;
	return true;
}

uint32_t uni_profile_frame(struct uni_profile *p, const struct uni_frame *f)
{
	uint32_t tag = frame_hash(f);
	size_t i = frame_probe(p, f, tag);

	if (p->frame_slots[i].node != UNI_NODE_NONE)
		return p->frame_slots[i].node;
	if (p->frames.nr >= UNI_NODE_NONE - 1)
		return UNI_NODE_NONE;
	if ((p->frames.nr + 1) * 2 > p->nr_frame_slots) {
		if (!slots_resize(&p->frame_slots, &p->nr_frame_slots, p->nr_frame_slots * 2))
			return UNI_NODE_NONE;
		i = frame_probe(p, f, tag);
	}
	if (!uni_vec_push(&p->frames, *f))
		return UNI_NODE_NONE;
	p->frame_slots[i] = (struct uni_slot){ .node = (uint32_t)p->frames.nr - 1, .tag = tag };
	return (uint32_t)p->frames.nr - 1;
}

void uni_profile_add_own(struct uni_profile *p, uint32_t frame, double own, double unsure)
{
	p->frames.v[frame].own += own;
	p->frames.v[frame].unsure += unsure;
}

bool uni_frame_is_unsure(const struct uni_frame *f)
{
	return f->unsure * 100.0 > f->own * UNI_UNSURE_PERCENT;
}

const char *uni_profile_mark(const struct uni_profile *p, uint32_t frame)
{
	return frame != UNI_NODE_NONE && uni_frame_is_unsure(&p->frames.v[frame]) ? UNI_UNSURE_MARK
										  : "";
}

uint32_t uni_profile_frame_named(
	struct uni_profile *p, const char *name, size_t len, enum uni_frame_kind kind)
{
	struct uni_frame f = { .name = uni_strtab_add(p->strings, name, len), .kind = kind };

	return f.name == UNI_STR_NONE ? UNI_NODE_NONE : uni_profile_frame(p, &f);
}

enum uni_frame_kind uni_frame_kind_of(const char *name)
{
	size_t len = strlen(name);

	return len > 2 && name[0] == '[' && name[len - 1] == ']' ? UNI_FK_SYNTHETIC : UNI_FK_GUEST;
}

struct uni_strtab *uni_profile_strings(struct uni_profile *p)
{
	return p->strings;
}

size_t uni_profile_nr_strings(const struct uni_profile *p)
{
	return uni_strtab_nr(p->strings);
}

/* Nodes */

static uint32_t append_node(struct uni_profile *p, uint32_t parent, uint32_t frame, uint32_t next)
{
	struct uni_node n = {
		.frame = frame, .parent = parent, .child = UNI_NODE_NONE, .next = next
	};
	struct uni_second zero = { 0 };

	if (p->nodes.nr >= UNI_NODE_NONE - 1 || !uni_vec_grow(&p->nodes, 1))
		return UNI_NODE_NONE;
	if (p->has_second && !uni_vec_push(&p->seconds, zero))
		return UNI_NODE_NONE;
	p->nodes.v[p->nodes.nr] = n;
	return (uint32_t)p->nodes.nr++;
}

static uint32_t child_tag(uint32_t parent, uint32_t frame)
{
	return (uint32_t)(uni_hash_pair(parent, frame) >> 8);
}

static bool slots_grow(struct uni_profile *p)
{
	return slots_resize(&p->slots, &p->nr_slots, p->nr_slots == 0 ? 256 : p->nr_slots * 2);
}

/* Room for two more at no more than half full: one new child needs no more. */
static bool slots_reserve(struct uni_profile *p)
{
	return (p->nr_slots_used + 2) * 2 <= p->nr_slots || slots_grow(p);
}

static void slots_add(struct uni_profile *p, uint32_t node)
{
	const struct uni_node *n = &p->nodes.v[node];

	slot_put(p->slots, p->nr_slots,
		(struct uni_slot){ .node = node, .tag = child_tag(n->parent, n->frame) });
	p->nr_slots_used++;
}

static uint32_t slots_find(const struct uni_profile *p, uint32_t parent, uint32_t frame)
{
	uint32_t tag = child_tag(parent, frame);
	size_t mask = p->nr_slots - 1, i = tag & mask;

	for (; p->slots[i].node != UNI_NODE_NONE; i = (i + 1) & mask) {
		const struct uni_node *n = &p->nodes.v[p->slots[i].node];

		if (p->slots[i].tag == tag && n->parent == parent && n->frame == frame)
			return p->slots[i].node;
	}
	return UNI_NODE_NONE;
}

uint32_t uni_profile_child(struct uni_profile *p, uint32_t parent, uint32_t frame)
{
	uint32_t first = p->nodes.v[parent].child, node;
	bool only = false;

	assert(!p->finished && !p->piles && parent < p->nodes.nr && frame < p->frames.nr);
	if (first != UNI_NODE_NONE) {
		if (p->nodes.v[first].frame == frame)
			return first;
		only = p->nodes.v[first].next == UNI_NODE_NONE;
		node = only ? UNI_NODE_NONE : slots_find(p, parent, frame);
		if (node != UNI_NODE_NONE)
			return node;
		if (!slots_reserve(p))
			return UNI_NODE_NONE;
	}
	node = append_node(p, parent, frame, first);
	if (node == UNI_NODE_NONE)
		return UNI_NODE_NONE;
	p->nodes.v[parent].child = node;
	if (only)
		slots_add(p, first);
	if (first != UNI_NODE_NONE)
		slots_add(p, node);
	return node;
}

void uni_profile_add_self(struct uni_profile *p, uint32_t node, double value, double value2)
{
	p->nodes.v[node].self += value;
	if (p->has_second)
		p->seconds.v[node].self += value2;
	if (p->logs && !uni_vec_push(&p->log, ((struct uni_profile_entry){ node, value, value2 })))
		p->log_failed = true;
}

uint32_t uni_profile_last(const struct uni_profile *p)
{
	return p->last_nodes.nr != 0 ? p->last_nodes.v[p->last_nodes.nr - 1] : UNI_NODE_ROOT;
}

void uni_profile_pile_up(struct uni_profile *p)
{
	assert(!p->logs && p->nodes.nr == 1 && p->nodes.v[UNI_NODE_ROOT].self == 0.0);
	p->piles = true;
}

bool uni_profile_piles_up(const struct uni_profile *p)
{
	return p->piles;
}

struct uni_memo *uni_profile_names(struct uni_profile *p)
{
	return &p->names;
}

void uni_profile_keep_log(struct uni_profile *p)
{
	p->logs = true;
}

const struct uni_profile_entry *uni_profile_log(const struct uni_profile *p, size_t *nr_ret)
{
	*nr_ret = p->log.nr;
	return p->log.v;
}

int uni_profile_add(
	struct uni_profile *p, const uint32_t *frames, size_t nr, double value, double value2)
{
	uint32_t node = UNI_NODE_ROOT;
	size_t same = 0;

	if (value2 != 0.0 && !p->has_second && uni_profile_enable_second(p) != 0)
		return -UNI_ENOMEM;
	if (p->piles)
		return uni_pile_add(&p->pile, frames, nr, value, value2) ? 0 : -UNI_ENOMEM;
	while (same < nr && same < p->last_frames.nr && p->last_frames.v[same] == frames[same])
		same++;
	if (same != 0)
		node = p->last_nodes.v[same - 1];
	p->last_frames.nr = p->last_nodes.nr = same;
	if (!uni_vec_grow(&p->last_frames, nr - same) || !uni_vec_grow(&p->last_nodes, nr - same))
		return -UNI_ENOMEM;
	for (size_t i = same; i < nr; i++) {
		node = uni_profile_child(p, node, frames[i]);
		if (node == UNI_NODE_NONE)
			return -UNI_ENOMEM;
		p->last_frames.v[i] = frames[i];
		p->last_nodes.v[i] = node;
		p->last_frames.nr = p->last_nodes.nr = i + 1;
	}
	uni_profile_add_self(p, node, value, value2);
	return 0;
}

int uni_profile_enable_second(struct uni_profile *p)
{
	if (p->has_second)
		return 0;
	if (!uni_vec_grow(&p->seconds, p->nodes.nr))
		return -UNI_ENOMEM;
	memset(p->seconds.v, 0, p->nodes.nr * sizeof(*p->seconds.v));
	p->seconds.nr = p->nodes.nr;
	p->has_second = true;
	return 0;
}

int uni_profile_to_second(struct uni_profile *p)
{
	int rc = uni_profile_enable_second(p);

	assert(!p->finished && !p->logs);
	for (size_t i = 0; rc == 0 && i < p->nodes.nr; i++) {
		p->seconds.v[i].self += p->nodes.v[i].self;
		p->nodes.v[i].self = 0.0;
	}
	uni_vec_foreach (s, &p->pile.stacks) {
		s->value2 += s->value;
		s->value = 0.0;
	}
	return rc;
}

void uni_profile_scale_first(struct uni_profile *p)
{
	double one = 0.0, two = 0.0;

	assert(!p->finished && p->has_second);
	for (size_t i = 0; i < p->nodes.nr; i++) {
		one += p->nodes.v[i].self;
		two += p->seconds.v[i].self;
	}
	uni_vec_foreach (s, &p->pile.stacks) {
		one += s->value;
		two += s->value2;
	}
	for (size_t i = 0; one > 0.0 && two > 0.0 && i < p->nodes.nr; i++)
		p->nodes.v[i].self *= two / one;
	uni_vec_foreach (s, &p->pile.stacks)
		s->value *= one > 0.0 && two > 0.0 ? two / one : 1.0;
}

/* A child is always made after its parent, so going backwards sees every child first. */
static void sum_totals(struct uni_profile *p)
{
	for (size_t i = p->nodes.nr; i-- != 0;) {
		struct uni_node *n = &p->nodes.v[i];

		n->total += n->self;
		if (n->parent != UNI_NODE_NONE)
			p->nodes.v[n->parent].total += n->total;
		if (!p->has_second)
			continue;
		p->seconds.v[i].total += p->seconds.v[i].self;
		if (n->parent != UNI_NODE_NONE)
			p->seconds.v[n->parent].total += p->seconds.v[i].total;
	}
}

void uni_profile_drop_finders(struct uni_profile *p)
{
	free(p->slots);
	p->slots = NULL;
	p->nr_slots = p->nr_slots_used = 0;
	uni_memo_deinit(&p->names);
}

int uni_profile_finish(struct uni_profile *p)
{
	int rc;

	assert(!p->finished);
	uni_profile_drop_finders(p);
	if (p->log_failed)
		return -UNI_ENOMEM;
	rc = p->piles ? uni_pile_build(p) : uni_profile_order(p, p->nodes.v, p->nodes.nr);
	if (rc != 0)
		return rc;
	sum_totals(p);
	p->finished = true;
	return 0;
}

struct uni_profile *uni_profile_create(void)
{
	struct uni_profile *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->strings = uni_strtab_create();
	if (p->strings == NULL || !slots_resize(&p->frame_slots, &p->nr_frame_slots, 256) ||
		append_node(p, UNI_NODE_NONE, UNI_NODE_NONE, UNI_NODE_NONE) != UNI_NODE_ROOT) {
		uni_profile_destroy(p);
		return NULL;
	}
	uni_profile_set_unit(p, "samples");
	return p;
}

void uni_profile_destroy(struct uni_profile *p)
{
	if (p == NULL)
		return;
	uni_strtab_destroy(p->strings);
	uni_vec_free(&p->frames);
	free(p->frame_slots);
	uni_vec_free(&p->nodes);
	uni_vec_free(&p->seconds);
	free(p->slots);
	uni_vec_free(&p->last_frames);
	uni_vec_free(&p->last_nodes);
	uni_vec_free(&p->log);
	uni_pile_deinit(&p->pile);
	uni_memo_deinit(&p->names);
	free(p);
}

uint32_t uni_profile_append(struct uni_profile *p, uint32_t parent, uint32_t before, uint32_t frame)
{
	uint32_t node;

	assert(!p->finished && parent < p->nodes.nr && frame < p->frames.nr);
	node = append_node(p, parent, frame, UNI_NODE_NONE);
	if (node == UNI_NODE_NONE)
		return UNI_NODE_NONE;
	if (before == UNI_NODE_NONE)
		p->nodes.v[parent].child = node;
	else
		p->nodes.v[before].next = node;
	return node;
}

void uni_profile_finish_as_is(struct uni_profile *p)
{
	assert(!p->finished && !p->piles);
	uni_profile_drop_finders(p);
	sum_totals(p);
	p->finished = true;
}
