/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that have another name on each side, and the same code. */
#ifndef UNI_APP_DIFF_RENAMED_H
#define UNI_APP_DIFF_RENAMED_H

#include "app/diffing.h"

/*
 * Of the functions that are on one side only: two with the same instructions, which no other of
 * them has, become one. The code is in the images that the first session of each side names;
 * without them nothing is done. 0 or -UNI_ENOMEM.
 */
int uni_diff_renamed(struct uni_diff_sides *d, const struct uni_diffing_args *args);

#endif
