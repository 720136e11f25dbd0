#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The sessions of cases/shares.sh against the guests' books.
. "$SRC/tests/xen/judge.sh"
judge pv-1 shares
judge pvh-1 shares
judge pv-2 smp
judge pvh-2 smp
judge pvh-1-no-pause shares
echo "1..$n"
