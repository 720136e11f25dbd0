/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notices images that a guest loads while it is sampled. Link maps are read once a second. If an
 * address is in no known image, memory is searched (locate.h): a little between any two samples,
 * never while the guest is held. Sweeps that find nothing become rarer.
 */
#ifndef UNI_SAMPLING_LOOKOUT_H
#define UNI_SAMPLING_LOOKOUT_H

#include "sampling/locate.h"

struct uni_lookout;

struct uni_lookout_cfg {
	struct uni_gmem *gmem;
	const struct uni_arch *arch;
	const struct uni_sysroot *const *sysroot; /* borrowed, nr_sysroots */
	size_t nr_sysroots;
	const struct uni_located *list; /* copied: images that were found (`placed`), and others */
	size_t nr;
	/* An image that is there now. From now on the callee owns an image that is `owned`; others
	 * keep their owner. Called on the sampling thread, with the guest running. */
	void (*on_image)(void *ctx, const struct uni_located *image);
	void *ctx;
};

/* -UNI_ENOTSUP: this target's memory is too slow for it. */
int uni_lookout_create(
	const struct uni_lookout_cfg *cfg, struct uni_lookout **ret, struct uni_err *err);
void uni_lookout_destroy(struct uni_lookout *l); /* NULL-safe */

/* A chain that was sampled. */
void uni_lookout_saw(struct uni_lookout *l, const uint64_t *pc, size_t nr);

/*
 * Works for about time_ns, or longer when it has found something that is to be loaded. regs: of all
 * vCPUs, of their last samples; the guest runs.
 */
void uni_lookout_go_on(
	struct uni_lookout *l, const struct uni_regs *regs, size_t nr_regs, uint64_t time_ns);

#endif
