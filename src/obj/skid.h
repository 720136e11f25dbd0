/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls and functions in an image's code, and what is certain about them: arch/skid.h. */
#ifndef UNI_OBJ_SKID_H
#define UNI_OBJ_SKID_H

#include "arch/skid.h"
#include "base/err.h"
#include "obj/image.h"

/* nr is 0 for other architectures. Returns 0 or -UNI_ENOMEM. */
int uni_skid_read(const struct uni_image *img, struct uni_skid *ret);
void uni_skid_deinit(struct uni_skid *s);

#endif
