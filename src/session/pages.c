/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/pages.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"

#define CHUNK	  65536u
#define PAGES_MAX (1u << 24) /* 64 GiB of mappings */
#define LOADS_MAX (1u << 25)
#define LOAD_NS	  64u /* loading a cached table's entry takes less */
struct walk {
	struct uni_gmem *m;
	uni_page_fn fn;
	void *ctx;
	uint64_t until_ns;
	uint32_t pages;
	bool ended;
	uint8_t *buf; /* CHUNK */
};

static int give(struct walk *w, uint64_t gva, bool exec, size_t size)
{
	for (size_t i = 0; !w->ended && i < size; i += UNI_PAGE_BYTES)
		w->ended = !w->fn(w->ctx, gva + i, exec, w->buf + i);
	return 0;
}

/* A whole chunk at once or, where not all of it is there, page by page. */
static int read_chunk(struct walk *w, uint64_t gva, uint64_t at, bool exec, size_t size)
{
	int rc = uni_gmem_read(w->m, uni_gpa_of(at), w->buf, size);

	if (rc == 0)
		return give(w, gva, exec, size);
	for (size_t i = 0; rc != -UNI_EGONE && !w->ended && i < size; i += UNI_PAGE_BYTES) {
		rc = uni_gmem_read(w->m, uni_gpa_of(at + i), w->buf, UNI_PAGE_BYTES);
		if (rc == 0)
			(void)give(w, gva + i, exec, UNI_PAGE_BYTES);
	}
	return rc == -UNI_EGONE ? rc : 0;
}

/* [gva, gva + size) is at `at`, which is physical unless the gmem is virtual. */
static int read_range(struct walk *w, uint64_t gva, uint64_t at, bool exec, uint64_t size)
{
	for (uint64_t i = 0; !w->ended && size - i >= UNI_PAGE_BYTES;) {
		uint64_t left = (size - i) & ~(uint64_t)(UNI_PAGE_BYTES - 1);
		size_t n = (size_t)uni_min(left, (uint64_t)CHUNK);
		int rc;

		if (w->pages > PAGES_MAX || uni_now_ns() > w->until_ns) {
			w->ended = true;
			break;
		}
		w->pages += CHUNK / UNI_PAGE_BYTES;
		rc = read_chunk(w, gva + i, at + i, exec, n);
		if (rc != 0)
			return rc;
		i += n;
	}
	return 0;
}

/* The part of the mapping at m that begins in a region; a leaf may be far larger than RAM. */
static int read_mapping(struct walk *w, const struct uni_mapping *map)
{
	for (size_t i = 0; !w->ended && i < uni_gmem_nr_regions(w->m); i++) {
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

static int walk_tables(struct walk *w, const struct uni_pt_root *root)
{
	const uint64_t time_ns = w->until_ns - uni_min(uni_now_ns(), w->until_ns - 1);
	const struct uni_as_budget budget = { .bytes = 512u << 20,
		.table_loads = (uint32_t)uni_min(time_ns / LOAD_NS, (uint64_t)LOADS_MAX),
		.wall_ns = time_ns };
	struct uni_as *as = NULL;
	struct uni_mapping map;
	uint64_t next = 0;
	int rc = uni_as_create(w->m, &budget, &as, NULL);

	if (rc != 0)
		return rc;
	uni_as_begin(as, root);
	do {
		rc = uni_as_next(as, uni_gva_of(next), &map);
		if (rc != 0)
			break;
		rc = read_mapping(w, &map);
		next = map.gva.v + map.size;
	} while (rc == 0 && !w->ended && next != 0);
	uni_as_destroy(as);
	return rc == -UNI_EGONE ? rc : 0;
}

static int walk_regions(struct walk *w)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && !w->ended && i < uni_gmem_nr_regions(w->m); i++) {
		const struct uni_gmem_region *r = uni_gmem_region(w->m, i);
		uint64_t skip = -r->start & (UNI_PAGE_BYTES - 1);

		if (skip < r->size)
			rc = read_range(w, r->start + skip, r->start + skip, true, r->size - skip);
	}
	return rc;
}

int uni_pages_each(struct uni_gmem *m, const struct uni_pt_root *root, uint64_t time_ns,
	uni_page_fn fn, void *ctx)
{
	struct walk w = { .m = m, .fn = fn, .ctx = ctx, .until_ns = uni_now_ns() + time_ns };
	int rc;

	w.buf = malloc(CHUNK);
	if (w.buf == NULL)
		return -UNI_ENOMEM;
	if (root != NULL && root->geometry->nr_levels != 0)
		rc = walk_tables(&w, root);
	else
		rc = walk_regions(&w);
	free(w.buf);
	return rc;
}
