/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/vmm/write.h"

#include <errno.h>
#include <sys/uio.h>

#include "base/checked.h"
#include "backend/vmm/maps.h"

#define BATCH 64 /* extents in one system call */

typedef ssize_t copy_fn(pid_t pid, const struct iovec *local, unsigned long nr_local,
	const struct iovec *remote, unsigned long nr_remote, unsigned long flags);

static bool find_hva(const struct uni_gmem *m, uint64_t gpa, size_t len, uint64_t *ret)
{
	for (size_t i = 0; i < uni_gmem_nr_regions(m); i++) {
		const struct uni_gmem_region *r = uni_gmem_region(m, i);

		if (uni_range_contains(r->start, r->size, gpa, len)) {
			*ret = r->cookie + (gpa - r->start);
			return true;
		}
	}
	return false;
}

static int code_of(int e)
{
	switch (e) {
	case ESRCH:
		return -UNI_EGONE;
	case EPERM:
		return -UNI_EPERM;
	default:
		return -UNI_EFAULT;
	}
}

/*
 * Copies extents [0, nr) between the process and buf; *done_ret: how many are whole. The kernel
 * copies them in order. It copies an extent of at most two pages without checking for signals.
 */
static int copy_all(int pid, const struct uni_gmem *m, const struct uni_patch_plan *p, uint8_t *buf,
	size_t nr, copy_fn *copy, size_t *done_ret)
{
	*done_ret = 0;
	while (*done_ret < nr) {
		struct iovec local[BATCH], remote[BATCH];
		size_t n = uni_min(nr - *done_ret, (size_t)BATCH);
		ssize_t got;

		for (size_t i = 0; i < n; i++) {
			const struct uni_patch_extent *e = &p->extent[*done_ret + i];
			uint64_t hva = 0;

			if (!find_hva(m, e->gpa, e->len, &hva))
				return -UNI_EFAULT;
			local[i].iov_base = buf + e->at;
			remote[i].iov_base = (void *)(uintptr_t)hva;
			local[i].iov_len = remote[i].iov_len = e->len;
		}
		got = copy(pid, local, n, remote, n, 0);
		if (got < 0)
			return code_of(errno);
		for (size_t i = 0; i < n && (size_t)got >= local[i].iov_len; i++, (*done_ret)++)
			got -= (ssize_t)local[i].iov_len;
		if (got != 0)
			return -UNI_EFAULT;
	}
	return 0;
}

static int write_all(int pid, const struct uni_gmem *m, const struct uni_patch_plan *p,
	const struct uni_vmm_forced *f, uint8_t *buf, size_t nr, size_t *done_ret)
{
	int rc = copy_all(pid, m, p, buf, nr, process_vm_writev, done_ret);

	if (rc != -UNI_EFAULT || f->map.nr == 0)
		return rc;
	for (rc = 0; rc == 0 && *done_ret < nr; *done_ret += rc == 0) {
		const struct uni_patch_extent *e = &p->extent[*done_ret];
		uint64_t hva = 0;

		if (!find_hva(m, e->gpa, e->len, &hva))
			return -UNI_EFAULT;
		rc = uni_vmm_forced_write(f, pid, hva, buf + e->at, e->len);
	}
	return rc;
}

static void find_forced(
	int pid, const struct uni_gmem *m, const struct uni_patch_plan *p, struct uni_vmm_forced *f)
{
	_cleanup_maps_ struct uni_vmm_maps maps = { 0 };
	struct uni_err err;

	if (uni_vmm_maps_read(pid, &maps, &err) != 0)
		return;
	for (size_t i = 0; i < p->nr; i++) {
		uint64_t hva = 0;

		if (find_hva(m, p->extent[i].gpa, p->extent[i].len, &hva) &&
			uni_vmm_forced_add(f, pid, &maps, hva, p->extent[i].len) != 0)
			return;
	}
}

void uni_vmm_patch_rehearse(
	int pid, const struct uni_gmem *m, struct uni_patch_plan *p, struct uni_vmm_forced *f)
{
	size_t done;

	find_forced(pid, m, p, f);
	if (copy_all(pid, m, p, p->was, p->nr, process_vm_readv, &done) == 0)
		(void)uni_patch_apply(p);
	p->job->nr_written = 0;
	p->job->bad = 0;
}

int uni_vmm_patch(
	int pid, const struct uni_gmem *m, struct uni_patch_plan *p, const struct uni_vmm_forced *f)
{
	size_t done, back;
	int rc = copy_all(pid, m, p, p->was, p->nr, process_vm_readv, &done);

	if (rc != 0) {
		p->job->bad = done < p->nr ? p->extent[done].first : 0;
		return rc;
	}
	rc = uni_patch_apply(p);
	if (rc != 0 || p->job->nr_written == 0)
		return rc;
	rc = write_all(pid, m, p, f, p->want, p->nr, &done);
	if (rc == 0)
		return 0;
	p->job->bad = done < p->nr ? p->extent[done].first : 0;
	p->job->nr_written = 0;
	/* The extent that failed may be written in part. */
	(void)write_all(pid, m, p, f, p->was, uni_min(done + 1, p->nr), &back);
	return rc;
}
