/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/vmm/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/door.h"
#include "base/observer.h"

#define PAGE_SIZE	4096u
#define PAGEMAP_PRESENT (1ull << 63) /* Documentation/admin-guide/mm/pagemap.rst */
#define BATCH		512u	     /* pages read by one system call; below IOV_MAX */
#define VERIFY_CHUNK	65536u
#define PICK_WINDOWS	1024u /* in each range; enough to find distinctive bytes */

int uni_vmm_copy(int pid, uint64_t hva, void *buf, size_t len)
{
	struct iovec local = { .iov_base = buf, .iov_len = len };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)hva, .iov_len = len };
	ssize_t n = uni_observer_copy(pid, &local, 1, &remote, 1);

	if (n >= 0)
		return (size_t)n == len ? 0 : -UNI_EFAULT;
	switch (errno) {
	case EFAULT:
		return -UNI_EFAULT;
	case ESRCH:
		return -UNI_EGONE;
	case EPERM:
		return -UNI_EPERM;
	default:
		return -UNI_EIO;
	}
}

static unsigned distinct_bytes(const uint8_t *p, size_t n)
{
	bool seen[256] = { false };
	unsigned count = 0;

	for (size_t i = 0; i < n; i++) {
		count += !seen[p[i]];
		seen[p[i]] = true;
	}
	return count;
}

static bool is_code(const struct uni_text_hint *t)
{
	return t->exec && t->size != 0 && uni_range_ok(t->paddr, t->size);
}

/* Is any byte of [o, o + n) in a place where a tracer may have put other bytes? */
static bool may_be_patched(const struct uni_text_hint *t, size_t o, size_t n)
{
	size_t lo = 0, hi = t->nr_patched;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->patched[mid] < o && o - t->patched[mid] >= UNI_TEXT_PATCH_BYTES)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->nr_patched && uni_range_overlaps(t->patched[lo], UNI_TEXT_PATCH_BYTES, o, n);
}

/* Picks the most distinctive bytes; with `any`, also bytes that may differ now. */
static unsigned pick_probe(
	const struct uni_text_hint *text, size_t nr, bool any, struct uni_scan_probe *ret)
{
	unsigned best = 0;

	for (size_t i = 0; i < nr; i++) {
		size_t windows = 0;

		if (!is_code(&text[i]))
			continue;
		for (size_t o = 0; o < text[i].size && windows < PICK_WINDOWS; windows++) {
			uint64_t paddr = text[i].paddr + o;
			size_t left = uni_min(text[i].size - o, PAGE_SIZE - paddr % PAGE_SIZE);
			size_t n = uni_min(left, UNI_SCAN_PROBE_MAX - paddr % UNI_SCAN_PROBE_MAX);
			unsigned d = distinct_bytes(text[i].bytes + o, n);

			if (d > best && (any || !may_be_patched(&text[i], o, n))) {
				best = d;
				*ret = (struct uni_scan_probe){ paddr, text[i].bytes + o, n };
			}
			o += n;
		}
	}
	return best;
}

bool uni_scan_pick(const struct uni_text_hint *text, size_t nr, struct uni_scan_probe *ret)
{
	return pick_probe(text, nr, false, ret) != 0 || pick_probe(text, nr, true, ret) != 0;
}

/* How many bytes differ in this page, which is at o in t. With too many, it is another page. */
static uint64_t count_differing(const uint8_t *a, const struct uni_text_hint *t, size_t o, size_t n)
{
	const uint8_t *b = t->bytes + o;
	uint64_t nr = 0;

	if (memcmp(a, b, n) == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		nr += a[i] != b[i] && !may_be_patched(t, o + i, 1);
	return nr;
}

static int compare_text(const uint8_t *a, const struct uni_text_hint *t, size_t o, size_t size,
	uint64_t most, uint64_t *differ)
{
	for (size_t at = 0; at < size;) {
		size_t n =
			uni_min(size - at, (size_t)(PAGE_SIZE - (t->paddr + o + at) % PAGE_SIZE));
		uint64_t nr = count_differing(a + at, t, o + at, n);

		*differ += nr;
		if (nr > UNI_SCAN_PAGE_DIFFER_MAX || *differ > most)
			return -UNI_EMISMATCH;
		at += n;
	}
	return 0;
}

static int verify_one(int pid, uint64_t hva, const struct uni_text_hint *t, uint8_t *buf,
	uint64_t most, uint64_t *differ)
{
	for (size_t o = 0; o < t->size;) {
		/* Pieces end at page ends: the differences in a page must be counted together. */
		size_t n =
			uni_min(t->size - o, (size_t)(VERIFY_CHUNK - (t->paddr + o) % PAGE_SIZE));
		int rc = uni_vmm_copy(pid, hva + o, buf, n);

		if (rc != 0)
			return rc == -UNI_EFAULT ? -UNI_EMISMATCH : rc;
		rc = compare_text(buf, t, o, n, most, differ);
		if (rc != 0)
			return rc;
		o += n;
	}
	return 0;
}

int uni_scan_verify(
	int pid, uint64_t hva0, const struct uni_text_hint *text, size_t nr, uint64_t *differ_ret)
{
	uint8_t *buf = malloc(VERIFY_CHUNK);
	uint64_t total = 0;
	int rc = 0;

	*differ_ret = 0;
	if (buf == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < nr; i++)
		total += is_code(&text[i]) ? text[i].size : 0;
	for (size_t i = 0; rc == 0 && i < nr; i++) {
		if (is_code(&text[i]))
			rc = verify_one(pid, hva0 + text[i].paddr, &text[i], buf,
				total / UNI_SCAN_DIFFER_PART, differ_ret);
	}
	free(buf);
	return rc;
}

/* The state of one scan; it is large, so it is on the heap. */
struct scan {
	int pid, pagemap;
	const struct uni_text_hint *text;
	size_t nr_text;
	struct uni_scan_probe probe;
	struct uni_scan_hits *ret;
	uint64_t entry[BATCH];
	uint64_t hva[BATCH];
	struct iovec remote[BATCH];
	uint8_t bytes[BATCH][UNI_SCAN_PROBE_MAX];
};

static int check_place(struct scan *s, uint64_t hva)
{
	uint64_t hva0 = hva - s->probe.paddr; /* may wrap: then RAM does not begin at GPA 0 */
	uint64_t differ;
	int rc = uni_scan_verify(s->pid, hva0, s->text, s->nr_text, &differ);

	if (rc == -UNI_EMISMATCH) {
		s->ret->nr_partial++;
		return 0;
	}
	if (rc == 0 && s->ret->nr < UNI_SCAN_HITS_MAX) {
		s->ret->differ[s->ret->nr] = differ;
		s->ret->hva0[s->ret->nr++] = hva0;
	}
	return rc;
}

/* Reads the probe's bytes from the nr places in s->hva; skips places that fail. */
static int look_at_places(struct scan *s, size_t nr)
{
	size_t len = s->probe.size, done = 0;

	for (size_t i = 0; i < nr; i++)
		s->remote[i] =
			(struct iovec){ .iov_base = (void *)(uintptr_t)s->hva[i], .iov_len = len };
	while (done < nr) {
		struct iovec local = { .iov_base = s->bytes, .iov_len = (nr - done) * len };
		ssize_t n = uni_observer_copy(s->pid, &local, 1, s->remote + done, nr - done);
		size_t got = n > 0 ? (size_t)n / len : 0;

		if (n < 0 && errno != EFAULT)
			return errno == ESRCH ? -UNI_EGONE : errno == EPERM ? -UNI_EPERM : -UNI_EIO;
		for (size_t i = 0; i < got; i++) {
			const uint8_t *p = &s->bytes[0][0] + i * len;
			int rc = 0;

			if (memcmp(p, s->probe.bytes, len) == 0)
				rc = check_place(s, s->hva[done + i]);
			if (rc != 0)
				return rc;
		}
		done += got;
		if (done < nr) /* this place cannot be read */
			done++;
	}
	s->ret->nr_pages += nr;
	return 0;
}

static int scan_map(struct scan *s, const struct uni_vmm_map *m)
{
	uint64_t nr_pages = m->size / PAGE_SIZE;

	for (uint64_t page = 0; page < nr_pages; page += BATCH) {
		uint64_t first = m->start / PAGE_SIZE + page;
		size_t want = (size_t)uni_min(nr_pages - page, (uint64_t)BATCH), nr = 0;
		ssize_t n = pread(s->pagemap, s->entry, want * sizeof(s->entry[0]),
			(off_t)(first * sizeof(s->entry[0])));
		int rc;

		if (n <= 0)
			return 0; /* [vsyscall] has no entries; a process that went away is noticed
				     below */
		for (size_t i = 0; i < (size_t)n / sizeof(s->entry[0]); i++) {
			if ((s->entry[i] & PAGEMAP_PRESENT) != 0)
				s->hva[nr++] = (first + i) * PAGE_SIZE + s->probe.paddr % PAGE_SIZE;
		}
		rc = nr != 0 ? look_at_places(s, nr) : 0;
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int scan_maps(struct scan *s, const struct uni_vmm_maps *maps, struct uni_err *err)
{
	char path[64];
	int rc = 0;

	if (!uni_scan_pick(s->text, s->nr_text, &s->probe))
		return uni_err_set(err, UNI_EINVAL, "the image has no code to look for");
	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", s->pid);
	s->pagemap = uni_door_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (s->pagemap < 0)
		return uni_err_set(err, errno == ENOENT ? UNI_EGONE : UNI_EPERM,
			"cannot open %s: %s", path, strerror(errno));
	for (size_t i = 0; rc == 0 && i < maps->m.nr; i++) {
		if (uni_vmm_map_may_be_ram(&maps->m.v[i]))
			rc = scan_map(s, &maps->m.v[i]);
	}
	(void)close(s->pagemap);
	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"cannot read the memory of pid %d: %s", s->pid, uni_strerror(rc));
	return 0;
}

int uni_scan_image(int pid, const struct uni_vmm_maps *maps, const struct uni_text_hint *text,
	size_t nr, struct uni_scan_hits *ret, struct uni_err *err)
{
	struct scan *s = calloc(1, sizeof(*s));
	int rc;

	memset(ret, 0, sizeof(*ret));
	if (s == NULL)
		return uni_err_nomem(err);
	*s = (struct scan){ .pid = pid, .text = text, .nr_text = nr, .ret = ret };
	rc = scan_maps(s, maps, err);
	free(s);
	return rc;
}
