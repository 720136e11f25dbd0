#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The counts of cases/exits.sh: numbers, reasons, functions and callers are exact.
. "$SRC/tests/lab/judge.sh"
verdict 'each exit is counted' python3 "$SRC/tests/e2e/exits.py" "$OUT/each" 1 chains
[ ! -e "$OUT/some" ] || verdict 'one in 7: the numbers are as exact' python3 "$SRC/tests/e2e/exits.py" "$OUT/some" 7
echo "1..$n"
