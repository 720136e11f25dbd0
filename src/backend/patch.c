/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/patch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/hurry.h"

#define PAGE 4096u

bool uni_patch_allowed(struct uni_target *t)
{
	return t->ops->write_text != NULL && (t->ops->caps(t) & UNI_CAP_WRITE_TEXT) != 0 &&
	       (t->nr_left_off == 0 || t->ops->write_stops_left_off);
}

int uni_patch_run(struct uni_target *t, struct uni_patch_job *job)
{
	struct uni_hurry hurry;
	int rc;

	job->bad = 0;
	job->pause_ns = job->nr_written = 0;
	if (!uni_patch_allowed(t))
		return -UNI_ENOTSUP;
	for (size_t i = 0; i < job->nr; i++) {
		const struct uni_patch *p = &job->patch[i], *before = i != 0 ? p - 1 : p;

		job->bad = i;
		if (p->len == 0 || p->len > UNI_PATCH_BYTES || !uni_range_ok(p->gpa, p->len) ||
			!uni_range_ok(p->va, p->len) ||
			(i != 0 && (before->gpa >= p->gpa || p->gpa - before->gpa < before->len)))
			return -UNI_EINVAL;
	}
	job->bad = 0;
	if (job->nr == 0)
		return 0;
	uni_hurry_begin(&hurry);
	rc = t->ops->write_text(t, job);
	uni_hurry_end(&hurry);
	return rc;
}

/* Does patch p still fit into the extent? */
static bool patch_joins(const struct uni_patch_extent *e, const struct uni_patch *p, size_t max)
{
	uint64_t last = p->gpa + (p->len - 1u);

	return last - e->gpa < max && last / PAGE - e->gpa / PAGE <= 1;
}

static size_t make_extents(struct uni_patch_plan *plan, size_t max)
{
	const struct uni_patch_job *job = plan->job;
	struct uni_patch_extent *e = NULL;
	size_t nr = 0;

	for (size_t i = 0; i < job->nr; i++) {
		const struct uni_patch *p = &job->patch[i];

		plan->pieces = plan->pieces || p->pieces;
		if (e == NULL || !patch_joins(e, p, max)) {
			e = &plan->extent[nr++];
			*e = (struct uni_patch_extent){ .gpa = p->gpa, .first = i };
		}
		e->nr++;
		e->len = (size_t)(p->gpa - e->gpa) + p->len;
	}
	return nr;
}

/* Allocates whole pages that are in memory when they are needed. */
static void *get_pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	(void)mlock(p, size); /* as far as RLIMIT_MEMLOCK permits */
	return p;
}

int uni_patch_plan(struct uni_patch_job *job, size_t max, struct uni_patch_plan *ret)
{
	*ret = (struct uni_patch_plan){ .job = job };
	ret->extent = calloc(job->nr, sizeof(*ret->extent));
	if (ret->extent == NULL)
		return -UNI_ENOMEM;
	ret->nr = make_extents(ret, max);
	for (size_t i = 0; i < ret->nr; i++) {
		ret->extent[i].at = ret->size;
		ret->size += ret->extent[i].len;
	}
	ret->was = get_pages(ret->size);
	ret->want = get_pages(ret->size);
	if (ret->was != NULL && ret->want != NULL)
		return 0;
	uni_patch_plan_deinit(ret);
	return -UNI_ENOMEM;
}

void uni_patch_plan_deinit(struct uni_patch_plan *p)
{
	if (p->was != NULL)
		(void)munmap(p->was, p->size);
	if (p->want != NULL)
		(void)munmap(p->want, p->size);
	free(p->extent);
	p->was = p->want = NULL;
	p->extent = NULL;
}

int uni_patch_apply(struct uni_patch_plan *p)
{
	struct uni_patch_job *job = p->job;

	memcpy(p->want, p->was, p->size);
	job->nr_written = 0;
	for (size_t i = 0; i < p->nr; i++) {
		const struct uni_patch_extent *e = &p->extent[i];

		for (size_t k = e->first; k < e->first + e->nr; k++) {
			const struct uni_patch *one = &job->patch[k];
			uint8_t *at = p->want + e->at + (one->gpa - e->gpa);

			if (memcmp(at, one->new_bytes, one->len) == 0)
				continue;
			if (!one->any && memcmp(at, one->old_bytes, one->len) != 0) {
				job->bad = k;
				return -UNI_EMISMATCH;
			}
			memcpy(at, one->new_bytes, one->len);
			job->nr_written += !one->any;
		}
	}
	return 0;
}

const uint8_t *uni_patch_was(const struct uni_patch_plan *p, size_t k)
{
	size_t i = 0;

	while (p->extent[i].nr <= k - p->extent[i].first)
		i++;
	return p->was + p->extent[i].at + (p->job->patch[k].gpa - p->extent[i].gpa);
}

bool uni_patch_hit(const struct uni_patch_plan *p, const struct uni_regs *regs)
{
	for (size_t i = 0; p->pieces && i < p->job->nr; i++) {
		const struct uni_patch *one = &p->job->patch[i];

		if (one->pieces && regs->pc != one->va &&
			uni_range_has(one->va, one->len, regs->pc))
			return true;
	}
	return false;
}
