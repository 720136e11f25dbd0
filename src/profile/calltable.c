/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/calltable.h"

#include <string.h>

int uni_call_table_init(struct uni_call_table *t)
{
	memset(t, 0, sizeof(*t));
	t->names = uni_strtab_create();
	t->keys = uni_strtab_create();
	return t->names != NULL && t->keys != NULL ? 0 : -UNI_ENOMEM;
}

void uni_call_table_deinit(struct uni_call_table *t)
{
	uni_strtab_destroy(t->names);
	uni_strtab_destroy(t->keys);
	uni_vec_free(&t->cells);
	memset(t, 0, sizeof(*t));
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

int uni_call_table_add(
	struct uni_call_table *t, const char *name, size_t len, const struct uni_call_cell *call)
{
	struct uni_call_cell cell = { .name = uni_strtab_add(t->names, name, len),
		.where = call->where };
	char key[sizeof(cell.name) + sizeof(cell.where)];
	struct uni_call_cell *c;
	uint32_t nr;

	if (cell.name == UNI_STR_NONE)
		return -UNI_ENOMEM;
	memcpy(key, &cell.name, sizeof(cell.name));
	memcpy(key + sizeof(cell.name), &cell.where, sizeof(cell.where));
	nr = uni_strtab_add(t->keys, key, sizeof(key)); /* 0 is the empty string's */
	if (nr == UNI_STR_NONE || (nr > t->cells.nr && !uni_vec_push(&t->cells, cell)))
		return -UNI_ENOMEM;
	c = &t->cells.v[nr - 1];
	c->calls = add_up(c->calls, call->calls);
	c->ns = add_up(c->ns, call->ns);
	c->self_ns = add_up(c->self_ns, call->self_ns);
	return 0;
}

static int add_event(struct uni_call_table *t, const struct uni_timeline *tl,
	const struct uni_call_event *e, bool by_cpu)
{
	struct uni_call_cell call = { .where = e->cpu, .calls = 1 };
	const char *name;

	if (e->type == UNI_CALL_LEAVE && (e->flags & UNI_CALL_CUT) == 0) {
		call.ns = e->duration;
		call.self_ns = e->self;
	} else if (e->type != UNI_CALL_LEAF && e->type != UNI_CALL_ENTRY) {
		return 0;
	}
	if (!by_cpu)
		(void)tl->thread(tl->ctx, e->thread, &call.where);
	name = tl->func(tl->ctx, e->func);
	return uni_call_table_add(t, name, strlen(name), &call);
}

int uni_call_table_read(struct uni_call_table *t, const struct uni_timeline *tl, bool by_cpu)
{
	const struct uni_call_event *e;
	size_t nr;
	int rc;

	while ((rc = tl->read(tl->ctx, &e, &nr)) == 1) {
		for (size_t i = 0; i < nr; i++) {
			rc = add_event(t, tl, &e[i], by_cpu);
			if (rc != 0)
				return rc;
		}
	}
	return rc;
}

int uni_call_table_merge(const struct uni_call_table *t, struct uni_call_table *ret)
{
	int rc = uni_call_table_init(ret);

	for (size_t i = 0; rc == 0 && i < t->cells.nr; i++) {
		struct uni_call_cell c = t->cells.v[i];

		c.where = 0;
		rc = uni_call_table_add(ret, uni_strtab_get(t->names, c.name),
			uni_strtab_len(t->names, c.name), &c);
	}
	return rc;
}

static int compare_cells(const void *pa, const void *pb, void *arg)
{
	const struct uni_call_cell *a = pa, *b = pb;
	const struct uni_call_table *t = arg;

	if (a->where != b->where)
		return a->where < b->where ? -1 : 1;
	if (a->self_ns != b->self_ns)
		return a->self_ns > b->self_ns ? -1 : 1;
	return strcmp(uni_call_table_name(t, a), uni_call_table_name(t, b));
}

void uni_call_table_sort(struct uni_call_table *t)
{
	if (t->cells.nr != 0)
		qsort_r(t->cells.v, t->cells.nr, sizeof(t->cells.v[0]), compare_cells, t);
}
