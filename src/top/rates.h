/* SPDX-License-Identifier: BSD-2-Clause */
/* From counters at two moments to rates and shares. */
#ifndef UNI_TOP_RATES_H
#define UNI_TOP_RATES_H

#include "top/model.h"

/* Fills quality and vcpus from the sums of the window and from what changed since top->last, and
 * remembers status as the new one. */
void uni_top_rates(struct uni_top *top, const struct uni_feed_status *status);

#endif
