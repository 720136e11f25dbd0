/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/pages.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"

#define CHUNK	  65536u
#define PAGES_MAX (1u << 24) /* 64 GiB of mappings */
#define LOADS_MAX (1u << 25) /* of tables' entries, in one step */
#define LOADS_MIN (1u << 14) /* all tables on the way to a page, and many empty ones */
#define CPU_NS	  (8 * UNI_NSEC_PER_SEC)
#define LOAD_NS	  64u /* loading a cached table's entry takes less */

struct uni_pages {
	struct uni_gmem *m;
	struct uni_pt_root root;
	bool has_tables;
	uint64_t next; /* address that was not seen yet */
	uint32_t pages;
	bool all; /* there is nothing after it */
	uni_page_fn fn;
	void *ctx;
	uint64_t until_ns; /* of uni_thread_ns() */
	bool ended;	   /* by fn */
	bool paused;	   /* the time of this step is over */
	uint8_t *buf;	   /* CHUNK */
};

static int give_pages(struct uni_pages *w, uint64_t gva, bool exec, size_t size)
{
	for (size_t i = 0; !w->ended && i < size; i += UNI_PAGE_BYTES)
		w->ended = !w->fn(w->ctx, gva + i, exec, w->buf + i);
	return 0;
}

/* A whole chunk at once or, where not all of it is there, page by page. */
static int read_chunk(struct uni_pages *w, uint64_t gva, uint64_t at, bool exec, size_t size)
{
	int rc = uni_gmem_read(w->m, uni_gpa_of(at), w->buf, size);

	if (rc == 0)
		return give_pages(w, gva, exec, size);
	for (size_t i = 0; rc != -UNI_EGONE && !w->ended && i < size; i += UNI_PAGE_BYTES) {
		rc = uni_gmem_read(w->m, uni_gpa_of(at + i), w->buf, UNI_PAGE_BYTES);
		if (rc == 0)
			(void)give_pages(w, gva + i, exec, UNI_PAGE_BYTES);
	}
	return rc == -UNI_EGONE ? rc : 0;
}

/* [gva, gva + size) is at `at`, which is physical unless the gmem is virtual. */
static int read_range(struct uni_pages *w, uint64_t gva, uint64_t at, bool exec, uint64_t size)
{
	for (uint64_t i = 0; !w->ended && !w->paused && size - i >= UNI_PAGE_BYTES;) {
		uint64_t left = (size - i) & ~(uint64_t)(UNI_PAGE_BYTES - 1);
		size_t n = (size_t)uni_min(left, (uint64_t)CHUNK);
		int rc;

		w->ended = w->pages > PAGES_MAX;
		if (w->ended)
			break;
		w->pages += CHUNK / UNI_PAGE_BYTES;
		rc = read_chunk(w, gva + i, at + i, exec, n);
		if (rc != 0)
			return rc;
		i += n;
		w->next = gva + i;
		w->paused = uni_thread_ns() > w->until_ns;
	}
	return 0;
}

/* The part of the mapping at m that begins in a region; a leaf may be far larger than RAM. */
static int read_mapping(struct uni_pages *w, const struct uni_mapping *map)
{
	for (size_t i = 0; !w->ended && !w->paused && i < uni_gmem_nr_regions(w->m); i++) {
		const struct uni_gmem_region *r = uni_gmem_region(w->m, i);
		uint64_t skip, size;
		int rc;

		if (!uni_range_overlaps(r->start, r->size, map->gpa.v, map->size))
			continue;
		skip = r->start > map->gpa.v ? r->start - map->gpa.v : 0;
		skip = (skip + UNI_PAGE_BYTES - 1) & ~(uint64_t)(UNI_PAGE_BYTES - 1);
		if (skip >= map->size || !uni_range_has(r->start, r->size, map->gpa.v + skip))
			continue;
		size = uni_min(map->size - skip, r->size - (map->gpa.v + skip - r->start));
		rc = read_range(w, map->gva.v + skip, map->gpa.v + skip, map->exec, size);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int walk_tables(struct uni_pages *w, uint64_t time_ns)
{
	const struct uni_as_budget budget = { .bytes = 512u << 20,
		.table_loads = (uint32_t)uni_max(
			uni_min(time_ns / LOAD_NS, (uint64_t)LOADS_MAX), (uint64_t)LOADS_MIN),
		.cpu_ns = CPU_NS };
	struct uni_as *as = NULL;
	struct uni_mapping map;
	int rc = uni_as_create(w->m, &budget, &as, NULL);

	if (rc != 0)
		return rc;
	uni_as_begin(as, &w->root);
	while (!w->ended && !w->paused) {
		rc = uni_as_next(as, uni_gva_of(w->next), &map);
		if (rc == 0)
			rc = read_mapping(w, &map);
		if (rc != 0 || w->paused)
			break;
		w->next = map.gva.v + map.size;
		w->all = w->next == 0;
		if (w->all)
			break;
	}
	/* Tables without end, or with nothing in them for longer than a step, are left alone. */
	w->all = w->all || (rc != 0 && rc != -UNI_EGONE);
	uni_as_destroy(as);
	return rc == -UNI_EGONE ? rc : 0;
}

static int walk_regions(struct uni_pages *w)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && !w->ended && !w->paused && i < uni_gmem_nr_regions(w->m);
		i++) {
		const struct uni_gmem_region *r = uni_gmem_region(w->m, i);
		uint64_t skip = -r->start & (UNI_PAGE_BYTES - 1);

		if (w->next > r->start)
			skip = w->next - r->start;
		if (skip < r->size)
			rc = read_range(w, r->start + skip, r->start + skip, true, r->size - skip);
	}
	w->all = !w->paused;
	return rc;
}

int uni_pages_create(struct uni_gmem *m, const struct uni_pt_root *root, struct uni_pages **ret)
{
	struct uni_pages *p = calloc(1, sizeof(*p));

	if (p != NULL)
		p->buf = malloc(CHUNK);
	if (p == NULL || p->buf == NULL) {
		free(p);
		return -UNI_ENOMEM;
	}
	p->m = m;
	p->has_tables = root != NULL && root->geometry->nr_levels != 0;
	if (p->has_tables)
		p->root = *root;
	*ret = p;
	return 0;
}

void uni_pages_destroy(struct uni_pages *p)
{
	if (p == NULL)
		return;
	free(p->buf);
	free(p);
}

int uni_pages_step(struct uni_pages *p, uint64_t time_ns, uni_page_fn fn, void *ctx)
{
	int rc;

	p->fn = fn;
	p->ctx = ctx;
	p->until_ns = uni_thread_ns() + time_ns;
	p->paused = false;
	rc = p->has_tables ? walk_tables(p, time_ns) : walk_regions(p);
	if (rc != 0)
		return rc;
	return p->ended || p->all ? 0 : 1;
}

int uni_pages_each(struct uni_gmem *m, const struct uni_pt_root *root, uint64_t time_ns,
	uni_page_fn fn, void *ctx)
{
	struct uni_pages *p;
	int rc = uni_pages_create(m, root, &p);

	if (rc != 0)
		return rc;
	rc = uni_pages_step(p, time_ns, fn, ctx);
	uni_pages_destroy(p);
	return rc < 0 ? rc : 0;
}
