/* SPDX-License-Identifier: BSD-2-Clause */
/* Trees for the SVG in which children have another order than that of their names. */
#ifndef UNI_FORMAT_SVG_ORDER_H
#define UNI_FORMAT_SVG_ORDER_H

#include "profile/profile.h"

/*
 * lines: sorts by folded lines as flamegraph.pl does, "a 1" before "a-b 1" before "a;b 1"; only
 * neighbours are merged. Otherwise the stacks keep the order in which they came. Returns 0,
 * -UNI_ENOMEM, or -UNI_ENOTSUP if p does not know that order.
 */
int uni_svg_ordered(const struct uni_profile *p, bool lines, struct uni_profile **ret);

#endif
