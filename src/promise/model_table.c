/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "promise/model_priv.h"

struct uni_promise_builder *uni_promise_builder_create(void)
{
	struct uni_promise_builder *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->m.text = uni_strtab_create();
	b->nr_slots = 1024;
	b->slots = calloc(b->nr_slots, sizeof(*b->slots));
	b->m.begin = UINT64_MAX;
	for (unsigned i = 0; i < UNI_PROMISE_CPUS; i++)
		b->cpus[i] = (struct uni_promise_cpu){ UNI_PROMISE_NONE, UNI_PROMISE_NONE,
			UNI_PROMISE_NONE, 0 };
	if (b->m.text == NULL || b->slots == NULL) {
		uni_promise_builder_destroy(b);
		return NULL;
	}
	return b;
}

void uni_promise_builder_destroy(struct uni_promise_builder *b)
{
	if (b == NULL)
		return;
	uni_strtab_destroy(b->m.text);
	uni_vec_free(&b->m.all);
	uni_vec_free(&b->m.named);
	uni_vec_free(&b->m.runs);
	uni_vec_free(&b->m.waits);
	uni_vec_free(&b->m.holds);
	uni_vec_free(&b->m.edges);
	uni_vec_free(&b->m.labels);
	uni_vec_free(&b->m.counts);
	uni_vec_free(&b->m.pauses);
	uni_vec_free(&b->m.silences);
	uni_vec_free(&b->m.on_cpu);
	uni_vec_free(&b->counters);
	free(b->slots);
	free(b);
}

static uint32_t *promise_slot(const struct uni_promise_builder *b, uint64_t id)
{
	uint32_t at = (uint32_t)uni_hash_pair(id, 0) & (b->nr_slots - 1);

	while (b->slots[at] != 0 && b->m.all.v[b->slots[at] - 1].id != id)
		at = (at + 1) & (b->nr_slots - 1);
	return &b->slots[at];
}

uint32_t uni_promise_find(const struct uni_promise_builder *b, uint64_t id)
{
	return *promise_slot(b, id) - 1; /* 0 - 1 is UNI_PROMISE_NONE */
}

static int grow_promises(struct uni_promise_builder *b)
{
	uint32_t *old = b->slots, nr = b->nr_slots;

	if (nr > UINT32_MAX / 4)
		return -UNI_ENOMEM;
	b->slots = calloc((size_t)nr * 2, sizeof(*b->slots));
	if (b->slots == NULL) {
		b->slots = old;
		return -UNI_ENOMEM;
	}
	b->nr_slots = nr * 2;
	for (uint32_t i = 0; i < nr; i++) {
		if (old[i] != 0)
			*promise_slot(b, b->m.all.v[old[i] - 1].id) = old[i];
	}
	free(old);
	return 0;
}

int uni_promise_add(struct uni_promise_builder *b, uint64_t id, uint32_t *ret)
{
	const struct uni_promise p = { .id = id,
		.begin = b->now,
		.last = b->now,
		.end = UNI_PROMISE_OPEN,
		.creator = UNI_PROMISE_NONE,
		.resolver = UNI_PROMISE_NONE,
		.other = UNI_PROMISE_NONE,
		.heir = (uint32_t)b->m.all.nr,
		.first_wait = UNI_PROMISE_NONE,
		.waiters = UNI_PROMISE_NONE,
		.last_waiter = UNI_PROMISE_NONE,
		.lonely_by = UNI_PROMISE_NONE,
		.hold = UNI_PROMISE_NONE,
		.type = UNI_PROMISE_TYPE_UNKNOWN };

	if (b->m.all.nr >= b->nr_slots / 2 && grow_promises(b) != 0)
		return -UNI_ENOMEM;
	if (!uni_promise_push(&b->m.all, p))
		return -UNI_ENOMEM;
	*promise_slot(b, id) = (uint32_t)b->m.all.nr;
	*ret = (uint32_t)b->m.all.nr - 1;
	return 0;
}

int uni_promise_know(struct uni_promise_builder *b, uint64_t id, uint32_t *ret)
{
	*ret = UNI_PROMISE_NONE;
	if (id == UNI_PROMISE_NOBODY)
		return 0;
	*ret = uni_promise_find(b, id);
	if (*ret == UNI_PROMISE_NONE && uni_promise_add(b, id, ret) != 0)
		return -UNI_ENOMEM;
	b->m.all.v[*ret].last = b->now;
	return 0;
}

int uni_promise_set_label(struct uni_promise_builder *b, uint32_t promise, uint32_t label)
{
	struct uni_promise *p = &b->m.all.v[promise];
	struct uni_promise_named *n;

	p->label = label;
	while (b->m.named.nr <= label) {
		if (!uni_vec_push(&b->m.named, ((struct uni_promise_named){ 0, false, false })))
			return -UNI_ENOMEM;
	}
	n = &b->m.named.v[label];
	if (!n->used)
		*n = (struct uni_promise_named){ p->id, true, false };
	n->shared = n->shared || n->id != p->id;
	return 0;
}

/* A name that is not an event's. */
static int name_promise(struct uni_promise_builder *b, uint32_t promise, const char *name)
{
	const struct uni_promise_event e = { .text = name, .text_len = (uint32_t)strlen(name) };
	uint32_t label;

	if (uni_promise_text(b, &e, &label) != 0)
		return -UNI_ENOMEM;
	return uni_promise_set_label(b, promise, label);
}

int uni_promise_builder_name(struct uni_promise_builder *b, uint64_t id, const char *name)
{
	uint32_t i = uni_promise_find(b, id);
	const struct uni_promise *p;

	if (name[0] == '\0' || i == UNI_PROMISE_NONE)
		return 0;
	p = &b->m.all.v[i];
	if (p->label != 0 ||
		(p->type != UNI_PROMISE_TYPE_UNKNOWN && p->type != UNI_PROMISE_TYPE_THREAD))
		return 0;
	return name_promise(b, i, name);
}

int uni_promise_builder_name_thing(struct uni_promise_builder *b, uint32_t promise,
	void (*fn)(void *ctx, uint64_t id, char *ret, size_t cap), void *ctx)
{
	const struct uni_promise *p = &b->m.all.v[promise];
	char name[UNI_TEXT_MAX] = "";

	if (p->label != 0 || (p->type != UNI_PROMISE_TYPE_LOCK && uni_promise_has_kind(p)))
		return 0;
	fn(ctx, p->id, name, sizeof(name));
	return name[0] != '\0' ? name_promise(b, promise, name) : 0;
}

int uni_promise_builder_name_things(struct uni_promise_builder *b,
	void (*fn)(void *ctx, uint64_t id, char *ret, size_t cap), void *ctx)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < b->m.all.nr; i++)
		rc = uni_promise_builder_name_thing(b, i, fn, ctx);
	return rc;
}

const struct uni_promise_model *uni_promise_builder_model(const struct uni_promise_builder *b)
{
	return &b->m;
}

int uni_promise_text(
	struct uni_promise_builder *b, const struct uni_promise_event *e, uint32_t *ret)
{
	char clean[UNI_TEXT_MAX];
	size_t len = uni_text_clean(clean, sizeof(clean), e->text == NULL ? "" : e->text,
		e->text == NULL ? 0 : e->text_len);

	*ret = uni_strtab_add(b->m.text, clean, len);
	return *ret == UNI_STR_NONE ? -UNI_ENOMEM : 0;
}

bool uni_promise_has_kind(const struct uni_promise *p)
{
	return p->type != UNI_PROMISE_TYPE_UNKNOWN || p->nr_runs + p->nr_waits != 0;
}

static const char *name_kind(const struct uni_promise *p)
{
	if (p->type != UNI_PROMISE_TYPE_UNKNOWN)
		return uni_promise_type_name(p->type);
	return uni_promise_has_kind(p) ? "thread" : "unknown";
}

bool uni_promise_shares_label(const struct uni_promise_model *m, uint32_t promise)
{
	const struct uni_promise *p = &m->all.v[promise];

	if (p->label == 0 || !m->named.v[p->label].shared)
		return false;
	return p->type == UNI_PROMISE_TYPE_THREAD || p->type == UNI_PROMISE_TYPE_LOCK ||
	       (p->type == UNI_PROMISE_TYPE_UNKNOWN && uni_promise_has_kind(p));
}

const char *uni_promise_name(
	const struct uni_promise_model *m, uint32_t promise, char *buf, size_t cap)
{
	const struct uni_promise *p;
	const char *name;
	char id[24];
	size_t len;

	if (promise >= m->all.nr)
		return "nobody";
	p = &m->all.v[promise];
	name = p->label != 0 ? uni_strtab_get(m->text, p->label) : name_kind(p);
	if (p->label != 0 && !uni_promise_shares_label(m, promise))
		return name;
	/* If there is no room for both, the name is cut, between characters. */
	len = (size_t)snprintf(
		id, sizeof(id), p->id > UINT32_MAX ? " 0x%" PRIx64 : " %" PRIu64, p->id);
	len = cap > len ? cap - len - 1 : 0;
	if (strlen(name) > len) {
		while (len != 0 && ((unsigned char)name[len] & 0xc0) == 0x80)
			len--;
	}
	(void)snprintf(buf, cap, "%.*s%s", (int)len, name, id);
	return buf;
}
