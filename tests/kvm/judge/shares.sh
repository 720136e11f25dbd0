#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The sessions of cases/shares.sh against the guests' books, and what top printed.
. "$SRC/tests/lab/judge.sh"
judge bpf shares
judge pause shares --min-samples 600
judge smp smp
verdict 'top: shares are the guest'"'"'s' python3 "$SRC/tests/e2e/top_shares.py" "$OUT/top.json"
echo "1..$n"
