#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# perf's samples of the guest in cases/perf.sh against ours.
. "$SRC/tests/lab/judge.sh"
verdict 'perf kvm and we agree on leaf functions' python3 "$SRC/tests/e2e/perf_leaves.py" "$OUT/perf.data" \
	"$OUT/ours.json" "$BUILD/lab/shares-gcc-fp.elf"
echo "1..$n"
