/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/lookout.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"

#define LINKS_NS     UNI_NSEC_PER_SEC
#define SWEEP_MIN_NS UNI_NSEC_PER_SEC /* between sweeps */
#define SWEEP_MAX_NS (64 * UNI_NSEC_PER_SEC)

struct hull {
	uint64_t start, size;
};

struct uni_lookout {
	struct uni_lookout_cfg cfg;
	struct uni_located list[UNI_IMAGES_MAX];
	size_t nr;
	struct hull hull[UNI_IMAGES_MAX]; /* of the code of those that were found */
	size_t nr_hulls;
	bool unknown;		   /* an address was seen that is in none of them */
	struct uni_search *search; /* NULL: none is under way */
	uint64_t next_links_ns, next_sweep_ns, wait_ns;
	struct uni_located now[UNI_IMAGES_MAX]; /* result of the search */
	bool found[UNI_IMAGES_MAX];
};

/* All code of an image from end to end: the space between belongs to no other image. */
static void add_hull(struct uni_lookout *l, const struct uni_located *at)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < uni_image_nr_segments(at->image); i++) {
		const struct uni_segment *s = uni_image_segment(at->image, i);

		if (!s->exec)
			continue;
		first = uni_min(first, s->vaddr);
		last = uni_max(last, s->vaddr + (s->mem_size - 1));
	}
	if (first <= last)
		l->hull[l->nr_hulls++] = (struct hull){ first + at->bias, last - first + 1 };
}

int uni_lookout_create(
	const struct uni_lookout_cfg *cfg, struct uni_lookout **ret, struct uni_err *err)
{
	struct uni_lookout *l;

	if (uni_gmem_granule(cfg->gmem) != UNI_GMEM_GRANULE_MAX)
		return uni_err_set(err, UNI_ENOTSUP,
			"the guest's memory is reached by packets, which are too "
			"slow to search it for images");
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return uni_err_nomem(err);
	l->cfg = *cfg;
	l->nr = uni_min(cfg->nr, (size_t)UNI_IMAGES_MAX);
	if (l->nr != 0)
		memcpy(l->list, cfg->list, l->nr * sizeof(l->list[0]));
	for (size_t i = 0; i < l->nr; i++) {
		if (l->list[i].placed)
			add_hull(l, &l->list[i]);
	}
	l->wait_ns = SWEEP_MIN_NS;
	*ret = l;
	return 0;
}

void uni_lookout_destroy(struct uni_lookout *l)
{
	if (l == NULL)
		return;
	uni_search_destroy(l->search);
	free(l);
}

void uni_lookout_saw(struct uni_lookout *l, const uint64_t *pc, size_t nr)
{
	for (size_t i = 0; !l->unknown && i < nr; i++) {
		size_t k = 0;

		while (k < l->nr_hulls && !uni_range_has(l->hull[k].start, l->hull[k].size, pc[i]))
			k++;
		l->unknown = k == l->nr_hulls;
	}
}

/* Gives images that are new to the owner. */
static bool finish_search(struct uni_lookout *l)
{
	size_t before = l->nr, nr = 0;
	bool any = false;

	if (uni_search_end(l->search, l->now, l->found, &nr) != 0)
		nr = 0; /* another one may go better */
	for (size_t i = 0; i < nr; i++) {
		if (i < before && (l->list[i].placed || !l->found[i]))
			continue;
		l->list[i] = l->now[i];
		l->list[i].placed = true;
		add_hull(l, &l->list[i]);
		l->cfg.on_image(l->cfg.ctx, &l->list[i]);
		any = true;
	}
	l->nr = uni_max(nr, before);
	uni_search_destroy(l->search);
	l->search = NULL;
	return any;
}

static bool begin_search(struct uni_lookout *l, const struct uni_regs *regs, size_t nr_regs)
{
	const struct uni_locate_args args = { .gmem = l->cfg.gmem,
		.arch = l->cfg.arch,
		.regs = regs,
		.nr_regs = nr_regs,
		.sysroot = l->cfg.sysroot,
		.nr_sysroots = l->cfg.nr_sysroots };

	return uni_search_begin(&args, l->list, l->nr, &l->search, NULL) == 0;
}

/* A few short reads; images that a linker lists need no sweep. */
static void read_links(struct uni_lookout *l, const struct uni_regs *regs, size_t nr_regs)
{
	if (begin_search(l, regs, nr_regs))
		(void)finish_search(l);
	l->next_links_ns = uni_now_ns() + LINKS_NS;
}

static void end_sweep(struct uni_lookout *l)
{
	bool any = finish_search(l);

	l->unknown = false;
	l->wait_ns = any ? SWEEP_MIN_NS : uni_min(2 * l->wait_ns, SWEEP_MAX_NS);
	l->next_sweep_ns = uni_now_ns() + l->wait_ns;
}

void uni_lookout_go_on(
	struct uni_lookout *l, const struct uni_regs *regs, size_t nr_regs, uint64_t time_ns)
{
	uint64_t now_ns = uni_now_ns();

	if (l->search != NULL) {
		if (uni_search_step(l->search, time_ns) != 1)
			end_sweep(l);
		return;
	}
	if (now_ns >= l->next_links_ns)
		read_links(l, regs, nr_regs);
	else if (l->unknown && now_ns >= l->next_sweep_ns && !begin_search(l, regs, nr_regs))
		l->next_sweep_ns = now_ns + l->wait_ns;
}
