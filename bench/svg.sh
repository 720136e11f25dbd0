#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# bench/svg.sh UNISCOPE GENERATOR [N [FLAMEGRAPH_PL]]: CPU seconds and peak memory of drawing N
# (1,000,000) distinct folded stacks, three runs. If the path of flamegraph.pl is given, it draws
# the same file. GENERATOR N prints such stacks; GNU time is needed.
set -eu
U=$1 gen=$2 n=${3:-1000000} peer=${4:-}
gnutime=$(command -v time) || { echo "GNU time is not installed" >&2; exit 1; }
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
"$gen" "$n" >"$T/in.folded"
echo "$n stacks, $(($(wc -c <"$T/in.folded") / 1000000)) MB, $(nproc) CPUs," \
	"load $(cut -d' ' -f1 /proc/loadavg)"

measure() { # NAME COMMAND...
	name=$1
	shift
	"$gnutime" -f '%U %S %M' -o "$T/time" "$@" >"$T/out.svg" 2>/dev/null
	awk -v name="$name" -v size="$(wc -c <"$T/out.svg")" \
		'END { printf "%-14s %7.2f s CPU  %6.0f MB  %.1f MB of SVG\n", name, $1 + $2,
			$3 / 1024, size / 1e6 }' "$T/time"
}
for run in 1 2 3; do
	measure uniscope "$U" export -f svg -o - "$T/in.folded"
done
[ -z "$peer" ] || measure flamegraph.pl perl "$peer" "$T/in.folded"
