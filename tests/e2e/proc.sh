#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# proc.sh UNISCOPE BUILD SRCROOT PROCESS: processes as guests. Lab apps against their own books, by
# perf events and by stopping; a position-independent program with threads and shared libraries, which
# must not notice. TAP.
set -u
U=$1 BUILD=$2 SRC=$3 PROCESS=$4
. "$SRC/tests/support/can.sh"
. "$SRC/tests/e2e/ahead.sh"
T=$(mktemp -d) || exit 1
. "$SRC/tests/support/kill.sh"
n=0 pid=''
end() {
	[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
	[ -z "$pid" ] || wait "$pid" 2>/dev/null
	pid=
}
trap 'end; rm -rf "$T"' EXIT
trap 'exit 130' INT TERM

# shellcheck source=tests/support/tap.sh
. "$SRC/tests/support/tap.sh"

begin_app() { # APP-VARIANT
	end
	rm -f "$T/out" # or the app before says that this one runs
	"$BUILD/lab/process/$1" loop=1 >"$T/out" 2>&1 </dev/null &
	pid=$!
	for _ in $(seq 600); do
		grep -q '^lab: running' "$T/out" && break
		sleep 0.1
	done
}

# Shares of time and complete chains, as the app's own books and code have them.
books() { # APP-VARIANT WAY; no WAY: the one that uniscope chooses
	begin_app "$1"
	# A busy host leaves few samples: then it is asked again of more.
	for seconds in 2 5 12 40; do
		kill -CONT "$pid"
		timeout 90 "$U" record "proc:pid=$pid${2:+,via=$2}" -q -F 499 -d $seconds --watch lab_truth \
			-o "$T/s.uniscope" --overwrite || return 1
		kill -STOP "$pid" # it would cost a CPU while the judge thinks
		"$U" export --no-inline "$T/s.uniscope" --all-time -f json -o "$T/s.json" || return 1
		python3 "$SRC/tests/e2e/judge.py" --stacks "$T/s.json" --session "$T/s.uniscope" \
			--graph "$BUILD/lab/process/$1.graph" --min-samples 150
		judgement=$?
		[ $judgement -eq 3 ] || break
	done
	kill -CONT "$pid" && return $judgement
}

# perf events copy one stack. Frames by what is read of others afterwards are marked, and no such chain is complete.
one_stack() { # APP-VARIANT
	begin_app "$1"
	for seconds in 2 5 12 40; do
		timeout 90 "$U" record "proc:pid=$pid,via=perf" -q -F 499 -d $seconds -o "$T/s.uniscope" --overwrite &&
			"$U" export --no-inline "$T/s.uniscope" -f folded -o "$T/p.folded" && "$U" export --no-inline "$T/s.uniscope" -f json -o "$T/s.json" ||
			return 1
		[ "$(awk '{ n += $NF } END { print n + 0 }' "$T/p.folded")" -lt 100 ] || break
	done
	python3 - "$T/p.folded" "$T/s.json" "$BUILD/lab/process/$1.graph" <<'P'
import json, sys
edges = {tuple(line.split()) for line in open(sys.argv[3])}
g = json.load(open(sys.argv[2]))["recording"]["guests"][0]
marked = total = 0
for line in open(sys.argv[1]):
    stack, n = line.rsplit(" ", 1)
    names = [name for name in stack.split(";") if not name.endswith("_[k]") and name[0] != "["]
    total += int(n)
    marked += int(n) * any(name.endswith(" ?") for name in names)
    for edge in zip(names, names[1:]):
        assert edge in edges or any(name.endswith(" ?") for name in edge), (edge, line)
print(total, marked, g["complete"], g["guessed"])
assert total >= 100 and marked > 0.8 * total and g["complete"] < 0.2, line
P
}

# A tender's name is all that ls can go by.
listed() {
	end
	cp "$BUILD/lab/process/deep-gcc-fp" "$T/solo5-spt" || return 1
	"$T/solo5-spt" --mem=32 loop=1 >"$T/out" 2>&1 </dev/null &
	pid=$!
	for _ in $(seq 600); do # it is that program, and not the shell before it
		[ "$(cat "/proc/$pid/comm")" = solo5-spt ] && break
		sleep 0.1
	done
	"$U" ls --json >"$T/ls" || return 1
	python3 - "$T/ls" $pid <<'P'
import json, sys
row = [g for g in json.load(open(sys.argv[1]))["guests"] if g["pid"] == int(sys.argv[2])][0]
print(row)
assert row["vmm"] == "solo5-spt" and row["accel"] == "process", row
assert row["target"] == "proc:pid=" + sys.argv[2] and row["image"].endswith("loop=1"), row
P
}

# No sample is no profile, and a line says why.
asleep() {
	end
	sleep 1000 &
	pid=$!
	mkfifo "$T/hold"
	"$U" record "proc:pid=$pid" -d 0.3 -o "$T/asleep.uniscope" 2>"$T/said" && cat "$T/said" &&
		grep ' 0 samples in .* lost$' "$T/said" && "$U" report "$T/asleep.uniscope" | grep '^chains *none$' &&
		grep 'ran on a CPU too little for a sample, if at all: .uniscope stacks proc:pid=' "$T/said"
}

# Nothing is told of a process that nobody could have sampled.
too_short() {
	end
	sh -c 'while :; do :; done' &
	pid=$!
	"$U" record "proc:pid=$pid" -d 0.001 -F 1 -o "$T/short.uniscope" --overwrite 2>"$T/said" && cat "$T/said" &&
		grep 'too short for a sample at 1 Hz' "$T/said" && ! grep 'where it waits' "$T/said"
}

# Its chain begins where it was stopped, in a system call or not; another tracer does not hide it.
stopped() {
	[ "$(cat "/proc/$pid/comm")" = sleep ] || return 1
	kill -STOP "$pid"
	for _ in $(seq 600); do
		grep -q '^State:	T' "/proc/$pid/status" && break
		sleep 0.1
	done
	stops "$pid" && grep 'vCPU 0 (stopped by a signal)' "$T/stacks" &&
		grep "a signal has stopped process $pid: kill -CONT" "$T/said" || return 1
	"$U" record "proc:pid=$pid,via=stop" -q -d 0.3 -o "$T/asleep.uniscope" --overwrite &&
		"$U" report "$T/asleep.uniscope" >"$T/report" && cat "$T/report" || return 1
	grep 'halted .* 100.00 %: the thread slept, or a signal' "$T/report" || return 1
	/usr/bin/python3 -c 'import ctypes, os, sys
if ctypes.CDLL(None, use_errno=True).ptrace(0x4206, int(sys.argv[1]), None, None):
    sys.exit(os.strerror(ctypes.get_errno()))
print("traced", flush=True)
sys.stdin.read()' "$pid" <"$T/hold" >"$T/traced" &
	tracer=$!
	exec 8>"$T/hold"
	for _ in $(seq 600); do
		grep -q traced "$T/traced" && break
		sleep 0.1
	done
	stops "$pid"
	status=$?
	exec 8>&-
	wait $tracer
	return $status
}

# The innermost frame is the system call's, and no frame is at address 0.
stops() { # PID
	"$U" stacks "proc:pid=$1" >"$T/stacks" 2>"$T/said"
	status=$?
	cat "$T/said" "$T/stacks"
	[ $status -eq 0 ] && grep '#0 .*nanosleep' "$T/stacks" && ! grep ' 0000000000000000 ' "$T/stacks"
}

# A thread in a system call: its innermost frame is the kernel, at no address.
in_kernel() {
	end
	/usr/bin/python3 -c 'f = open("/dev/zero", "rb", buffering=0)
b = bytearray(1 << 24)
while True:
    f.readinto(b)' &
	pid=$!
	for _ in $(seq 600); do
		"$U" stacks "proc:pid=$pid" >"$T/stacks" || return 1
		grep -q '#0 .*\[kernel\]' "$T/stacks" && break
	done
	head -5 "$T/stacks"
	grep -q '#0 *\[kernel\]' "$T/stacks" && grep '#1 .*read' "$T/stacks" && ! grep ' 0000000000000000 ' "$T/stacks"
}

# An upgrade replaces libraries of running processes. The old file has its names, in `stacks` and for the observer of `record`.
deleted_library() {
	rm -rf "$T/lib"
	mkdir "$T/lib" && cp "$(ldd "$PROCESS" | sed -n 's/.*libc.so.6 => \([^ ]*\).*/\1/p')" "$T/lib" || return 1
	LD_LIBRARY_PATH=$T/lib
	export LD_LIBRARY_PATH
	sorter
	unset LD_LIBRARY_PATH
	echo 'no library' >"$T/lib/new" && mv "$T/lib/new" "$T/lib/libc.so.6" || return 1
	"$U" stacks "proc:pid=$pid" >"$T/stacks" &&
		"$U" record "proc:pid=$pid" -q -d 0.3 -o "$T/deleted.uniscope" --overwrite || return 1
	cat "$T/stacks"
	grep -q '__libc_start_main' "$T/stacks" && grep "\"path\": *\"$T/lib/libc.so.6\"" "$T/deleted.uniscope/session.json"
}

# The number of a thread that has ended shows no program; that of another thread of the process does.
ended() {
	end
	sh -c 'true & exec sleep 1000' &
	pid=$!
	for _ in $(seq 600); do
		child=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null)
		[ -n "$child" ] && grep -q '^State:	Z' "/proc/${child% }/status" && break
		sleep 0.1
	done
	refuses "process ${child% } has ended, and its parent has not asked" "proc:pid=${child% }" || return 1
	[ "$(cat /proc/2/comm 2>/dev/null)" != kthreadd ] ||
		refuses 'process 2 is a thread of the kernel' proc:pid=2 || return 1
	end
	/usr/bin/python3 -c 'import ctypes, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).pthread_exit(None)' &
	pid=$!
	for _ in $(seq 600); do
		grep -q '^State:	Z' "/proc/$pid/status" && break
		sleep 0.1
	done
	"$U" stacks "proc:pid=$pid" >"$T/stacks" && cat "$T/stacks" && grep -q start_thread "$T/stacks"
}

sorter() {
	end
	rm -f "$T/in"
	mkfifo "$T/in"
	"$PROCESS" <"$T/in" >"$T/out" &
	pid=$!
	exec 9>"$T/in"
	for _ in $(seq 600); do # both of its threads wait
		[ "$(cat /proc/$pid/task/*/status 2>/dev/null | grep -c '^State:	S')" -eq 2 ] && return
		sleep 0.1
	done
}

# The callback below the C library's qsort below ours: two images, both moved.
sorts() { # WAY
	for seconds in 1.5 5 12 40; do # a busy host gives it few turns
		timeout 90 "$U" record "proc:pid=$pid,via=$1" -q -F 499 -d $seconds -o "$T/p.uniscope" --overwrite &&
			"$U" export --no-inline "$T/p.uniscope" -f folded -o "$T/p.folded" || return 1
		[ "$(grep -v '\[idle\]\|poll\|wait' "$T/p.folded" | awk '{ n += $NF } END { print n + 0 }')" -lt 100 ] || break
	done
	grep -q 'main;sort_some;.*;compare ' "$T/p.folded" && grep -q '^_start;' "$T/p.folded" && return 0
	head -5 "$T/p.folded"
	return 1
}

# Sleeping threads are seen as such, where they wait.
sleeps() {
	"$U" stacks "proc:pid=$pid" >"$T/stacks" || return 1
	cat "$T/stacks"
	[ "$(grep -c '^vCPU' "$T/stacks")" -eq 3 ] && [ "$(grep -c 'halted' "$T/stacks")" -ge 2 ] &&
		grep -q wait_for_ever "$T/stacks" && grep -q poller "$T/stacks"
}

unnoticed() {
	printf x >&9
	wait "$pid"
	pid=
	cat "$T/out"
	grep -q '^interrupted 0 times' "$T/out"
}

refuses() { # WORDS TARGET
	"$U" stacks "$2" >"$T/said" 2>&1 && return 1
	cat "$T/said"
	grep -q -e "$1" "$T/said"
}

# A session says how it was made.
by() { # METHOD WORDS COMMAND...
	method=$1 words=$2
	shift 2
	timeout 60 "$@" -F 99 -d 0.3 -o "$T/m.uniscope" --overwrite 2>"$T/said" || {
		cat "$T/said"
		return 1
	}
	cat "$T/said"
	grep -E '"(method|why)"' "$T/m.uniscope/session.json"
	grep -q "\"method\": *\"$method\"" "$T/m.uniscope/session.json" && grep -q "$words" "$T/said"
}

# One line, before anything is sampled.
refused() { # WORDS OPTION...
	words=$1
	shift
	timeout 20 "$U" record "proc:pid=$pid" "$@" -d 30 -o "$T/r.uniscope" 2>"$T/said" && return 1
	cat "$T/said"
	[ "$(wc -l <"$T/said")" -eq 1 ] && grep -q -e "$words" "$T/said" && [ ! -e "$T/r.uniscope" ]
}

top() { # OPTION...: of the last app above, deep
	timeout 30 "$U" top --no-inline "proc:pid=$pid" --json --count 2 -i 0.5 "$@" >"$T/top.json" || return 1
	python3 -c 'import json, sys
for text in open(sys.argv[1]):
    last = json.loads(text)
names = [f["name"] for f in last["functions"]]
print(names)
sys.exit("hot_work" not in names or "app_main" not in names)' "$T/top.json"
}

# A command that runs meanwhile: it begins after the sampling does, and ends it.
works() {
	timeout 120 "$U" record "proc:pid=$pid" -q -o "$T/w.uniscope" -- sh -c 'date +%s >"$1/ran"' sh "$T" &&
		test -s "$T/ran" && python3 - "$T/w.uniscope/session.json" <<'P'
import json, sys
s = json.load(open(sys.argv[1]))
w, st = s["work"], s["statistics"]
print(w, st["begin_ns"], st["end_ns"])
assert w["status"] == 0 and w["command"].startswith("sh -c date +%s"), w
assert st["begin_ns"] <= w["begin_ns"] < w["end_ns"] <= st["end_ns"], (w, st)
P
}
fails() {
	timeout 120 "$U" record "proc:pid=$pid" -q -o "$T/f.uniscope" -- sh -c 'exit 7' 2>"$T/said" &&
		cat "$T/said" && grep -q 'failed (status 7)' "$T/said" && grep -q '"status": *7' "$T/f.uniscope/session.json"
}
outlived() { # what the command asks for is over with the recording
	timeout 120 "$U" record "proc:pid=$pid" -q -d 0.3 -o "$T/f.uniscope" --overwrite -- sleep 1000 2>"$T/said" &&
		cat "$T/said" && grep -q 'it gets SIGTERM' "$T/said" && grep -q '"status": *143' "$T/f.uniscope/session.json"
}
unknown_command() {
	timeout 120 "$U" record "proc:pid=$pid" -q -o "$T/x.uniscope" -- /nonexistent/load 2>"$T/said" && return 1
	cat "$T/said"
	grep -q "cannot run '/nonexistent/load': No such file" "$T/said" && [ ! -e "$T/x.uniscope" ]
}

ran_ns() { # all of its threads
	cat "/proc/$pid/task/"*/schedstat | awk '{ n += $1 } END { printf "%.0f\n", n }'
}

runs_on() {
	before=$(ran_ns)
	for _ in $(seq 300); do
		sleep 0.1
		[ "$(ran_ns)" -gt "$before" ] && return 0
	done
	return 1
}

# The profiler dies with a thread stopped, at 8 different calls: the process runs on.
survives() {
	for i in 1 2 3 5 8 13 21 34; do
		"$KILL_AT" -p $pid $i "$U" record "proc:pid=$pid,via=stop" -q -F 5000 -d 60 -o "$T/k.uniscope" \
			--overwrite || return 1
	done
	runs_on
}

# Wherever it dies while it makes a session: what is left is no obstacle to the next.
leaves_no_obstacle() {
	set -- "$U" record "proc:pid=$pid" -q -d 0.1 -o "$T/b.uniscope" --overwrite
	for call in mkdirat renameat; do
		count_calls -c $call "$@" && rm -rf "$T/b.uniscope" || return 1
		echo "$nr of $call"
		for i in $(seq "$nr"); do
			"$KILL_AT" -c $call "$i" "$@" || return 1
		done
		"$@" || return 1
	done
}

traced() { # ROUNDS [PROGRAM [CALLS-A-SECOND]]
	end
	rm -f "$T/in" "$T/out"
	mkfifo "$T/in"
	"$BUILD/tests/e2e/${2:-proctraced}" "$1" 4 "${3:-0}" <"$T/in" >"$T/out" &
	pid=$!
	exec 9>"$T/in"
	for _ in $(seq 600); do
		grep -q ready "$T/out" && return 0
		sleep 0.1
	done
	return 1
}

# Every call that the process counted, with what its functions take and return.
calls() {
	traced 50 || return 1
	timeout 60 "$U" trace record "proc:pid=$pid" -q -d 0 --args 'work_*' -o "$T/c.uniscope" --overwrite \
		2>"$T/said" &
	tracer=$!
	for _ in $(seq 600); do
		code && ! cmp -s "$T/code" "$T/plain" && break
		sleep 0.1
	done
	echo >&9
	for _ in $(seq 600); do
		grep -q '^done' "$T/out" && break
		sleep 0.1
	done
	kill -INT $tracer
	wait $tracer || { cat "$T/said"; return 1; }
	"$U" trace report --json "$T/c.uniscope" >"$T/c.json" && "$U" trace replay "$T/c.uniscope" >"$T/replay" &&
		counted && grep -q "|  } /[*] work_round ret=193 [*]/$" "$T/replay" && code &&
		cmp "$T/code" "$T/plain"
}

# The session has them although no sub-buffer ever is full, and in the end each of them once.
few() {
	traced 12 proctraced 1000 || return 1
	timeout 60 "$U" trace record "proc:pid=$pid" -q -d 0 --filter 'work_*' -o "$T/c.uniscope" --overwrite \
		2>"$T/said" &
	tracer=$!
	for _ in $(seq 600); do
		code && ! cmp -s "$T/code" "$T/plain" && break
		sleep 0.1
	done
	echo >&9
	early=
	for _ in $(seq 300); do
		early=$("$U" trace report --json "$T/c.uniscope" 2>/dev/null | grep -c '"function": "work_')
		[ "${early:-0}" -eq 3 ] && grep -q '^done' "$T/out" && break
		sleep 0.2
	done
	kill -INT $tracer
	wait $tracer || { cat "$T/said"; return 1; }
	"$U" trace report --json "$T/c.uniscope" >"$T/c.json" && counted && [ "${early:-0}" -eq 3 ]
}

counted() {
	python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
got = {f["function"]: f["calls"] for f in r["functions"]}
want = {l.split()[0]: int(l.split()[1]) for l in open(sys.argv[2]) if l.startswith("work_")}
print(got, want, r["lost"])
sys.exit(got != want or r["lost"] != 0 or len(want) != 3)' "$T/c.json" "$T/out"
}

# Functions that call the tracer by themselves: on and off are all there is, and both are the host's.
by_itself() { # PROGRAM
	traced 0 "$1" 20000 && echo >&9 || return 1
	for _ in 1 2; do
		timeout 60 "$U" trace stop "proc:pid=$pid" && as_is 0 0 || return 1
		timeout 60 "$U" trace start "proc:pid=$pid" --threads && as_is 0 0 || return 1
		timeout 60 "$U" trace start "proc:pid=$pid" 2>"$T/said" && as_is 1000 1000000000000 &&
			grep -q 'all functions that call the tracer by themselves are traced' "$T/said" || return 1
	done
	timeout 60 "$U" trace record "proc:pid=$pid" -q -d 0.3 -o "$T/c.uniscope" --overwrite &&
		events 1000 1000000000000 && as_is 0 0 || return 1
	timeout 60 "$U" trace start "proc:pid=$pid" --filter work_leaf 2>"$T/said"
	[ $? -eq 1 ] && grep -q 'All of them are traced or none' "$T/said" && as_is 0 0
}

as_is() { # FROM TO
	timeout 60 "$U" trace record "proc:pid=$pid" --as-is -q -d 0.3 -o "$T/c.uniscope" --overwrite &&
		events "$@"
}

# Every one of the calls that the process counted.
all_by_itself() { # PROGRAM
	traced 50 "$1" && timeout 60 "$U" trace start "proc:pid=$pid" --mode "$2" && echo >&9 || return 1
	for _ in $(seq 600); do
		grep -q '^done' "$T/out" && break
		sleep 0.1
	done
	timeout 60 "$U" trace stop "proc:pid=$pid" &&
		timeout 60 "$U" trace dump "proc:pid=$pid" -q -o "$T/c.uniscope" --overwrite &&
		"$U" trace report --json "$T/c.uniscope" >"$T/c.json" && counted
}

events() { # FROM TO: so many are in the session
	python3 -c 'import json, sys
cpus = json.load(open(sys.argv[1] + "/session.json"))["guests"][0]["trace"]["cpus"]
got = sum(c["events"] for c in cpus)
print(got, "events")
sys.exit(not int(sys.argv[2]) <= got <= int(sys.argv[3]))' "$T/c.uniscope" "$1" "$2"
}

# The code from work_leaf to work_round, as the process has it now.
code() {
	from=$(nm "$BUILD/tests/e2e/proctraced" | sed -n 's/^\([0-9a-f]*\) T work_leaf$/\1/p')
	dd if="/proc/$pid/mem" of="$T/code" bs=16 skip=$((0x$from / 16)) count=16 2>/dev/null
}

# A killed command may have changed the code; stop undoes any change.
undone() {
	code
	cmp -s "$T/code" "$T/plain" || patched=$((patched + 1))
	"$U" trace stop "proc:pid=$pid" 2>"$T/said" || { cat "$T/said"; return 1; }
	code && cmp "$T/code" "$T/plain"
}

# Killed at each write into the process, and at 21 other calls of start, record and stop: bytes are old
# or new, and it runs on.
tracer_dies() {
	traced 0 proctraced 20000 && echo >&9 && code && cmp "$T/code" "$T/plain" || return 1
	kills=0 patched=0
	for does in start stop record; do
		set -- "$U" trace $does "proc:pid=$pid"
		[ $does != record ] || set -- "$@" -q -d 0.05 -o "$T/k.uniscope" --overwrite
		for call in pwrite64 any; do
			counted=
			[ $call = any ] || counted="-c $call"
			[ $does != stop ] || "$U" trace start "proc:pid=$pid" 2>"$T/said" || return 1
			# shellcheck disable=SC2086 # words
			count_calls $counted "$@" || return 1
			echo "$does: $nr calls ($call)"
			"$U" trace stop "proc:pid=$pid" 2>"$T/said"
			parts=$nr
			[ $call != any ] || parts=7
			for i in $(seq "$parts"); do
				[ $does != stop ] || "$U" trace start "proc:pid=$pid" 2>"$T/said" || return 1
				# shellcheck disable=SC2086 # words
				killed_at $counted $((i * nr / parts)) "$@" && undone || return 1
				kills=$((kills + 1))
			done
		done
	done
	echo "$kills kills, $patched left patches"
	[ $kills -ge 26 ] && [ $patched -ge 5 ] && runs_on
}

is_plain() { # yes|no, within a minute
	for _ in $(seq 1200); do
		code
		if cmp -s "$T/code" "$T/plain"; then now=yes; else now=no; fi
		[ $now = "$1" ] && return
		sleep 0.05
	done
	echo "the code was not changed to $1"
	return 1
}

# Killed while the code is patched: the guardian restores it. Whoever comes then has the guest at once.
guarded() {
	for _ in $(seq "${KILLS:-3}"); do
		"$U" trace record "proc:pid=$pid" -q -d 0 -o "$T/k.uniscope" --overwrite 2>"$T/said" &
		tracer=$!
		is_plain no || { kill -9 $tracer; cat "$T/said"; return 1; }
		kill -9 $tracer
		wait $tracer
		is_plain yes || return 1
	done
	"$U" trace record "proc:pid=$pid" -q -d 0.05 -o "$T/k.uniscope" --overwrite && runs_on
}

ways=stop no_perf= all=${UNISCOPE_ALL-}
can perf || no_perf=$why_not
sleep 60 &
pid=$!
for _ in $(seq 600); do # until it is that program, and not the shell before it
	[ "$(cat "/proc/$pid/comm")" = sleep ] && break
	sleep 0.1
done
if [ -z "$no_perf" ]; then
	ways='perf stop'
	check 'perf events can be used' "$U" stacks "proc:pid=$pid,via=perf"
else
	n=$((n + 1))
	echo "ok $n - by perf events # SKIP $no_perf"
fi
for way in $ways; do
	for app in shares leaf deep; do
		for variant in gcc-fp gcc-nofp clang-nofp; do
			[ -e "$BUILD/lab/process/$app-$variant" ] || continue
			# Each app by each way, and twice by perf in sh test.sh all; each variant with two apps. Not each of each.
			case ${UNISCOPE_ALL:-some},$way,$app,$variant in
			*,perf,shares,gcc-nofp | *,perf,leaf,gcc-fp | *,perf,deep,clang-nofp) ;;
			*,stop,shares,gcc-fp | *,stop,deep,gcc-nofp) ;;
			1,perf,shares,clang-nofp | 1,perf,leaf,gcc-nofp | 1,perf,deep,gcc-fp | 1,stop,leaf,clang-nofp) ;;
			*) continue ;;
			esac
			check "$app-$variant by $way" books $app-$variant $way
		done
	done
done
check 'fibers-gcc-nofp by the way that is chosen' books fibers-gcc-nofp ''
check 'an image that switches stacks is stopped, and told why' by pause 'switches stacks' "$U" record "proc:pid=$pid"
[ "$ways" = stop ] || check 'fibers-gcc-nofp, one stack by perf' one_stack fibers-gcc-nofp
begin_app deep-gcc-nofp
if [ "$ways" != stop ]; then
	check 'the method is perf' by perf 'host.s kernel (perf)' "$U" record "proc:pid=$pid"
	check '--method pause stops it' by pause paused "$U" record "proc:pid=$pid" --method pause
	check 'without perf events it is stopped, and told why' by pause 'not permitted' \
		"$BUILD/tests/e2e/noperf" "$U" record "proc:pid=$pid"
	check 'top' top
fi
check 'top, by stopping' top --method pause
check 'a command that runs meanwhile is what the session is about' works
check 'a command that fails: the session says so' fails
check 'a command that outlives the recording ends with it' outlived
check 'a command that is not there leaves no session' unknown_command
check '--aggregate is refused' refused 'aggregate counts in' --aggregate
check '--exits is refused' refused 'VM exits cannot be seen' --exits
check '--method bpf is refused' refused 'is for kvm: targets' --method bpf
check '--threads of a guest that has none' refused 'no model knows' --threads
check 'a process that sleeps' asleep
check 'one that a signal has stopped' stopped
check 'one in a system call' in_kernel
check 'a recording that is too short' too_short
check 'a library that was replaced while it runs' deleted_library
check 'processes without a program, and one without its first thread' ended
check 'ls knows one by its tender' listed
traced 1 && code && cp "$T/code" "$T/plain"
check 'its calls are traced' calls
check 'few of them are there at once' few
for way in instrument fentry; do
	[ $way$all = instrument ] || check "functions that call the tracer by themselves ($way) are switched" by_itself procself-$way
	for mode in graph lite function; do
		check "each of their calls ($way, $mode)" all_by_itself procself-$way $mode
	done
done
check 'the tracer is killed' tracer_dies
check 'its guardian restores the code' guarded
exec 9>&-
sorter
for way in $ways; do
	check "through shared libraries by $way" sorts $way
done
check 'sleeping threads' sleeps
check 'the profiler is killed' survives
check 'and leaves nothing that blocks the next' leaves_no_obstacle
check 'nobody noticed' unnoticed
check 'no such process' refuses 'there is no process' proc:pid=4194303
check 'no pid' refuses 'which process' proc:via=stop
echo "1..$n"
