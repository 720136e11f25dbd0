/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notices what a guest loads while it is sampled: link maps are read once a second, and when
 * addresses come that no known image has, memory is looked through (locate.h), a little between any
 * two samples and never while the guest is held. Sweeps that find nothing become rarer.
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
	const struct uni_located *list; /* copied: what was found (`placed`), and what not yet */
	size_t nr;
	/*
	 * An image that is there now; what is `owned` is the callee's from then on, the others'
	 * owner stays. Of the thread that samples, with the guest running.
	 */
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
