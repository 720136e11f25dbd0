/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where are images in a guest's memory? Position-independent and randomised ones run elsewhere than
 * they were linked for, and some guests load programs and libraries by themselves. All that the
 * guest's page tables map is looked through: for code of an image, and for ELF headers whose
 * build-id is known. The link maps of what was found tell of others, also where no header is
 * mapped. What looks right is verified like any image (check.h).
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
	bool placed; /* in: bias is where it was found before, and it is left alone */
};

struct uni_locate_args {
	struct uni_gmem *gmem;
	const struct uni_arch *arch;
	const struct uni_regs *regs; /* of all vCPUs, held at some moment just before */
	size_t nr_regs;
	const struct uni_sysroot *const *sysroot; /* where images may come from, nr_sysroots */
	size_t nr_sysroots;
	uint64_t time_ns; /* at most, of looking through memory; 0: 8 s */
};

/*
 * Finds each image of list[0..*nr) whose `image` is given (bias is set), and adds images from the
 * sysroots, up to UNI_IMAGES_MAX in all. found[i] says whether list[i] was found; of several places
 * the one counts where vCPUs run, or whose code their stacks point to. Not to be called while a
 * guest is held: it takes up to some seconds, and memory. What was added follows the given ones,
 * and its images are `owned`; none is on failure. -UNI_ENOTSUP: this target's memory is too slow to
 * look through.
 */
int uni_locate(const struct uni_locate_args *args, struct uni_located list[UNI_IMAGES_MAX],
	bool found[UNI_IMAGES_MAX], size_t *nr, struct uni_err *err);

/*
 * The same in steps, for while a guest is sampled. All that args points to, and the images of the
 * list, are borrowed until uni_search_destroy(); what list[] says of them is copied.
 */
struct uni_search;
int uni_search_begin(const struct uni_locate_args *args, const struct uni_located *list, size_t nr,
	struct uni_search **ret, struct uni_err *err);
/* Looks through memory for about that time. 1: there is more of it, 0: that was all, or an error.
 */
int uni_search_step(struct uni_search *s, uint64_t time_ns);
/*
 * What was found, as by uni_locate(): also early, and without a step only what link maps tell of.
 * Once.
 */
int uni_search_end(struct uni_search *s, struct uni_located list[UNI_IMAGES_MAX],
	bool found[UNI_IMAGES_MAX], size_t *nr);
void uni_search_destroy(struct uni_search *s); /* NULL-safe; not what it has found */

#endif
