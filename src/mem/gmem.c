/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/gmem.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

struct uni_gmem {
	const struct uni_gmem_ops *ops;
	void *ctx;
	enum uni_gmem_space space;
	size_t granule;
	bool direct;
	struct uni_gmem_region *region; /* sorted by start, not overlapping */
	size_t nr;
};

static int by_start(const void *a, const void *b)
{
	const struct uni_gmem_region *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* A sorted and checked copy of the regions, owned by the caller; NULL if nr is 0. */
static int copy_regions(const struct uni_gmem_region *regions, size_t nr,
	struct uni_gmem_region **ret, struct uni_err *err)
{
	struct uni_gmem_region *copy;
	size_t bytes;

	*ret = NULL;
	if (nr == 0)
		return 0;
	if (__builtin_mul_overflow(nr, sizeof(*copy), &bytes))
		return uni_err_set(err, UNI_ENOMEM, "%zu memory regions are too many", nr);
	copy = malloc(bytes);
	if (copy == NULL)
		return uni_err_set(err, UNI_ENOMEM, "no memory for %zu memory regions", nr);
	memcpy(copy, regions, bytes);
	qsort(copy, nr, sizeof(*copy), by_start);
	for (size_t i = 0; i < nr; i++) {
		const struct uni_gmem_region *r = &copy[i];
		bool ok = r->size != 0 && uni_range_ok(r->start, r->size);

		if (ok && i > 0)
			ok = !uni_range_overlaps(r[-1].start, r[-1].size, r->start, r->size);
		if (!ok) {
			(void)uni_err_set(err, UNI_EINVAL,
				"guest memory region at 0x%llx of 0x%llx bytes is empty, wraps or "
				"overlaps another",
				(unsigned long long)r->start, (unsigned long long)r->size);
			free(copy);
			return -UNI_EINVAL;
		}
	}
	*ret = copy;
	return 0;
}

int uni_gmem_create(const struct uni_gmem_ops *ops, void *ctx, enum uni_gmem_space space,
	const struct uni_gmem_region *regions, size_t nr, struct uni_gmem **ret,
	struct uni_err *err)
{
	struct uni_gmem *m = calloc(1, sizeof(*m));
	int rc;

	if (m == NULL)
		return uni_err_set(err, UNI_ENOMEM, "no memory for the guest memory reader");
	rc = copy_regions(regions, nr, &m->region, err);
	if (rc != 0) {
		free(m);
		return rc;
	}
	m->ops = ops;
	m->ctx = ctx;
	m->space = space;
	m->granule = UNI_GMEM_GRANULE_MAX;
	m->nr = nr;
	*ret = m;
	return 0;
}

int uni_gmem_set_regions(
	struct uni_gmem *m, const struct uni_gmem_region *regions, size_t nr, struct uni_err *err)
{
	struct uni_gmem_region *copy;
	int rc = copy_regions(regions, nr, &copy, err);

	if (rc != 0)
		return rc;
	free(m->region);
	m->region = copy;
	m->nr = nr;
	return 0;
}

void uni_gmem_destroy(struct uni_gmem *m)
{
	if (m == NULL)
		return;
	if (m->ops->close != NULL)
		m->ops->close(m->ctx);
	free(m->region);
	free(m);
}

enum uni_gmem_space uni_gmem_space(const struct uni_gmem *m)
{
	return m->space;
}

size_t uni_gmem_nr_regions(const struct uni_gmem *m)
{
	return m->nr;
}

const struct uni_gmem_region *uni_gmem_region(const struct uni_gmem *m, size_t i)
{
	return i < m->nr ? &m->region[i] : NULL;
}

void uni_gmem_set_granule(struct uni_gmem *m, size_t bytes)
{
	size_t g = UNI_GMEM_GRANULE_MIN;

	while (g < bytes && g < UNI_GMEM_GRANULE_MAX)
		g *= 2;
	m->granule = g;
}

size_t uni_gmem_granule(const struct uni_gmem *m)
{
	return m->granule;
}

void uni_gmem_set_direct(struct uni_gmem *m)
{
	m->direct = true;
}

bool uni_gmem_is_direct(const struct uni_gmem *m)
{
	return m->direct;
}

/* The region that holds the byte at gpa, or NULL. */
static const struct uni_gmem_region *find_region(const struct uni_gmem *m, uint64_t gpa)
{
	size_t lo = 0, hi = m->nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->region[mid].start <= gpa)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || !uni_range_has(m->region[lo - 1].start, m->region[lo - 1].size, gpa))
		return NULL;
	return &m->region[lo - 1];
}

bool uni_gmem_has(const struct uni_gmem *m, uni_gpa gpa)
{
	return find_region(m, gpa.v) != NULL;
}

bool uni_gmem_may_be_code(const struct uni_gmem *m, uni_gpa gpa)
{
	return uni_gmem_has(m, gpa) && (m->ops->is_code == NULL || m->ops->is_code(m->ctx, gpa.v));
}

int uni_gmem_read(struct uni_gmem *m, uni_gpa gpa, void *buf, size_t len)
{
	uint64_t at = gpa.v;
	uint8_t *out = buf;

	/* Nearly all reads are of low memory. */
	if (m->nr != 0 && uni_range_contains(m->region[0].start, m->region[0].size, at, len) &&
		len != 0)
		return m->ops->read(m->ctx, &m->region[0], at - m->region[0].start, buf, len);
	if (!uni_range_ok(at, len))
		return -UNI_ERANGE;
	while (len > 0) {
		const struct uni_gmem_region *r = find_region(m, at);
		uint64_t offset, n;
		int rc;

		if (r == NULL)
			return -UNI_ERANGE;
		offset = at - r->start;
		n = uni_min((uint64_t)len, r->size - offset);
		rc = m->ops->read(m->ctx, r, offset, out, (size_t)n);
		if (rc != 0)
			return rc;
		at += n;
		out += n;
		len -= (size_t)n;
	}
	return 0;
}

bool uni_gmem_can_read_many(const struct uni_gmem *m)
{
	return m->ops->read_many != NULL;
}

size_t uni_gmem_read_many(
	struct uni_gmem *m, const uni_gpa *gpa, void *const *buf, size_t len, size_t nr)
{
	struct uni_gmem_piece piece[UNI_GMEM_MANY_MAX];
	size_t n = 0;
	int rc;

	if (m->ops->read_many == NULL)
		return 0;
	for (; n < nr && n < uni_array_len(piece); n++) {
		const struct uni_gmem_region *r = find_region(m, gpa[n].v);

		if (r == NULL || !uni_range_contains(r->start, r->size, gpa[n].v, len))
			break;
		piece[n] = (struct uni_gmem_piece){ r, gpa[n].v - r->start, buf[n], len };
	}
	rc = n != 0 ? m->ops->read_many(m->ctx, piece, n) : 0;
	return rc > 0 ? (size_t)rc : 0;
}
