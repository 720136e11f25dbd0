/* SPDX-License-Identifier: BSD-2-Clause */
/* Words that a comparison has as text and as JSON. */
#ifndef UNI_DIFF_SHOW_PRIV_H
#define UNI_DIFF_SHOW_PRIV_H

#include "diff/show.h"

extern const char *const uni_diff_column_names[UNI_COLUMNS];
extern const char *const uni_diff_side_names[UNI_SIDES];
extern const char *const uni_diff_condition_words[]; /* by enum uni_condition_result */

#endif
