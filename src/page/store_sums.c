/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "page/store_priv.h"

#define SLICES_MAX 512u
#define SUMS_MAX   (UINT64_C(32) << 20) /* for all slices: 256 MiB */
#define CALLS_MIN  4096u		/* calls that are worth a slice */

/* Rows of a thread, which are neighbours: from <= i < to, only those on one vCPU. */
struct group {
	size_t from, to;
	uint32_t thread, cpu;
};

static bool is_in(const struct uni_page_store *s, size_t row, const struct group *g)
{
	return s->rows.v[row].cpu == g->cpu;
}

/* Goes to the next thread, with all its vCPUs. */
static bool next_thread(const struct uni_page_store *s, struct group *g)
{
	*g = (struct group){ .from = g->to, .to = g->to };
	if (g->from == s->rows.nr)
		return false;
	g->thread = s->rows.v[g->from].thread;
	while (g->to < s->rows.nr && s->rows.v[g->to].thread == g->thread)
		g->to++;
	return true;
}

/* Goes to the thread's next vCPU: the next higher number, or the lowest one if `first`. */
static bool next_cpu(const struct uni_page_store *s, struct group *g, bool first)
{
	uint32_t next = UINT32_MAX;

	for (size_t r = g->from; r < g->to; r++) {
		uint32_t cpu = s->rows.v[r].cpu;

		if (cpu < next && (first || cpu > g->cpu))
			next = cpu;
	}
	g->cpu = next;
	return next != UINT32_MAX;
}

/* Start with { 0 }. False: that was the last group. */
static bool next_group(const struct uni_page_store *s, struct group *g)
{
	if (g->from < g->to && next_cpu(s, g, false))
		return true;
	return next_thread(s, g) && next_cpu(s, g, true);
}

/* cell_of[], by node, has the previous group's values; 0: none; numbers are + 1. */
static int add_cells(struct uni_page_store *s, const struct group *g, uint32_t *cell_of)
{
	size_t first = s->cells.nr;

	for (size_t r = g->from; r < g->to; r++) {
		const struct uni_lod *l = s->rows.v[r].l;

		for (size_t i = 0; is_in(s, r, g) && i < uni_lod_nr(l); i++) {
			struct uni_store_cell cell = { g->thread, uni_lod_get(l, i).id,
				(uint16_t)g->cpu };

			if (cell.node >= s->nr_nodes || cell_of[cell.node] > first)
				continue;
			if (!uni_vec_push(&s->cells, cell))
				return -UNI_ENOMEM;
			cell_of[cell.node] = (uint32_t)s->cells.nr;
		}
	}
	return 0;
}

/* Adds each slice's part of a call. */
static void add_call(struct uni_page_store *s, const struct uni_lod_span *c, uint32_t cell)
{
	uint64_t at = c->start - s->begin, end = at + c->dur;

	for (uint64_t i = at / s->slice; at < end; i++) {
		uint64_t part = uni_min(end - at, (i + 1) * s->slice - at);

		s->sums[i * s->cells.nr + cell] += part;
		at += part;
	}
}

static void add_calls(struct uni_page_store *s, const struct group *g, const uint32_t *cell_of)
{
	for (size_t r = g->from; r < g->to; r++) {
		const struct uni_lod *l = s->rows.v[r].l;

		for (size_t i = 0; is_in(s, r, g) && i < uni_lod_nr(l); i++) {
			struct uni_lod_span c = uni_lod_get(l, i);

			if (c.id < s->nr_nodes)
				add_call(s, &c, cell_of[c.id] - 1);
		}
	}
}

static void set_cells(
	const struct uni_page_store *s, size_t *first, const struct group *g, uint32_t *cell_of)
{
	for (; *first < s->cells.nr && s->cells.v[*first].thread == g->thread &&
		s->cells.v[*first].cpu == g->cpu;
		++*first)
		cell_of[s->cells.v[*first].node] = (uint32_t)*first + 1;
}

/* First sums up each slice alone, then all slices before each. */
static void fill_sums(struct uni_page_store *s, uint32_t *cell_of)
{
	struct group g = { 0 };
	size_t cell = 0;

	while (next_group(s, &g)) {
		set_cells(s, &cell, &g, cell_of);
		add_calls(s, &g, cell_of);
	}
	for (size_t c = 0; c < s->cells.nr; c++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i <= s->nr_slices; i++) {
			uint64_t *at = &s->sums[i * s->cells.nr + c], part = *at;

			*at = sum;
			sum += part;
		}
	}
}

int uni_store_add_up(struct uni_page_store *s)
{
	_cleanup_free_ uint32_t *cell_of = calloc((size_t)s->nr_nodes + 1, sizeof(*cell_of));
	struct group g = { 0 };
	uint64_t slices;
	int rc = 0;

	if (cell_of == NULL)
		return -UNI_ENOMEM;
	while (rc == 0 && next_group(s, &g))
		rc = add_cells(s, &g, cell_of);
	if (rc != 0)
		return rc;
	slices = uni_min(s->nr / CALLS_MIN, SUMS_MAX / (s->cells.nr + 1));
	s->nr_slices = (uint32_t)uni_max(uni_min(slices, (uint64_t)SLICES_MAX), (uint64_t)1);
	s->slice = (s->end - s->begin) / s->nr_slices + 1;
	s->sums = calloc(((size_t)s->nr_slices + 1) * (s->cells.nr + 1), sizeof(*s->sums));
	if (s->sums == NULL)
		return -UNI_ENOMEM;
	fill_sums(s, cell_of);
	return 0;
}

/* Adds, or subtracts, the part of each call that is in a <= t < z. */
static void add_piece(const struct uni_page_store *s, uint64_t a, uint64_t z,
	struct uni_page_who who, bool minus, uint64_t *ret)
{
	for (size_t r = 0; r < s->rows.nr && a < z; r++) {
		const struct uni_lod *l = s->rows.v[r].l;

		if (!uni_store_is_of(s->rows.v[r].thread, s->rows.v[r].cpu, who))
			continue;
		for (size_t i = uni_lod_seek(l, s->begin + a); i < uni_lod_nr(l); i++) {
			struct uni_lod_span c = uni_lod_get(l, i);
			uint64_t from = uni_max(c.start - s->begin, a);
			uint64_t to = uni_min(c.start - s->begin + c.dur, z);

			if (c.start - s->begin >= z)
				break;
			if (c.id < s->nr_nodes && from < to)
				ret[c.id] += minus ? from - to : to - from;
		}
	}
}

/* Adds all before t: the sum at the nearest slice, and the piece in between. */
static void add_before(const struct uni_page_store *s, uint64_t t, struct uni_page_who who,
	bool minus, uint64_t *ret)
{
	uint64_t slice = uni_min((t + s->slice / 2) / s->slice, (uint64_t)s->nr_slices);
	const uint64_t *sum = s->sums + slice * s->cells.nr;
	uint64_t at = slice * s->slice;

	for (size_t c = 0; c < s->cells.nr; c++) {
		if (uni_store_is_of(s->cells.v[c].thread, s->cells.v[c].cpu, who))
			ret[s->cells.v[c].node] += minus ? 0 - sum[c] : sum[c];
	}
	if (at <= t)
		add_piece(s, at, t, who, minus, ret);
	else
		add_piece(s, t, at, who, !minus, ret);
}

/* Subtracts the time of a node's children, which come after it. */
static void without_children(const struct uni_page_store *s, uint64_t *ret)
{
	for (uint32_t i = 1; i < s->nr_nodes; i++) {
		uint32_t up = s->parent[i];

		/* Calls whose ends were reported late may seem longer than their caller. */
		if (up != 0 && up < i)
			ret[up] -= uni_min(ret[up], ret[i]);
	}
}

int uni_page_store_sums(const struct uni_page_store *s, uint64_t t0, uint64_t t1,
	struct uni_page_who who, uint64_t *ret)
{
	uint64_t all = s->end - s->begin;

	memset(ret, 0, s->nr_nodes * sizeof(*ret));
	t0 = uni_min(t0, all);
	t1 = uni_min(t1, all);
	if (t0 >= t1 || s->sums == NULL)
		return 0;
	add_before(s, t1, who, false, ret);
	add_before(s, t0, who, true, ret);
	without_children(s, ret);
	return 0;
}
