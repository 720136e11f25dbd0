/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/vmm/maps.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"

#define MAPS_MAX ((size_t)64 << 20)
#define RAM_MAX	 (8ull << 40)

/* One field of a line: digits of `base` up to `end`; false if there is none. */
static bool take_number(const char **p, const char *stop, int base, uint64_t *ret)
{
	uint64_t v = 0;
	const char *s = *p;

	for (; s < stop; s++) {
		int d = uni_hex_digit(*s);

		if (d < 0 || d >= base)
			break;
		if (__builtin_mul_overflow(v, (uint64_t)base, &v))
			return false;
		v += (uint64_t)d; /* cannot wrap: the product is a multiple of base */
	}
	if (s == *p)
		return false;
	*p = s;
	*ret = v;
	return true;
}

static bool take_char(const char **p, const char *stop, char c)
{
	if (*p == stop || **p != c)
		return false;
	(*p)++;
	return true;
}

/* "7f00-7f10 rw-p 00000000 00:01 1024  /path" (proc(5)) */
static bool parse_line(const char *p, const char *stop, struct uni_vmm_map *ret)
{
	uint64_t end, dev;

	memset(ret, 0, sizeof(*ret));
	if (!take_number(&p, stop, 16, &ret->start) || !take_char(&p, stop, '-') ||
		!take_number(&p, stop, 16, &end) || !take_char(&p, stop, ' '))
		return false;
	if (end <= ret->start || stop - p < 5)
		return false;
	ret->size = end - ret->start;
	ret->readable = p[0] == 'r';
	ret->writable = p[1] == 'w';
	ret->executable = p[2] == 'x';
	ret->shared = p[3] == 's';
	p += 4;
	if (!take_char(&p, stop, ' ') || !take_number(&p, stop, 16, &ret->offset) ||
		!take_char(&p, stop, ' ') || !take_number(&p, stop, 16, &dev) ||
		!take_char(&p, stop, ':') || !take_number(&p, stop, 16, &dev) ||
		!take_char(&p, stop, ' ') || !take_number(&p, stop, 10, &ret->inode))
		return false;
	while (take_char(&p, stop, ' '))
		;
	(void)uni_text_clean(ret->name, sizeof(ret->name), p, (size_t)(stop - p));
	return true;
}

int uni_vmm_maps_parse(const void *data, size_t size, struct uni_vmm_maps *ret)
{
	const char *p = data, *end = p + size;
	uint64_t top = 0;

	memset(ret, 0, sizeof(*ret));
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		const char *stop = nl != NULL ? nl : end;
		struct uni_vmm_map m;

		if (parse_line(p, stop, &m) && m.start >= top) {
			if (!uni_vec_push(&ret->m, m)) {
				uni_vmm_maps_deinit(ret);
				return -UNI_ENOMEM;
			}
			top = m.start + m.size;
		}
		p = nl != NULL ? nl + 1 : end;
	}
	return 0;
}

int uni_vmm_maps_read(int pid, struct uni_vmm_maps *ret, struct uni_err *err)
{
	char path[64];
	_cleanup_free_ char *data = NULL;
	size_t size;
	int rc;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	rc = uni_read_file(path, MAPS_MAX, &data, &size, err);
	if (rc != 0)
		return rc;
	rc = uni_vmm_maps_parse(data, size, ret);
	if (rc != 0)
		return uni_err_set(err, UNI_ENOMEM, "out of memory reading %s", path);
	return 0;
}

void uni_vmm_maps_deinit(struct uni_vmm_maps *maps)
{
	uni_vec_free(&maps->m);
}

bool uni_vmm_map_may_be_ram(const struct uni_vmm_map *m)
{
	return m->readable && m->size <= RAM_MAX && strncmp(m->name, "anon_inode:", 11) != 0 &&
	       strncmp(m->name, "[v", 2) != 0;
}

/* Index of the mapping that contains addr, or nr. */
static size_t find_index(const struct uni_vmm_maps *maps, uint64_t addr)
{
	size_t lo = 0, hi = maps->m.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (maps->m.v[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || !uni_range_has(maps->m.v[lo - 1].start, maps->m.v[lo - 1].size, addr))
		return maps->m.nr;
	return lo - 1;
}

const struct uni_vmm_map *uni_vmm_maps_find(const struct uni_vmm_maps *maps, uint64_t addr)
{
	size_t i = find_index(maps, addr);

	return i < maps->m.nr ? &maps->m.v[i] : NULL;
}

/* Does b follow a, both in memory and in the file that backs it? */
static bool goes_on(const struct uni_vmm_map *a, const struct uni_vmm_map *b)
{
	if (b->start - a->start != a->size || a->shared != b->shared || a->inode != b->inode)
		return false;
	if (a->inode != 0 && b->offset - a->offset != a->size)
		return false;
	return strcmp(a->name, b->name) == 0;
}

bool uni_vmm_maps_run(const struct uni_vmm_maps *maps, uint64_t addr, uint64_t want,
	uint64_t *start_ret, uint64_t *size_ret)
{
	size_t first = find_index(maps, addr), last = first;
	const struct uni_vmm_map *v = maps->m.v;

	if (first == maps->m.nr || !v[first].readable)
		return false;
	while (first > 0 && v[first].start > want && goes_on(&v[first - 1], &v[first]))
		first--;
	while (last + 1 < maps->m.nr && v[last + 1].readable && goes_on(&v[last], &v[last + 1]))
		last++;
	*start_ret = v[first].start;
	*size_ret = v[last].start + v[last].size - v[first].start;
	return true;
}
