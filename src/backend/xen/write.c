/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Patches code through a writable mapping of its frames. The mapping is made before the pause, and
 * undone after it. Each place is changed by one store of a word, which nothing can interrupt.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "backend/patch.h"
#include "backend/xen/xen.h"

#define EXTENT_MAX 8192
#define FRAMES_MAX 65536u

struct word {
	uint64_t v;
} __attribute__((packed, may_alias));

struct writer {
	struct uni_xen_target *t;
	struct uni_patch_plan plan;
	struct uni_regs *regs;
	uint64_t *frame;   /* by rising number, each once */
	uint32_t *lies_in; /* by extent: index of its first frame */
	int *why;
	size_t nr;
	uint8_t *at; /* all of them, in a row */
};

static int add_frame(struct writer *w, uint64_t frame)
{
	if (w->nr != 0 && w->frame[w->nr - 1] == frame)
		return 0;
	if (w->nr == FRAMES_MAX)
		return -UNI_ENOMEM;
	w->frame[w->nr++] = frame;
	return 0;
}

static size_t pages_of(const struct uni_patch_extent *e)
{
	return (size_t)(e->gpa % UNI_XEN_PAGE + e->len + UNI_XEN_PAGE - 1) / UNI_XEN_PAGE;
}

/* Extents rise as patches do, and two extents may share a frame. */
static int list_frames(struct writer *w)
{
	size_t cap = uni_min(2 * w->plan.nr, (size_t)FRAMES_MAX);
	int rc = 0;

	w->frame = calloc(cap + 1, sizeof(*w->frame));
	w->why = calloc(cap + 1, sizeof(*w->why));
	w->lies_in = calloc(w->plan.nr, sizeof(*w->lies_in));
	if (w->frame == NULL || w->why == NULL || w->lies_in == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; rc == 0 && i < w->plan.nr; i++) {
		const struct uni_patch_extent *e = &w->plan.extent[i];
		uint64_t first = e->gpa / UNI_XEN_PAGE;

		rc = add_frame(w, first);
		w->lies_in[i] = (uint32_t)(w->nr - 1);
		for (size_t k = 1; rc == 0 && k < pages_of(e); k++)
			rc = add_frame(w, first + k);
	}
	return rc;
}

static const struct uni_xen_module *module_of(const struct writer *w)
{
	return uni_xen_call_module(w->t->call);
}

static int map_writable(struct writer *w)
{
	int rc = list_frames(w);

	if (rc != 0)
		return rc;
	w->at = module_of(w)->map_rw(
		uni_xen_call_conn(w->t->call), w->t->dom.domid, w->frame, w->nr, w->why);
	if (w->at == NULL)
		return -UNI_EFAULT;
	for (size_t i = 0; i < w->plan.nr; i++) {
		const struct uni_patch_extent *e = &w->plan.extent[i];
		size_t last = pages_of(e) - 1;

		if (w->why[w->lies_in[i]] == 0 && w->why[w->lies_in[i] + last] == 0)
			continue;
		w->plan.job->bad = e->first;
		return -UNI_EFAULT;
	}
	return 0;
}

static uint8_t *extent_at(const struct writer *w, size_t i)
{
	return w->at + (size_t)w->lies_in[i] * UNI_XEN_PAGE + w->plan.extent[i].gpa % UNI_XEN_PAGE;
}

/* A single store; if the place is in one page, it touches nothing outside the page. */
static void store_word(uint8_t *at, const uint8_t *bytes, size_t len)
{
	size_t in_page = UNI_XEN_PAGE - (uintptr_t)at % UNI_XEN_PAGE, back = 0;
	volatile struct word *to;
	struct word all;

	if (in_page >= len && in_page < sizeof(all))
		back = sizeof(all) - in_page;
	to = (volatile struct word *)(at - back);
	all.v = to->v;
	memcpy((uint8_t *)&all + back, bytes, len);
	to->v = all.v;
}

static void write_extent(const struct writer *w, size_t i)
{
	const struct uni_patch_extent *e = &w->plan.extent[i];

	for (size_t k = e->first; k < e->first + e->nr; k++) {
		const struct uni_patch *one = &w->plan.job->patch[k];
		size_t offset = (size_t)(one->gpa - e->gpa);

		if (memcmp(w->plan.was + e->at + offset, one->new_bytes, one->len) != 0)
			store_word(extent_at(w, i) + offset, one->new_bytes, one->len);
	}
}

static void read_all(struct writer *w)
{
	for (size_t i = 0; i < w->plan.nr; i++)
		memcpy(w->plan.was + w->plan.extent[i].at, extent_at(w, i), w->plan.extent[i].len);
}

/* Call it while we hold the domain. */
static int write_held(struct writer *w)
{
	int rc;

	for (uint32_t v = 0; v < w->t->nr_vcpus; v++) {
		if (w->regs[v].state != UNI_VCPU_OFFLINE && uni_patch_hit(&w->plan, &w->regs[v]))
			return -UNI_EAGAIN;
	}
	read_all(w);
	rc = uni_patch_apply(&w->plan);
	if (rc == 0 && !uni_xen_keeper_holds(&w->t->keeper))
		rc = -UNI_EAGAIN;
	for (size_t i = 0; rc == 0 && i < w->plan.nr; i++)
		write_extent(w, i);
	return rc;
}

static int hold_and_write(struct writer *w)
{
	struct uni_target *base = &w->t->base;
	const struct uni_vcpuset all = uni_vcpuset_first(w->t->nr_vcpus);
	uint64_t begin_ns;
	int rc;

	/*
	 * Code and pages that are needed for the first time may come from a disk: load them before
	 * the domain is held. The result is ignored, as the domain still runs.
	 */
	read_all(w);
	(void)uni_patch_apply(&w->plan);
	w->plan.job->bad = 0;
	begin_ns = uni_now_ns();
	rc = base->ops->snap(base, &all, w->regs, UNI_SNAP_HOLD);
	/* Another client's pause may end at any time. */
	if (rc == 0)
		rc = w->t->held ? write_held(w) : -UNI_EAGAIN;
	(void)base->ops->release(base);
	w->plan.job->pause_ns = uni_now_ns() - begin_ns;
	return rc;
}

int uni_xen_write_text(struct uni_target *base, struct uni_patch_job *job)
{
	struct uni_xen_target *t = (struct uni_xen_target *)base;
	struct writer w = { .t = t, .regs = calloc(t->nr_vcpus, sizeof(*w.regs)) };
	int rc = w.regs != NULL ? uni_patch_plan(job, EXTENT_MAX, &w.plan) : -UNI_ENOMEM;

	if (rc == 0) {
		rc = t->gone ? -UNI_EGONE : map_writable(&w);
		if (rc == 0)
			rc = hold_and_write(&w);
		if (w.at != NULL)
			module_of(&w)->unmap(uni_xen_call_conn(t->call), w.at, w.nr);
		uni_patch_plan_deinit(&w.plan);
	}
	free(w.frame);
	free(w.lies_in);
	free(w.why);
	free(w.regs);
	return rc;
}
