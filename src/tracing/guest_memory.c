/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/guest_memory.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "mem/as.h"
#include "backend/guard.h"

#define MAPS_MAX  4096 /* kept; beyond, each read translates anew */
#define HOLD_NS	  (2 * UNI_NSEC_PER_SEC)
#define NAP_NS	  (5 * UNI_NSEC_PER_MSEC)
#define CHUNK	  (256u * 1024)
#define ALIGNMENT 8 /* of a head */
#define SEARCH_NS (8 * UNI_NSEC_PER_SEC)

/* All that is looked through is looked through once: what bounds it is time. */
static const struct uni_as_budget whole = { .bytes = UINT32_MAX, .table_loads = 1u << 24 };

struct uni_tmem {
	struct uni_gmem *gmem;
	struct uni_as *as;
	struct uni_pt_root root;
	bool is_virtual;     /* no translation */
	uint64_t bytes;	     /* of guest memory; 0: not known */
	uint64_t counter_hz; /* as the hypervisor tells; 0: it does not */
	size_t nr, last;
	struct uni_mapping map[MAPS_MAX]; /* by rising gva, apart */
};

/* The registers of the first vCPU that has page tables. */
static int find_root(struct uni_tmem *m, struct uni_target *t, struct uni_err *err)
{
	_cleanup_free_ struct uni_regs *regs = calloc((size_t)t->ops->nr_vcpus(t), sizeof(*regs));
	uint64_t until = uni_now_ns() + HOLD_NS;
	int nr = t->ops->nr_vcpus(t), rc = -UNI_EAGAIN;
	const struct timespec nap = uni_ns_timespec(NAP_NS);
	const struct uni_vcpuset all = uni_vcpuset_first((uint32_t)nr);

	if (regs == NULL)
		return uni_err_nomem(err);
	while (rc == -UNI_EAGAIN) {
		struct uni_pause pause;

		rc = uni_pause_begin_brief(&pause, t, &all, regs);
		(void)uni_pause_end(&pause);
		for (int i = 0; rc == 0 && i < nr; i++) {
			if (regs[i].state != UNI_VCPU_OFFLINE &&
				regs[i].state != UNI_VCPU_UNKNOWN &&
				t->arch->paging(&regs[i], &m->root) == 0)
				return 0;
		}
		rc = rc == 0 ? -UNI_EAGAIN : rc;
		if (rc == -UNI_EAGAIN && uni_now_ns() >= until)
			break;
		(void)nanosleep(&nap, NULL);
	}
	return uni_err_set(err, (enum uni_errcode) - rc,
		"the guest's page tables cannot be found: %s", uni_strerror(rc));
}

/* A core may have only a part of it. */
static uint64_t count_memory(struct uni_target *t)
{
	struct uni_gmem *gmem = t->ops->gmem(t);
	struct uni_target_info info = { 0 };
	uint64_t sum = 0;

	for (size_t i = 0; i < uni_gmem_nr_regions(gmem); i++)
		sum += uni_gmem_region(gmem, i)->size;
	t->ops->info(t, &info);
	return uni_max(sum, info.mem_bytes);
}

int uni_tmem_open(struct uni_target *t, struct uni_tmem **ret, struct uni_err *err)
{
	struct uni_tmem *m = calloc(1, sizeof(*m));
	int rc;

	if (m == NULL)
		return uni_err_nomem(err);
	m->gmem = t->ops->gmem(t);
	m->is_virtual = uni_gmem_space(m->gmem) == UNI_GMEM_VIRTUAL;
	rc = uni_as_create(m->gmem, &whole, &m->as, err);
	if (t->ops->counter_hz != NULL)
		m->counter_hz = t->ops->counter_hz(t);
	if (!m->is_virtual)
		m->bytes = count_memory(t);
	if (rc == 0 && !m->is_virtual)
		rc = find_root(m, t, err);
	if (rc != 0) {
		uni_tmem_close(m);
		return rc;
	}
	*ret = m;
	return 0;
}

void uni_tmem_close(struct uni_tmem *m)
{
	if (m != NULL)
		uni_as_destroy(m->as);
	free(m);
}

/* The first map that ends above va. */
static size_t lower_map(const struct uni_tmem *m, uint64_t va)
{
	size_t lo = 0, hi = m->nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->map[mid].gva.v + (m->map[mid].size - 1) < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool map_has(const struct uni_mapping *map, uint64_t va)
{
	return uni_range_has(map->gva.v, map->size, va);
}

/* Adds a map; joins it to the one below it if both are contiguous. */
static void keep_map(struct uni_tmem *m, size_t at, const struct uni_mapping *one)
{
	struct uni_mapping *below = at != 0 ? &m->map[at - 1] : NULL;

	if (below != NULL && one->gva.v - below->gva.v == below->size &&
		one->gpa.v - below->gpa.v == below->size && below->exec == one->exec) {
		below->size += one->size;
		return;
	}
	if (m->nr == MAPS_MAX)
		return;
	memmove(&m->map[at + 1], &m->map[at], (m->nr - at) * sizeof(*one));
	m->map[at] = *one;
	m->nr++;
}

static int look_up(struct uni_tmem *m, uint64_t va, struct uni_mapping *ret)
{
	size_t at = m->last < m->nr && map_has(&m->map[m->last], va) ? m->last : lower_map(m, va);
	uint64_t size = 0;
	uni_gpa gpa;
	int rc;

	if (at < m->nr && map_has(&m->map[at], va)) {
		m->last = at;
		*ret = m->map[at];
		return 0;
	}
	uni_as_begin(m->as, &m->root);
	rc = uni_as_translate(m->as, uni_gva_of(va), &gpa, &size);
	if (rc != 0)
		return rc;
	*ret = (struct uni_mapping){ .gva = uni_gva_of(va - va % size),
		.gpa = uni_gpa_of(gpa.v - va % size),
		.size = size,
		.exec = uni_as_check_exec(m->as, uni_gva_of(va)) == 0 };
	keep_map(m, at, ret);
	return 0;
}

int uni_tmem_where(struct uni_tmem *m, uint64_t va, uint64_t *gpa_ret, uint64_t *len_ret)
{
	struct uni_mapping map;
	int rc;

	if (m->is_virtual) {
		*gpa_ret = va;
		*len_ret = UINT64_MAX - va;
		return 0;
	}
	rc = look_up(m, va, &map);
	if (rc != 0)
		return rc;
	*gpa_ret = map.gpa.v + (va - map.gva.v);
	*len_ret = map.size - (va - map.gva.v);
	return 0;
}

int uni_tmem_check_exec(struct uni_tmem *m, uint64_t va)
{
	struct uni_mapping map;
	int rc = m->is_virtual ? 0 : look_up(m, va, &map);

	if (rc != 0 || m->is_virtual)
		return rc;
	return map.exec ? 0 : -UNI_EFAULT;
}

int uni_tmem_read(void *ctx, uint64_t va, void *buf, size_t len)
{
	struct uni_tmem *m = ctx;
	uint8_t *out = buf;

	if (!uni_range_ok(va, len))
		return -UNI_EFAULT;
	while (len != 0) {
		uint64_t gpa, n;
		int rc = uni_tmem_where(m, va, &gpa, &n);

		n = uni_min(n, (uint64_t)len);
		if (rc == 0)
			rc = uni_gmem_read(m->gmem, uni_gpa_of(gpa), out, (size_t)n);
		if (rc != 0)
			return rc;
		va += n;
		out += n;
		len -= (size_t)n;
	}
	return 0;
}

struct uni_ring_source uni_tmem_source(struct uni_tmem *m)
{
	return (struct uni_ring_source){ .read = uni_tmem_read,
		.ctx = m,
		.memory_bytes = m->bytes,
		.counter_hz = m->counter_hz };
}

/* Checks whether 16 bytes that look like a head are a whole one. */
static bool is_head(struct uni_tmem *m, uint64_t va)
{
	struct uni_trace_head h;

	return uni_tmem_read(m, va, &h, UNI_TRACE_HEAD_OLD) == 0 && uni_ring_version_ok(&h) &&
	       h.sub_size == UNI_TRACE_SUB_SIZE && h.nr_cpus != 0 && h.nr_cpus <= UNI_RING_CPUS_MAX;
}

struct search {
	struct uni_tmem *m;
	uint8_t *buf; /* CHUNK bytes */
	uint64_t until_ns;
};

/* A head is aligned, so it never lies across two chunks, nor its magic across two pages. */
static bool search_chunk(const struct search *s, uint64_t va, uint64_t gpa, size_t n, uint64_t *ret)
{
	static const uint8_t magic[16] = UNI_TRACE_MAGIC;

	if (uni_gmem_read(s->m->gmem, uni_gpa_of(gpa), s->buf, n) != 0)
		return false;
	for (size_t i = 0; i + sizeof(magic) <= n; i += ALIGNMENT) {
		if (memcmp(s->buf + i, magic, sizeof(magic)) == 0 && is_head(s->m, va + i)) {
			*ret = va + i;
			return true;
		}
	}
	return false;
}

/* All of [va, va + len) is mapped from gpa on; searches the parts that are memory. */
static bool search_mapping(const struct search *s, const struct uni_mapping *map, uint64_t *ret)
{
	for (size_t i = 0; i < uni_gmem_nr_regions(s->m->gmem); i++) {
		const struct uni_gmem_region *r = uni_gmem_region(s->m->gmem, i);
		uint64_t from, to;

		if (!uni_range_overlaps(r->start, r->size, map->gpa.v, map->size))
			continue;
		from = uni_max(r->start, map->gpa.v);
		to = uni_min(r->start + (r->size - 1), map->gpa.v + (map->size - 1));
		for (uint64_t at = from; at <= to && uni_now_ns() < s->until_ns;) {
			size_t n = (size_t)uni_min(to - at, (uint64_t)CHUNK - 1) + 1;

			if (search_chunk(s, map->gva.v + (at - map->gpa.v), at, n, ret))
				return true;
			if (__builtin_add_overflow(at, n, &at))
				break;
		}
	}
	return false;
}

int uni_tmem_find_head(struct uni_tmem *m, uint64_t *ret, struct uni_err *err)
{
	_cleanup_free_ uint8_t *buf = malloc(CHUNK);
	const struct search s = { .m = m, .buf = buf, .until_ns = uni_now_ns() + SEARCH_NS };
	struct uni_mapping map;
	uint64_t next = 0;

	if (buf == NULL)
		return uni_err_nomem(err);
	if (m->is_virtual)
		return uni_err_set(err, UNI_ENOTSUP,
			"the trace ring's head cannot be looked for in this target's memory: give "
			"the guest's image with symbols (--image ELF)");
	uni_as_begin(m->as, &m->root);
	while (uni_as_next(m->as, uni_gva_of(next), &map) == 0 && uni_now_ns() < s.until_ns) {
		if (search_mapping(&s, &map, ret))
			return 0;
		if (__builtin_add_overflow(map.gva.v, map.size, &next))
			break;
		uni_as_begin(m->as, &m->root);
	}
	return uni_err_set(err, UNI_ENOENT,
		"no trace ring in this guest: it has to link the tracer (" UNI_GUEST_README
		") and call uni_trace_init()%s",
		uni_now_ns() < s.until_ns ? "" : "; the search was given up after 8 s");
}
