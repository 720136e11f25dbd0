/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that have another name on each side, and the same code. */
#ifndef UNI_APP_DIFF_RENAMED_H
#define UNI_APP_DIFF_RENAMED_H

#include "app/diffing.h"

/*
 * Two functions with the same instructions, each on one side only, become one, if no other such
 * function has these instructions. The code is in the images that the first session of each side
 * names; without them nothing is done. 0 or -UNI_ENOMEM.
 */
int uni_diff_renamed(struct uni_diff_sides *d, const struct uni_diffing_args *args);

#endif
