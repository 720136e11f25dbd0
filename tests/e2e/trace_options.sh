#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# trace_options.sh UNISCOPE BUILD SRCROOT: what `trace start` can be asked for, in guests under TCG and
# KVM that make known calls: functions by pattern, the least duration, depth, triggers, arguments and
# values; everything, from before the second vCPU starts; and the trace of a guest that is dead. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
image=$BUILD/lab/trace/trace-traced-gcc-fp.elf
[ -e "$image" ] || image=$BUILD/lab/trace/trace-traced-clang-fp.elf
[ -e "$image" ] || {
	echo '1..0 # SKIP no traced lab images'
	exit 0
}

dump() { # TARGET
	timeout 60 "$U" trace dump "$1" -e "$image" -q -o "$T/s.uniscope" --overwrite &&
		timeout 60 "$U" trace report --json -n 0 "$T/s.uniscope" >"$T/report" 2>"$T/err" &&
		timeout 60 "$U" trace replay "$T/s.uniscope" >"$T/replay" 2>>"$T/err" || {
		cat "$T/err"
		return 1
	}
}

# Five rounds of the guest `traced`, with these options.
trace() { # OPTION...
	boot_waiting "$accel" 1 "$image" 'rounds=5 ring=256' &&
		timeout 60 "$U" trace start "$target" -e "$image" "$@" && go_on '^traced: ' &&
		dump "$target"
}

# `c`: calls by function; `lost`; `lines`: of the replay.
judge() { # PYTHON
	python3 -c 'import json, re, sys
report = json.load(open(sys.argv[1]))
c = {f["function"]: f["calls"] for f in report["functions"]}
lost, lines = report["lost"], open(sys.argv[2]).read().splitlines()[4:]
ok = ('"$1"')
if not ok:
    print(c, "lost", lost)
    print("\n".join(lines[:60]))
sys.exit(not ok)' "$T/report" "$T/replay"
}

# The calls of five rounds.
all='{"traced_round": 5, "traced_visit": 10, "traced_callback": 20, "traced_odd": 10, "traced_leaf": 30,
 "traced_fib": 205, "traced_sum": 5, "traced_none": 5}'

by_pattern() {
	trace --regex '^traced_(leaf|s.*)$' && judge 'lost == 0 and c == {"traced_leaf": 30, "traced_sum": 5}' &&
		trace --filter 'traced_*' --exclude '*_f*' --exclude traced_odd && judge "lost == 0 and c ==
{k: v for k, v in $all.items() if k not in ('traced_fib', 'traced_odd')}"
}

# What is shorter vanishes, but for calls that meet an edge or were held up; what is longer stays.
short_calls() {
	trace --filter 'traced_*' --min-duration 1000000 && judge 'lost == 0 and sum(c.values()) < 50' &&
		trace --filter 'traced_*' --min-duration 0.001 && judge "lost == 0 and c == $all"
}

deep_calls() {
	trace --filter 'traced_*' --depth 2 && judge 'lost == 0 and c == {"traced_round": 5,
 "traced_visit": 10, "traced_fib": 5, "traced_sum": 5, "traced_none": 5}'
}

arguments() {
	trace --filter 'traced_*' --args traced_sum --args traced_visit --args traced_none &&
		judge "lost == 0 and c == $all" || return 1
	for round in 0 1 2 3 4; do
		grep -q "|    traced_sum(a=$round, b=1, c=2, d=3, e=4, f=5); /\\* ret=$((15 + round)) \\*/\$" \
			"$T/replay" || { cat "$T/replay"; return 1; }
	done
	grep -q '|    traced_visit(fn=0xffffffff[0-9a-f]*, nr=4) {$' "$T/replay" &&
		grep -q '|    } /\* traced_visit ret=12 \*/$' "$T/replay" &&
		grep -q '|    traced_none();$' "$T/replay" || { cat "$T/replay"; return 1; }
	# Parsed back: the same calls.
	"$U" export --format csv "$T/s.uniscope" -o "$T/a.csv" && "$U" parse-trace "$T/replay" -o "$T/b.csv" &&
		[ "$(cut -d, -f1 "$T/a.csv" | sort)" = "$(cut -d, -f1 "$T/b.csv" | sort)" ]
}

# From traced_sum of the first round on: only traced_none of that round comes after it.
starts() {
	trace --filter 'traced_*' --trigger traced_sum:start &&
		judge "lost == 0 and c == {k: v * 4 // 5 for k, v in $all.items()} |
 {'traced_sum': 5, 'traced_none': 5}"
}

# Up to its entry: the last record.
stops() {
	trace --filter 'traced_*' --trigger traced_sum:stop && judge "lost == 0 and c ==
{k: v // 5 for k, v in $all.items() if k != 'traced_none'}"
}

# The same, but what comes is counted; and who starts anew sets them going.
freezes() {
	trace --filter 'traced_*' --trigger traced_sum:freeze && judge "c ==
{k: v // 5 for k, v in $all.items() if k != 'traced_none'} and lost > 200" || return 1
	boot_waiting "$accel" 1 "$image" 'rounds=5 ring=256 loop=1' &&
		timeout 60 "$U" trace start "$target" -e "$image" --trigger traced_sum:freeze || return 1
	echo >&9
	frozen=no
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		sleep 0.3
		dump "$target" && judge 'c.get("traced_sum") == 1' >/dev/null && frozen=yes && break
	done
	[ $frozen = yes ] || return 1
	timeout 60 "$U" trace start "$target" -e "$image" --filter traced_sum || return 1
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		sleep 0.3
		dump "$target" && judge 'c.get("traced_sum", 0) > 1' >/dev/null && return 0
	done
	cat "$T/report"
	return 1
}

# Hooks in what a vCPU runs before it has its own %gs.
everything() {
	boot_waiting "$accel" 2 "$image" 'rounds=5 ring=256 irq=100' &&
		timeout 60 "$U" trace start "$target" -e "$image" && go_on '^traced: 5 rounds on 2 vCPUs' &&
		beats && dump "$target" && judge 'c["lab_ap_main"] == 1' &&
		python3 "$SRC/tests/e2e/trace_judge.py" babeltrace "$T/s.uniscope"
}

# So many that most of the code is patched: it is still known for what it is.
thousand() {
	boot "$accel" "${image%/*}/trace-many-${image##*traced-}" ring=256 || return 1
	for _ in 1 2; do
		timeout 60 "$U" trace start "$target" -e "$elf" --filter 'many_*' 2>"$T/err" &&
			grep -q '^uniscope: 1000 functions at 2000 places are traced' "$T/err" &&
			timeout 60 "$U" trace stop "$target" -e "$elf" 2>>"$T/err" &&
			! grep -q 'left alone' "$T/err" || { cat "$T/err"; return 1; }
	done
}

# A dump of a guest that was killed then.
of_the_dead() {
	boot_waiting "$accel" 2 "$image" 'rounds=5 ring=256' --qmp "$T/q" &&
		timeout 60 "$U" trace start "$target" -e "$image" --filter 'traced_*' && go_on '^traced: ' &&
		python3 "$SRC/tests/e2e/qmp.py" "$T/q" stop '{}' dump-guest-memory \
			"{\"paging\": false, \"protocol\": \"file:$T/core\"}" || return 1
	end_guest
	dump "core:file=$T/core" && judge "lost == 0 and c == {k: 2 * v for k, v in $all.items()}" &&
		python3 "$SRC/tests/e2e/trace_judge.py" babeltrace "$T/s.uniscope"
}

for accel in $accels; do
	check "$accel: everything is traced while the second vCPU starts" everything
	check "$accel: a thousand functions, on and off, twice" thousand
	check "$accel: arguments and values" arguments
	check "$accel: a function freezes it" freezes
	check "$accel: the trace of a dead guest" of_the_dead
	[ "$accel" = tcg ] || continue # the guest's own work
	check "$accel: functions by pattern" by_pattern
	check "$accel: short calls vanish" short_calls
	check "$accel: deep calls vanish" deep_calls
	check "$accel: a function starts it" starts
	check "$accel: a function stops it" stops
done
end_guest
finish
