/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds images in a guest's memory. Position-independent and randomised images are not at their
 * linked addresses, and some guests load programs and libraries by themselves. The search covers
 * everything that the guest's page tables map. It looks for code of an image, and for ELF headers
 * with a known build-id. The link maps of found images lead to others, even if no header is mapped.
 * Each candidate is verified like any image (check.h).
 */
#ifndef UNI_SAMPLING_LOCATE_H
#define UNI_SAMPLING_LOCATE_H

#include "mem/as.h"
#include "obj/image.h"
#include "obj/sysroot.h"
#include "recording/recording.h"

struct uni_located {
	struct uni_image *image;
	uint64_t bias;
	bool owned;  /* loaded by us: the caller destroys it */
	bool placed; /* in: bias is known already: not searched */
};

struct uni_locate_args {
	struct uni_gmem *gmem;
	const struct uni_arch *arch;
	const struct uni_regs *regs; /* of all vCPUs, held at some moment just before */
	size_t nr_regs;
	const struct uni_sysroot *const *sysroot; /* where images may come from, nr_sysroots */
	size_t nr_sysroots;
	uint64_t time_ns; /* at most, of looking through memory; 0: 8 s */
	/* NULL, or for the number of ELF headers there with the build-id of no image. 0: one has
	 * that of list[0]. */
	size_t *others_ret;
};

/*
 * Finds each image of list[0..*nr) that has `image` (sets bias), and adds images from the sysroots,
 * up to UNI_IMAGES_MAX in all. found[i]: list[i] was found. If there are several places, the one
 * counts in which vCPUs run, or to which their stacks point. Never call it while a guest is held:
 * it takes up to some seconds, and memory. Added images follow the given ones and are `owned`;
 * after a failure there are none. -UNI_ENOTSUP: this target's memory is too slow for a search.
 */
int uni_locate(const struct uni_locate_args *args, struct uni_located list[UNI_IMAGES_MAX],
	bool found[UNI_IMAGES_MAX], size_t *nr, struct uni_err *err);

/* The same in steps, for use while a guest is sampled. args' pointers and the list's images are
 * borrowed until uni_search_destroy(); the entries of list[] are copied. */
struct uni_search;
int uni_search_begin(const struct uni_locate_args *args, const struct uni_located *list, size_t nr,
	struct uni_search **ret, struct uni_err *err);
/* Looks through memory for about that time. 1: there is more of it, 0: that was all, or an error.
 */
int uni_search_step(struct uni_search *s, uint64_t time_ns);
/* Returns the images that were found, like uni_locate(). It may be called early; without a step it
 * uses only link maps. Call it once. */
int uni_search_end(struct uni_search *s, struct uni_located list[UNI_IMAGES_MAX],
	bool found[UNI_IMAGES_MAX], size_t *nr);
void uni_search_destroy(struct uni_search *s); /* NULL-safe; keeps the images that were found */

#endif
