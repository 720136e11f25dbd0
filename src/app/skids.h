/* SPDX-License-Identifier: BSD-2-Clause */
/* The meaning of stops of QEMU's TCG, for all images of a guest: arch/skid.h. */
#ifndef UNI_APP_SKIDS_H
#define UNI_APP_SKIDS_H

#include "app/attach.h"

/* Reads the code of all images, if the guest is sampled and stops so. 0 or -UNI_ENOMEM. */
int uni_guest_use_skid(
	struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err);
/* The same of one that the guest has loaded since; does nothing if it does not stop so. */
int uni_guest_add_skid(
	struct uni_guest *g, struct uni_image *img, uint64_t bias, struct uni_err *err);

#endif
