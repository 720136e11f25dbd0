#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# trace_options.sh UNISCOPE BUILD SRCROOT: the options of `trace start`, in guests under TCG and KVM that make known calls. They
# choose functions by pattern, the least duration, depth, triggers, arguments and values. Also a trace of everything, from before
# the second vCPU starts, and of a dead guest. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
# shellcheck source=tests/support/kill.sh
. "$SRC/tests/support/kill.sh"
image=$BUILD/lab/trace/trace-traced-gcc-fp.elf
[ -e "$image" ] || image=$BUILD/lab/trace/trace-traced-clang-fp.elf
[ -e "$image" ] || absent 'no traced lab images'

dump() { # TARGET [OPTION...]
	timeout 60 "$U" trace dump "$@" -e "$image" -q -o "$T/s.uniscope" --overwrite &&
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

in_session() { # SESSION PYTHON
	timeout 60 "$U" trace report --json -n 0 "$1" >"$T/report" 2>/dev/null && : >"$T/replay" && judge "$2"
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

# Shorter calls vanish, also of functions that are not aligned (two others call traced_odd); longer calls stay. A call stays, with
# its callers, if it is open while the counter's upper half changes (every second or two).
short_calls() {
	for mode in graph lite; do
		trace --filter 'traced_*' --mode $mode --min-duration 1000000 &&
			judge 'lost == 0 and sum(c.values()) <= 12' &&
			trace --filter 'traced_*' --mode $mode --min-duration 0.001 &&
			judge "lost == 0 and c == $all" || return 1
	done
}

# An option that needs the ends of calls is refused without them.
no_ends() {
	for option in '--min-duration 5' '--depth 3'; do
		for verb in start record; do
			timeout 60 "$U" trace $verb "$target" -e "$image" --mode function $option 2>"$T/err"
			refused $? "$T/err" 2 "${option% *} needs the ends of calls, and --mode function" ||
				return 1
		done
	done
}

# Also those that are not traced.
callers() {
	trace --filter traced_leaf --filter traced_callback --filter traced_odd --filter traced_fib --mode callers || return 1
	timeout 60 "$U" trace graph "$T/s.uniscope" --json --min 0 >"$T/graph" && python3 -c 'import json, sys
got, caller = {}, None
for n in json.load(open(sys.argv[1]))["tree"]:
    name = n["function"].removeprefix("traced_")
    caller = name if n["depth"] == 1 else caller
    if n["depth"] == 2:
        got[caller, name] = n["calls"]
print(got)
sys.exit(got != {("callback", "leaf"): 20, ("odd", "leaf"): 10, ("visit", "callback"): 20, ("visit", "odd"): 10,
                 ("round", "fib"): 5, ("fib", "fib"): 200})' "$T/graph"
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

# fib(7) makes 41 calls, 7 of them with more than 3. Other functions' calls are all there.
conditions() {
	trace --filter 'traced_*' --args 'traced_fib(n>3)' &&
		judge "lost == 0 and c == $all | {'traced_fib': 35} and report['calls_without_return'] == 0"
}

# The guest's own books: rounds done, and what traced_sum() returned.
variables() {
	trace --filter 'traced_*' --args 'traced_round(@lab_traced.rounds, @lab_traced.sum)' --args 'traced_none(@lab_traced.sum)' \
		--args 'traced_sum(return)' && judge "lost == 0 and c == $all" || return 1
	for round in 0 1 2 3 4; do
		before=$((round ? 14 + round : 0))
		grep -q "|  traced_round(n=$round, @lab_traced.rounds=$round, @lab_traced.sum=$before) {\$" "$T/replay" &&
			grep -q "|  } /\\* traced_round @lab_traced.rounds=$round, @lab_traced.sum=$((15 + round)) \\*/\$" "$T/replay" &&
			grep -q "|    traced_sum(); /\\* ret=$((15 + round)) \\*/\$" "$T/replay" || { cat "$T/replay"; return 1; }
	done
	grep -q '|    traced_none(@lab_traced.sum=19); /\* @lab_traced.sum=19 \*/$' "$T/replay" || { cat "$T/replay"; return 1; }
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

# Started and stopped in each round: it has calls without an end where it was stopped, none is told one
# that is another's.
starts_and_stops() {
	trace --filter 'traced_*' --trigger traced_visit:start --trigger traced_sum:stop &&
		python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
rows = {f["function"]: f for f in r["functions"]}
print(rows, r["calls_without_return"], r["returns_without_call"])
s, n = rows["traced_sum"], [rows["traced_" + f]["calls"] for f in ("visit", "fib")]
sys.exit(not ((s["calls"], s["timed"]) == (5, 0) and n == [10, 205] and r["lost"] == 0 and
    r["calls_without_return"] <= 1 and r["returns_without_call"] == 0))' "$T/report" &&
		[ "$(grep -c '|  traced_sum' "$T/replay")" = 5 ]
}

# The same, and what comes is not lost, but came after it; and who starts anew sets them going.
freezes() {
	trace --filter 'traced_*' --trigger traced_sum:freeze && judge "c ==
{k: v // 5 for k, v in $all.items() if k != 'traced_none'} and lost == 0" &&
		python3 -c 'import json, sys
after = json.load(open(sys.argv[1] + "/session.json"))["guests"][0]["trace"]["cpus"][0].get("after_freeze", 0)
print(after, "after the freeze")
sys.exit(after < 200)' "$T/s.uniscope" &&
		grep -q ' events came after the rings were frozen, and are not in it' "$T/err" &&
		! grep -q LOST "$T/replay" || { cat "$T/err"; return 1; }
	boot_waiting "$accel" 1 "$image" 'rounds=5 ring=256 loop=1' &&
		timeout 60 "$U" trace start "$target" -e "$image" --trigger traced_sum:freeze || return 1
	echo >&9
	frozen=no
	for _ in $(seq 60); do
		sleep 0.3
		dump "$target" && judge 'c.get("traced_sum") == 1' >/dev/null && frozen=yes && break
	done
	[ $frozen = yes ] || return 1
	timeout 60 "$U" trace start "$target" -e "$image" --filter 'traced_*' || return 1
	# It reports a loss once, whichever sub-buffer is open.
	for _ in $(by_default '1 2' '1 2 3'); do
		sleep 0.3
		dump "$target" && python3 "$SRC/tests/e2e/trace_judge.py" babeltrace "$T/s.uniscope" &&
			judge "lost == $(lost_in_session)" || return 1
	done
	for _ in $(seq 60); do
		judge 'c.get("traced_sum", 0) > 1' && break
		sleep 0.3
		dump "$target" || return 1
	done
	judge 'c.get("traced_sum", 0) > 1' || return 1
	# A guest that records also tells a dump how its clock goes, if it runs while it is looked at.
	for _ in $(seq 30); do
		dump "$target" && python3 "$SRC/tests/e2e/trace_judge.py" clock "$T/s.uniscope" 200000000 &&
			return 0
	done
	return 1
}

# So many as the dump's own summary says.
lost_in_session() {
	python3 -c 'import json, sys
cpus = json.load(open(sys.argv[1] + "/session.json"))["guests"][0]["trace"]["cpus"]
print(sum(c["lost"] + c["lost_words"] - c["lost_extra_words"] for c in cpus))' "$T/s.uniscope"
}

# A ring that stops when it is full has the beginning, and counts the rest: of a guest, and of its core.
full() {
	boot_waiting "$accel" 1 "$image" 'rounds=400 ring=320 stop=1' --qmp "$T/q" &&
		timeout 60 "$U" trace start "$target" -e "$image" --filter 'traced_*' && go_on '^traced: ' &&
		dump "$target" && has_beginning && says_full &&
		python3 "$SRC/tests/e2e/qmp.py" "$T/q" stop '{}' dump-guest-memory \
			"{\"paging\": false, \"protocol\": \"file:$T/core\"}" &&
		dump "core:file=$T/core" && has_beginning
}

says_full() {
	timeout 60 "$U" trace dump "$target" -e "$image" -o "$T/full.uniscope" --overwrite 2>"$T/err"
	grep -q "ring is full, and has stopped (UNI_TRACE_STOP): " "$T/err" || { cat "$T/err"; return 1; }
}

has_beginning() {
	python3 -c 'import json, sys
cpus = json.load(open(sys.argv[1] + "/session.json"))["guests"][0]["trace"]["cpus"]
events, lost, words = (sum(c[k] for c in cpus) for k in ("events", "lost", "lost_words"))
print(events, lost, words)
sys.exit(not (events > 40000 and words == 0 and events + lost == 400 * 116))' "$T/s.uniscope"
}

# Hooks in what a vCPU runs before it has its own %gs.
everything() {
	boot_waiting "$accel" 2 "$image" 'rounds=5 ring=256 irq=100' &&
		timeout 60 "$U" trace start "$target" -e "$image" && go_on '^traced: 5 rounds on 2 vCPUs' &&
		beats && dump "$target" && judge 'c["lab_ap_main"] == 1' &&
		python3 "$SRC/tests/e2e/trace_judge.py" babeltrace "$T/s.uniscope"
}

# The image is there, the ring is not: --wait waits for it, or says how long it did.
late() {
	boot_waiting "$accel" 1 "$image" 'rounds=5 ring=256 latering=1' || return 1
	timeout 60 "$U" trace start "$target" -e "$image" --wait 2 2>"$T/err"
	refused $? "$T/err" 1 'waited 2 s (--wait): no trace ring in this guest: it was not set up' ||
		return 1
	timeout 100 "$U" trace start "$target" -e "$image" --wait 90 --filter 'traced_*' 2>"$T/err" &
	starter=$!
	sleep 1
	go_on '^lab: running' && wait $starter && grep -q 'functions\{0,1\} at .* traced' "$T/err" ||
		{ cat "$T/err"; return 1; }
}

# The rings hold three sessions, one after the other: a dump is of the last one, unless all are asked for. Only calls of the second
# session have ends. At most the calls on the stack at a change are open.
modes() {
	boot "$accel" "$image" ring=8192 || return 1
	for mode in function graph function; do
		timeout 60 "$U" trace start "$target" -e "$image" --filter traced_round --mode $mode \
			2>"$T/err" || { cat "$T/err"; return 1; }
		wait_for 60 ten_calls || return 1
	done
	dump "$target" && judge 'sum(f["timed"] for f in report["functions"]) == 0 and
 c.keys() == {"traced_round"}' && ! grep -q '}$' "$T/replay" || return 1
	dump "$target" --all-sessions && python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
calls, timed = (sum(f[k] for f in r["functions"]) for k in ("calls", "timed"))
print(calls, timed, r["calls_without_return"], r["lost"])
sys.exit(not (calls > timed + 5 and timed > 5 and r["calls_without_return"] < 5))' "$T/report"
}

# A busy host lets the guest make few calls in any time.
ten_calls() { # of this session
	dump "$target" && python3 -c 'import json, sys
sys.exit(sum(f["calls"] for f in json.load(open(sys.argv[1]))["functions"]) < 10)' "$T/report"
}

# So many that most of the code is patched: it is still known for what it is.
thousand() {
	boot "$accel" "${image%/*}/trace-many-${image##*traced-}" ring=256 || return 1
	for _ in 1 2; do
		timeout 60 "$U" trace start "$target" -e "$elf" --filter 'many_*' 2>"$T/err" &&
			grep -q '^uniscope: 1000 functions at 2000 places are traced' "$T/err" &&
			timeout 60 "$U" trace stop "$target" -e "$elf" 2>>"$T/err" &&
			! grep -q 'left alone' "$T/err" || { cat "$T/err"; return 1; }
		# A stub takes its time: the guest goes on between stops of 32 places each.
		times=$(grep -c 'stopped 6[34] times' "$T/err")
		[ "$times" -eq "$([ "$accel" = tcg ] && echo 2 || echo 0)" ] || { cat "$T/err"; return 1; }
	done
}

all_off() { # how many places were on: in $left
	"$U" trace stop "$target" -e "$elf" 2>"$T/err" &&
		left=$(sed -n 's/.* tracing is off: \([0-9]*\) places have .*/\1/p' "$T/err") && [ -n "$left" ]
}

# Killed between two of these stops: some are on. The guardian of a recording switches them off.
some_of_a_thousand() {
	set -- "$target" -e "$elf" --filter 'many_*'
	count_calls -c sendto "$U" trace start "$@" && all_off || { cat "$T/err"; return 1; }
	echo "$left places were on, by $nr calls"
	killed_at -c sendto $((nr - 60)) "$U" trace start "$@" && wait_for 60 all_off || { cat "$T/err"; return 1; }
	echo "killed: $left"
	[ "$left" -gt 0 ] && [ "$left" -lt 2000 ] &&
		killed_at -c sendto $((nr - 60)) "$U" trace record "$@" -q -d 0.1 -o "$T/k.uniscope" --overwrite &&
		wait_for 60 all_off || { cat "$T/err"; return 1; }
	echo "killed, with a guardian: $left"
	[ "$left" -eq 0 ] && beats
}

record_on() { # FILE-FOR-STDERR: of traced_round, in the background, until it is on; its pid in $recorder
	"$U" trace record "$target" -e "$image" --filter traced_round -d 0 -o "$T/one.uniscope" \
		--overwrite 2>"$1" &
	recorder=$!
	wait_for 60 grep -q 'functions\{0,1\} at .* traced' "$1" || { cat "$1"; kill -KILL $recorder; return 1; }
}

# A profiler that chooses functions for a while has the guest to itself. A killed profiler is in nobody's way. One that is switched
# off from outside says so, and keeps what came before.
one_tracer() {
	boot "$accel" "$image" ring=1024 && record_on "$T/one" || return 1
	if [ "$accel" = kvm ]; then # a gdb stub has one client anyway
		for verb in start 'record -d 1'; do
			# shellcheck disable=SC2086 # words
			timeout 60 "$U" trace $verb "$target" -e "$image" --filter traced_leaf 2>"$T/err"
			refused $? "$T/err" 1 "the guest is being traced by process $recorder: " ||
				{ kill -KILL $recorder; return 1; }
		done
		timeout 60 "$U" trace record "$target" -e "$image" --as-is -d 0.2 -q -o "$T/s.uniscope" \
			--overwrite || { kill -KILL $recorder; return 1; }
	fi
	kill -KILL $recorder
	wait $recorder
	timeout 60 "$U" trace record "$target" -e "$image" --filter traced_leaf -d 0.2 -q \
		-o "$T/s.uniscope" --overwrite || return 1
	[ "$accel" = kvm ] || return 0
	record_on "$T/one" && wait_for 60 in_session "$T/one.uniscope" 'c.keys() == {"traced_round"}' &&
		timeout 60 "$U" trace stop "$target" -e "$image" || return 1
	wait_for 60 grep -q 'somebody else changed what is traced' "$T/one" || kill -KILL $recorder
	wait $recorder
	[ $? -eq 1 ] && in_session "$T/one.uniscope" 'c.keys() == {"traced_round"}' || { cat "$T/one"; return 1; }
}

# A dump of a guest that was killed then.
of_the_dead() {
	boot_waiting "$accel" 2 "$image" 'rounds=5 ring=256' --qmp "$T/q" &&
		timeout 60 "$U" trace start "$target" -e "$image" --filter 'traced_*' && go_on '^traced: ' &&
		python3 "$SRC/tests/e2e/qmp.py" "$T/q" stop '{}' dump-guest-memory \
			"{\"paging\": false, \"protocol\": \"file:$T/core\"}" || return 1
	end_guest
	timeout 60 "$U" trace dump "core:file=$T/core" -e "$image" -o "$T/said.uniscope" --overwrite 2>"$T/err"
	grep -q '^uniscope: [0-9]* events (calls and returns) of 2 CPUs, 0 older ones were [a-z ]*$' "$T/err" ||
		{ cat "$T/err"; return 1; }
	head -c $(($(stat -c %s "$T/core") - 1000000)) "$T/core" >"$T/cut"
	timeout 60 "$U" trace dump "core:file=$T/cut" -e "$image" -q -o "$T/cut.uniscope" --overwrite 2>"$T/err"
	grep -q "the core is cut off: 97[67] KiB of the guest's memory are missing" "$T/err" ||
		{ cat "$T/err"; return 1; }
	timeout 60 "$U" trace start "core:file=$T/core" 2>"$T/err"
	refused $? "$T/err" 1 'core: targets cannot be traced: nothing is written to such guests' || return 1
	dump "core:file=$T/core" && judge "lost == 0 and c == {k: 2 * v for k, v in $all.items()}" &&
		python3 "$SRC/tests/e2e/trace_judge.py" babeltrace "$T/s.uniscope" &&
		python3 "$SRC/tests/e2e/arithmetic.py" "$U" "$T/s.uniscope"
}

# A guest that is killed while its calls are recorded: what its open sub-buffer held, and was seen, is kept.
killed() {
	boot_waiting "$accel" 1 "$image" 'rounds=5 ring=256' || return 1
	rm -f "$T/err"
	timeout 200 "$U" trace record "$target" -e "$image" --filter 'traced_*' -o "$T/s.uniscope" \
		--overwrite 2>"$T/err" &
	recorder=$!
	wait_for 60 grep -q 'are traced' "$T/err" && go_on '^traced: ' &&
		wait_for 60 in_session "$T/s.uniscope" "c == $all" || { cat "$T/err"; kill -KILL $recorder; return 1; }
	kill -9 "$guest"
	wait $recorder && grep -q 's before that was noticed may be missing' "$T/err" || { cat "$T/err"; return 1; }
	in_session "$T/s.uniscope" "lost == 0 and c == $all" &&
		python3 "$SRC/tests/e2e/trace_judge.py" babeltrace "$T/s.uniscope"
}

# A script that starts the VMM later: --wait finds the image on the VMM's command line, which is not there at first.
script_first() {
	end_guest
	rm -f "$T/go" "$T/err"
	mkfifo "$T/go"
	# shellcheck disable=SC2016 # of that shell
	sh -c 'read -r _ <"$1"; shift; exec "$@"' - "$T/go" "$SRC/lab/boot" --accel "$accel" --append 'loop=1 ring=256' "$image" \
		</dev/null >"$T/boot" 2>&1 &
	guest=$!
	timeout 100 "$U" trace record "kvm:pid=$guest" --wait 90 --filter 'traced_*' -d 1 -o "$T/s.uniscope" --overwrite \
		2>"$T/err" &
	recorder=$!
	sleep 1 # it looks at the script meanwhile, and waits without a word
	echo >"$T/go" && wait $recorder || { cat "$T/err"; return 1; }
	in_session "$T/s.uniscope" "c.keys() <= $all.keys()"
}

for accel in $accels; do
	if [ -n "${UNISCOPE_ALL-}" ] || [ "$accel" = tcg ]; then
		check "$accel: everything is traced while the second vCPU starts" everything
		in_all check "$accel: a thousand functions, on and off, twice" thousand
		[ "$accel" = kvm ] || in_all check "$accel: killed when some of a thousand are on" some_of_a_thousand
	fi
	# The guest's own tracer does the same under each: it is looked at where guests are fast.
	if [ "$accel" = tcg ]; then
		in_all check "$accel: a ring that is set up late" late
		check "$accel: arguments and values" arguments
		check "$accel: a dump is of the last session, or of all" modes
		in_all check "$accel: a function freezes it" freezes
		in_all check "$accel: a full ring has the beginning" full
	fi
	# By default, of the dead under TCG and the others under KVM, if it is there.
	if [ -n "${UNISCOPE_ALL-}" ] || [ "$accel" = tcg ]; then
		check "$accel: the trace of a dead guest" of_the_dead
	fi
	if [ -n "${UNISCOPE_ALL-}" ] || [ "$accel" = "${accels##* }" ]; then
		check "$accel: one tracer at a time" one_tracer
		check "$accel: a guest that is killed" killed
		[ "$accel" = tcg ] || in_all check "$accel: a script that starts the VMM later" script_first
	fi
	[ "$accel" = tcg ] || continue # the guest's own work
	check "$accel: functions by pattern" by_pattern
	in_all check "$accel: calls with a condition alone" conditions
	check "$accel: variables of the guest, and a value alone" variables
	check "$accel: short calls vanish" short_calls
	check "$accel: no depth or duration where calls have no end" no_ends
	check "$accel: callers without their tracing" callers
	check "$accel: deep calls vanish" deep_calls
	in_all check "$accel: a function starts it" starts
	in_all check "$accel: a function stops it" stops
	check "$accel: functions start and stop it" starts_and_stops
done
end_guest
finish
