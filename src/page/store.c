/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/err.h"
#include "base/vec.h"
#include "page/lod.h"
#include "page/store_priv.h"

struct uni_page_store *uni_page_store_create(void)
{
	return calloc(1, sizeof(struct uni_page_store));
}

void uni_page_store_destroy(struct uni_page_store *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->rows.nr; i++)
		uni_lod_destroy(s->rows.v[i].l);
	uni_vec_free(&s->rows);
	uni_vec_free(&s->cells);
	free(s->parent);
	free(s->map);
	free(s->sums);
	free(s);
}

int64_t uni_page_store_row(struct uni_page_store *s, uint32_t thread, uint32_t depth, uint16_t cpu)
{
	struct uni_store_row r = {
		.thread = thread, .depth = depth, .cpu = cpu, .l = uni_lod_create()
	};

	if (r.l != NULL && uni_vec_push(&s->rows, r))
		return (int64_t)s->rows.nr - 1;
	uni_lod_destroy(r.l);
	return -UNI_ENOMEM;
}

int uni_page_store_add(
	struct uni_page_store *s, uint32_t row, uint64_t start, uint64_t dur, uint32_t node)
{
	dur = uni_min(dur, UINT64_MAX - start);
	s->begin = s->nr == 0 ? start : uni_min(s->begin, start);
	s->end = uni_max(s->end, start + dur);
	s->nr++;
	return uni_lod_add(s->rows.v[row].l, start, dur, node);
}

static int by_thread(const void *a, const void *b)
{
	const struct uni_store_row *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

int uni_page_store_finish(struct uni_page_store *s, const uint32_t *parent, uint32_t nr)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->rows.nr; i++)
		rc = uni_lod_index(s->rows.v[i].l);
	s->parent = malloc(((size_t)nr + 1) * sizeof(*parent));
	if (rc != 0 || s->parent == NULL)
		return -UNI_ENOMEM;
	memcpy(s->parent, parent, nr * sizeof(*parent));
	s->nr_nodes = nr;
	if (s->rows.nr != 0)
		qsort(s->rows.v, s->rows.nr, sizeof(s->rows.v[0]), by_thread);
	return uni_store_add_up(s);
}

uint32_t uni_page_store_nr_rows(const struct uni_page_store *s)
{
	return (uint32_t)s->rows.nr;
}

struct uni_page_row uni_page_store_get_row(const struct uni_page_store *s, uint32_t row)
{
	const struct uni_store_row *r = &s->rows.v[row];

	return (struct uni_page_row){ r->thread, r->depth, r->cpu, uni_lod_nr(r->l) };
}

uint64_t uni_page_store_nr(const struct uni_page_store *s)
{
	return s->nr;
}

uint64_t uni_page_store_begin(const struct uni_page_store *s)
{
	return s->begin;
}

uint64_t uni_page_store_end(const struct uni_page_store *s)
{
	return s->end;
}

void uni_page_store_totals(const struct uni_page_store *s, uint64_t *ret)
{
	memset(ret, 0, s->nr_nodes * sizeof(*ret));
	for (size_t r = 0; r < s->rows.nr; r++) {
		const struct uni_lod *l = s->rows.v[r].l;

		for (size_t i = 0; i < uni_lod_nr(l); i++) {
			struct uni_lod_span c = uni_lod_get(l, i);

			if (c.id < s->nr_nodes)
				ret[c.id] += c.dur;
		}
	}
}

void uni_page_store_set_map(struct uni_page_store *s, uint32_t *map, uint32_t nr)
{
	free(s->map);
	s->map = map;
	s->nr_mapped = nr;
}
