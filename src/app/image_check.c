/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares an attached guest's images with its memory: does it run them, and which parts differ? */
#include <stdlib.h>
#include <string.h>

#include "app/attach.h"
#include "app/term.h"
#include "base/cleanup.h"

/* A stub cannot read memory of a guest that runs. A process' memory needs no registers. */
int uni_guest_look(struct uni_guest *g, struct uni_pause *p, const struct uni_vcpuset *set,
	struct uni_regs *regs_ret, struct uni_err *err)
{
	const struct uni_target_ops *ops = g->t->ops;
	unsigned caps = ops->caps(g->t);

	*p = (struct uni_pause){ 0 };
	if ((caps & UNI_CAP_STREAM) && (caps & UNI_CAP_NO_PAUSE) &&
		ops->snap(g->t, set, regs_ret, 0) == 0)
		return 0;
	if ((caps & UNI_CAP_STREAM) && uni_gmem_space(ops->gmem(g->t)) == UNI_GMEM_VIRTUAL)
		return 0;
	return uni_guest_hold(g, p, set, regs_ret, err);
}

static int take_registers(
	struct uni_guest *g, struct uni_pause *p, struct uni_regs *ret, struct uni_err *err)
{
	const struct uni_vcpuset first = uni_vcpuset_one(0);

	return uni_guest_look(g, p, &first, ret, err);
}

/* Each read of a stub's memory costs the guest time. */
static bool reads_cost_time(const struct uni_guest *g)
{
	const struct uni_target_ops *ops = uni_target_backend(g->spec.scheme);

	return ops != NULL && ops->reads_cost_time;
}

/* The code that the guest runs, by its own page tables, against the image's. */
int uni_guest_check_image(struct uni_guest *g, struct uni_err *err)
{
	unsigned most = g->saved	     ? UNI_CHECK_FEW
			: reads_cost_time(g) ? UNI_CHECK_SOME
					     : UNI_CHECK_MANY;
	_cleanup_free_ struct uni_regs *regs =
		calloc((size_t)g->t->ops->nr_vcpus(g->t), sizeof(*regs));
	struct uni_as *as = NULL;
	struct uni_pause pause;
	int rc;

	if (regs == NULL)
		return uni_err_nomem(err);
	rc = uni_as_create(g->t->ops->gmem(g->t), &uni_as_budget_once, &as, err);
	if (rc != 0)
		return rc;
	uni_difference_deinit(&g->differ);
	rc = take_registers(g, &pause, regs, err);
	/* By physical addresses it may run: a stub then stops it for each read, for a moment. */
	if (!reads_cost_time(g) || uni_gmem_space(g->t->ops->gmem(g->t)) == UNI_GMEM_PHYSICAL)
		(void)uni_pause_end(&pause);
	if (rc == 0 && g->t->arch->never_started != NULL && g->t->arch->never_started(&regs[0]))
		rc = uni_err_set(err, UNI_EAGAIN,
			"%s: the guest stands at reset: no instruction of it has run yet",
			g->spec.text);
	if (rc == 0)
		rc = uni_check_image(
			as, g->t->arch, &regs[0], g->image, g->bias, most, &g->differ, err);
	(void)uni_pause_end(&pause);
	uni_as_destroy(as);
	if (rc != -UNI_EMISMATCH || !g->accept_image || g->differ.compared == 0)
		return rc;
	*err = (struct uni_err){ 0 };
	return 0;
}

/* Drops names that the guest's code contradicts, and tells the user. */
static int drop_names(struct uni_guest *g, struct uni_image *img, const struct uni_difference *d,
	char stale[sizeof(g->stale)])
{
	uni_difference_text(d, img, g->accept_image, stale, sizeof(g->stale));
	if (stale[0] == '\0')
		return 0;
	uni_note("%s", stale);
	return g->accept_image ? 0 : uni_image_forget_names(img, d->code.v, d->code.nr);
}

/* For images that the guest has loaded itself. An image that cannot be read now counts as right. */
static int settle_more(struct uni_guest *g)
{
	_cleanup_free_ struct uni_regs *regs =
		calloc((size_t)g->t->ops->nr_vcpus(g->t), sizeof(*regs));
	struct uni_err ignored = { 0 };
	struct uni_as *as = NULL;
	struct uni_pause pause;
	int rc = regs == NULL ? -UNI_ENOMEM : 0;

	if (rc != 0 || g->nr_more == 0 || g->t->ops->files != NULL || g->inside != NULL)
		return rc;
	rc = uni_as_create(g->t->ops->gmem(g->t), &uni_as_budget_once, &as, &ignored);
	if (rc != 0 || take_registers(g, &pause, regs, &ignored) != 0) {
		uni_as_destroy(as);
		return rc;
	}
	for (size_t i = 0; rc == 0 && i < g->nr_more; i++) {
		const struct uni_located *l = &g->more[i];
		struct uni_difference d = { 0 };
		char stale[sizeof(g->stale)];

		if (uni_check_image(as, g->t->arch, regs, l->image, l->bias, UNI_CHECK_SOME, &d,
			    &ignored) == 0)
			rc = drop_names(g, l->image, &d, stale);
		uni_difference_deinit(&d);
	}
	(void)uni_pause_end(&pause);
	uni_as_destroy(as);
	return rc;
}

int uni_guest_settle_images(struct uni_guest *g, struct uni_err *err)
{
	int rc = 0;

	if (g->image != NULL && g->differ.compared != 0) {
		uni_difference_how(&g->differ, g->checked, sizeof(g->checked));
		rc = drop_names(g, g->image, &g->differ, g->stale);
	}
	if (rc == 0)
		rc = settle_more(g);
	return rc == 0 ? 0 : uni_err_nomem(err);
}
