#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The traces of cases/traced.sh against the calls that the guests counted.
. "$SRC/tests/lab/judge.sh"
for name in one two; do
	verdict "$name: records and lost events are the guest's calls" python3 "$SRC/tests/e2e/trace_judge.py" \
		truth "$OUT/$name.uniscope" "$OUT/$name-truth.uniscope" "$BUILD/lab/trace/trace-traced-gcc-fp.elf" graph
done
echo "1..$n"
