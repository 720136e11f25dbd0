/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls and functions in an image's code, and what is certain about them: arch/skid.h. */
#ifndef UNI_OBJ_SKID_H
#define UNI_OBJ_SKID_H

#include "arch/cfi.h"
#include "arch/skid.h"
#include "base/err.h"
#include "obj/image.h"

/* nr is 0 for other architectures. rows: the image's unwind rows at bias, or NULL. Returns 0 or
 * -UNI_ENOMEM. */
int uni_skid_read(const struct uni_image *img, const struct uni_cfi_table *rows, uint64_t bias,
	struct uni_skid *ret);
void uni_skid_deinit(struct uni_skid *s);

#endif
