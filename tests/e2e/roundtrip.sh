#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# roundtrip.sh UNISCOPE SRCROOT MKSESSION MKTRACE: each format has the contents of folded stacks, stack by stack. The sessions have
# weights, vCPUs, guests, threads, calls and promises. TAP.
set -u
U=$(realpath "$1") SRC=$2 MKSESSION=$(realpath "$3") MKTRACE=$(realpath "$4")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
cd "$T" || exit 1
export PYTHONDONTWRITEBYTECODE=1
"$MKSESSION" "$T/s.uniscope" 3000 2 && "$MKSESSION" "$T/guests.uniscope" 600 2 3 || exit 1
"$MKTRACE" calls.uniscope 9000 1 work 2 && "$MKTRACE" both.uniscope 2000 2 work 1 70 || exit 1
cp -r "$SRC/fuzz/corpus/mirage/ring" ring || exit 1
python3 "$SRC/tests/e2e/exchange/roundtrip.py" "$U"
