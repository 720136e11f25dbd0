#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The sessions of cases/shares.sh against the guests' books. OUT, BUILD and SRC come from xen.sh.
n=0
judge() { # NAME APP
	n=$((n + 1))
	if verdict=$(python3 "$SRC/tests/e2e/judge.py" --stacks "$OUT/$1.uniscope.json" \
		--session "$OUT/$1.uniscope" --graph "$BUILD/lab/xen-$2-gcc-fp.graph" 2>&1); then
		echo "ok $n - $1: shares and chains are the guest's"
	else
		echo "not ok $n - $1: shares and chains are the guest's"
	fi
	echo "$verdict" | sed 's/^/# /'
}
judge pv-1 shares
judge pvh-1 shares
judge pv-2 smp
judge pvh-2 smp
judge pvh-1-no-pause shares
echo "1..$n"
