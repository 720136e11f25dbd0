#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The sessions of cases/shares.sh against the guests' books.
. "$SRC/tests/xen/judge.sh"
judge pv-1 shares --min-samples 1000
judge pvh-1 shares --min-samples 1000
judge pv-2 smp
judge pvh-2 smp
judge pvh-1-no-pause shares --min-samples 1000
echo "1..$n"
