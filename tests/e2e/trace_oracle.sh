#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# trace_oracle.sh UNISCOPE MKTRACE ORACLE: what trace report, breakdown and replay say of a session
# is what a slow decoder of our own, in Python, gets from its packets. TAP.
set -u
U=$1 MK=$2 ORACLE=$3
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
n=0
check() { # DESCRIPTION COMMAND...: ok when the command succeeds
	what=$1
	shift
	n=$((n + 1))
	if "$@" >"$T/log" 2>&1; then echo "ok $n - $what"; else
		echo "not ok $n - $what"
		sed 's/^/# /' "$T/log"
	fi
}
compare() { # EVENTS CPUS MODE SEED
	rm -rf "$T/s.uniscope"
	"$MK" "$T/s.uniscope" "$1" "$2" "$3" "$4" &&
		"$U" trace report --json -n 0 "$T/s.uniscope" >"$T/report" 2>"$T/err" &&
		"$U" trace breakdown --json "$T/s.uniscope" >"$T/cpus" 2>>"$T/err" &&
		"$U" trace breakdown --json --threads "$T/s.uniscope" >"$T/threads" 2>>"$T/err" &&
		"$U" trace replay "$T/s.uniscope" >"$T/replay" 2>>"$T/err" &&
		python3 "$ORACLE" "$T/s.uniscope" "$T/report" "$T/cpus" "$T/threads" "$T/replay" "$3"
}

check "one CPU" compare 60000 1 graph 1
check "two CPUs, threads that move" compare 60000 2 graph 2
check "four CPUs" compare 60000 4 graph 3
check "calls without an end" compare 60000 2 lite 4
check "one thread" compare 60000 1 work 5
check "calls only: no message" "$MK" "$T/f.uniscope" 20000 1 function 6
check "calls only: a row each" sh -c '"$1" trace report --json -n 0 "$2" | python3 -c "
import json, sys
r = json.load(sys.stdin)
assert sum(f[\"calls\"] for f in r[\"functions\"]) == 20000 == r[\"events\"]"' sh "$U" "$T/f.uniscope"
echo "1..$n"
