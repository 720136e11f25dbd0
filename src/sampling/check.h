/* SPDX-License-Identifier: BSD-2-Clause */
/* Is this the image that the guest runs? */
#ifndef UNI_SAMPLING_CHECK_H
#define UNI_SAMPLING_CHECK_H

#include "mem/as.h"
#include "obj/image.h"

/*
 * Compares the executable segments at bias with what the guest has there (sampled pages first,
 * page by page, through regs' address space). -UNI_EMISMATCH with one clear line that says what
 * was compared and what to do next; pages that the guest does not map are passed over, but not all.
 */
int uni_check_image(struct uni_as *as, const struct uni_arch *arch, const struct uni_regs *regs,
	const struct uni_image *img, uint64_t bias, struct uni_err *err);

enum uni_fit {
	UNI_FIT_EMPTY, /* nothing of the image's code can be read there */
	UNI_FIT_OTHER, /* other code */
	UNI_FIT_SAME,
};

/* The same comparison without words. root NULL: addresses are not translated. */
enum uni_fit uni_check_fit(struct uni_as *as, const struct uni_pt_root *root,
	const struct uni_image *img, uint64_t bias);

#endif
