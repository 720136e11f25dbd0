/* SPDX-License-Identifier: BSD-2-Clause */
/* Trees for the SVG whose children do not stand in the order of their names. */
#ifndef UNI_FORMAT_SVG_ORDER_H
#define UNI_FORMAT_SVG_ORDER_H

#include "profile/profile.h"

/*
 * lines: by folded lines as flamegraph.pl sorts them, "a 1" before "a-b 1" before "a;b 1", of which
 * only neighbours are merged; else in the order in which the stacks came. 0, -UNI_ENOMEM, or
 * -UNI_ENOTSUP: p does not know how they came.
 */
int uni_svg_ordered(const struct uni_profile *p, bool lines, struct uni_profile **ret);

#endif
