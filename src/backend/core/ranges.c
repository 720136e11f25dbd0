/* SPDX-License-Identifier: BSD-2-Clause */
/* Guest memory in a core: the place of each range in the file. */
#include <stdlib.h>

#include "base/checked.h"
#include "backend/core/file.h"

#define REGIONS_MAX ((size_t)1 << 24) /* 64 GiB of pages that are all apart */

/* Does b follow a, both in memory and in the file? */
static bool region_follows(const struct uni_gmem_region *a, const struct uni_gmem_region *b)
{
	return b->start - a->start == a->size && b->cookie - a->cookie == a->size;
}

int uni_core_add_memory(struct uni_core_file *f, const struct uni_core_src *src, uint64_t start,
	uint64_t offset, uint64_t size, struct uni_err *err)
{
	uint64_t room = offset < src->size ? src->size - offset : 0;
	struct uni_gmem_region r = { .start = start, .size = size, .cookie = offset };
	struct uni_gmem_region *last;
	uint64_t total;

	if (!uni_range_ok(start, size))
		return uni_err_set(err, UNI_EFORMAT, "memory at 0x%llx wraps around",
			(unsigned long long)start);
	if (__builtin_add_overflow(f->mem_bytes, size, &total))
		return uni_err_set(err, UNI_EFORMAT, "it claims more memory than can be");
	f->mem_bytes = total;
	if (size > room) {
		f->missing += size - room;
		r.size = room;
	}
	if (r.size == 0)
		return 0;
	if (f->region.nr != 0) {
		last = &f->region.v[f->region.nr - 1];
		if (region_follows(last, &r) && uni_range_ok(last->start, last->size + r.size)) {
			last->size += r.size;
			return 0;
		}
	}
	if (f->region.nr == REGIONS_MAX)
		return uni_err_set(err, UNI_ENOTSUP, "its memory is in too many pieces");
	if (!uni_vec_push(&f->region, r))
		return uni_err_set(err, UNI_ENOMEM, "no memory for %zu regions", f->region.nr);
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct uni_gmem_region *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->cookie < y->cookie ? -1 : x->cookie > y->cookie;
}

/* Removes the part of b at or before the last byte of a; false if nothing is left. */
static bool cut_front(const struct uni_gmem_region *a, struct uni_gmem_region *b)
{
	uint64_t last = a->start + (a->size - 1);
	uint64_t cut;

	if (b->start > last)
		return true;
	cut = last - b->start; /* and one more */
	if (cut >= b->size - 1)
		return false;
	b->start += cut + 1;
	b->cookie += cut + 1;
	b->size -= cut + 1;
	return true;
}

void uni_core_join_memory(struct uni_core_file *f, bool bridge)
{
	struct uni_gmem_region *v = f->region.v;
	size_t n = 0;

	if (f->region.nr == 0)
		return;
	qsort(v, f->region.nr, sizeof(*v), by_start);
	for (size_t i = 1; i < f->region.nr; i++) {
		struct uni_gmem_region *a = &v[n], b = v[i];
		uint64_t gap = b.start - a->start;

		/* a may begin behind b, as its front was cut off. */
		if (b.start >= a->start && b.cookie - a->cookie == gap &&
			(gap <= a->size || bridge))
			a->size = uni_max(a->size, gap + b.size);
		else if (cut_front(a, &b))
			v[++n] = b;
	}
	f->region.nr = n + 1;
}
