#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# arithmetic.sh UNISCOPE SRCROOT MKTRACE: each function has the same time in every output, to the nanosecond. The frequencies are no
# whole number of cycles a nanosecond. TAP.
set -u
U=$(realpath "$1") SRC=$2 MKTRACE=$(realpath "$3")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
cd "$T" || exit 1
export PYTHONDONTWRITEBYTECODE=1
n=0
for hz in 2711234567 2299999999 3600000001; do
	n=$((n + 1))
	rm -rf calls.uniscope
	if "$MKTRACE" calls.uniscope 20000 1 work $n && sed -i "s/\"hz\": 1000000000/\"hz\": $hz/" \
		calls.uniscope/session.json && grep -q "$hz" calls.uniscope/session.json &&
		python3 "$SRC/tests/e2e/arithmetic.py" "$U" calls.uniscope; then
		echo "ok $n - $hz Hz"
	else
		echo "not ok $n - $hz Hz"
	fi
done
echo "1..$n"
