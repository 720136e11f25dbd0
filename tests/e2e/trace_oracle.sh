#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# trace_oracle.sh UNISCOPE MKTRACE ORACLE: trace report, breakdown and replay agree with a slow
# decoder of our own. That is in Python and reads the session's packets. TAP.
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

# A trace alone is exported as its calls: by their own time, or by their number if they tell none.
folded() { # COUNT WORDS
	"$U" export -f folded "$T/f.uniscope" >"$T/folded" 2>"$T/err" && cat "$T/err" &&
		grep -q "$2" "$T/err" && "$U" export -f folded --calls="$1" "$T/f.uniscope" 2>/dev/null |
		cmp - "$T/folded" && [ "$(wc -l <"$T/folded")" -gt 3 ]
}
untimed() {
	"$U" export -f csv "$T/f.uniscope" 2>&1 >"$T/csv" | grep -q '20000 calls tell no time' &&
		"$U" parse-trace -o "$T/csv" "$T/f.uniscope" 2>&1 | grep -q '20000 calls tell no time'
}
check "calls only: their numbers as folded stacks" folded count 'has no times'
check "calls only: that there are no rows is said" untimed
rm -rf "$T/f.uniscope"
check "one trace: no message" "$MK" "$T/f.uniscope" 20000 1 graph 7
check "one trace: its own times as folded stacks" folded time 'holds no samples: these are the functions'
check "one trace: no such function in it" sh -c 'for c in report replay graph; do
	"$1" trace $c --function nobody "$2" >"$3" 2>"$3.err" && exit 1
	tail -n 1 "$3.err" | grep -q "no call of a function .nobody. in this trace" || exit 1
done' sh "$U" "$T/f.uniscope" "$T/out"
# Sums and shares of a breakdown are those of the functions that are left.
hides() {
	"$U" trace breakdown --json "$T/f.uniscope" >"$T/all" 2>"$T/err" &&
		"$U" trace breakdown --json --hide 'fn_1*' --hide fn_2 "$T/f.uniscope" >"$T/rest" 2>"$T/said" &&
		python3 - "$T/all" "$T/rest" "$T/said" <<-'END'
		import fnmatch, json, sys
		read = lambda p: {c['name']: c['functions'] for c in json.load(open(p, encoding='utf-8'))['cpus']}
		sums = lambda p: {c['name']: c['self_ns'] for c in json.load(open(p, encoding='utf-8'))['cpus']}
		hidden = lambda f: fnmatch.fnmatch(f['function'], 'fn_1*') or f['function'] == 'fn_2'
		all_, rest = read(sys.argv[1]), read(sys.argv[2])
		want = {name: [f for f in fs if not hidden(f)] for name, fs in all_.items()}
		assert rest == {name: fs for name, fs in want.items() if fs} and want != all_
		assert sums(sys.argv[2]) == {name: sum(f['self_ns'] for f in fs) for name, fs in rest.items()}
		gone = 100 - 100 * sum(sums(sys.argv[2]).values()) / sum(sums(sys.argv[1]).values())
		assert 'uniscope: %.2f %% of the time is left out' % gone in open(sys.argv[3], encoding='utf-8').read()
		END
}
check "a breakdown without some functions" hides

# One function's calls, with a switch before those of another thread only.
one() {
	"$U" trace replay --function fn_42 "$T/f.uniscope" >"$T/out" 2>"$T/err" && python3 -c 'import sys
text, rule = open(sys.argv[1]).read(), "-" * 42 + "\n"
assert "fn_42()" in text and " => " in text and rule + rule not in text' "$T/out"
}
check "one trace: one function" one
check "one trace: nothing in that time" sh -c '"$1" trace report --from 1000 "$2" >"$3" 2>&1
	[ $? -eq 1 ] && grep "has no event from 1000 s on: the last one is at" "$3"' \
	sh "$U" "$T/f.uniscope" "$T/out"
# The time just before the end, in any unit; if it is longer than the trace, all of it.
last() {
	"$U" trace report --json "$T/f.uniscope" >"$T/all" 2>"$T/err" &&
		"$U" trace report --json --last 1000 "$T/f.uniscope" >"$T/whole" 2>>"$T/err" &&
		"$U" trace report --json --last 3ms "$T/f.uniscope" >"$T/ms" 2>>"$T/err" &&
		"$U" trace report --json --last 3000us "$T/f.uniscope" >"$T/us" 2>>"$T/err" || return 1
	cmp "$T/all" "$T/whole" && cmp "$T/ms" "$T/us" && python3 -c 'import json, sys
a, m = (json.load(open(f)) for f in sys.argv[1:])
assert m["end_ns"] == a["end_ns"] and 0 < m["events"] < a["events"], (m["events"], a["events"])
assert 2900000 < m["end_ns"] - m["begin_ns"] <= 3000001, m["end_ns"] - m["begin_ns"]' "$T/all" "$T/ms"
}
check "one trace: the last 3 ms" last
check "one trace: what is no time" sh -c 'for t in 0 -1 x 3m ms; do
	"$1" trace report --last "$t" "$2" 2>&1 | grep -q "last takes a time such as 10ms" || exit 1
done
"$1" trace report --last 1ms --to 3 "$2" 2>&1 | grep -q "neither --from nor --to"' sh "$U" "$T/f.uniscope"
check "one trace: report tells who shows it" sh -c '"$1" report "$2" 2>&1 >/dev/null |
	grep -q "and no samples: see .uniscope trace report"' sh "$U" "$T/f.uniscope"
check "one trace: no samples for uniprof" sh -c '"$1" export -f uniprof "$2" 2>&1 >/dev/null |
	grep -q "and .* none: a trace"' sh "$U" "$T/f.uniscope"
echo "1..$n"
