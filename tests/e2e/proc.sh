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
	for seconds in 1 3 12 40; do
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

# The same position-independent program with a build-id of its own: what is equal has names.
other_build() {
	python3 - "$PROCESS" "$T/rebuilt" <<'P'
import struct, sys
elf = bytearray(open(sys.argv[1], "rb").read())
elf[elf.index(struct.pack("<III4s", 4, 20, 3, b"GNU")) + 16] ^= 0xff
open(sys.argv[2], "wb").write(elf)
P
	"$U" stacks "proc:pid=$pid" -e "$T/rebuilt" >"$T/got" 2>"$T/err" &&
		grep 'rebuilt is not exactly what the guest runs: its build-id is another one, and 0 of' "$T/err" &&
		grep 'main' "$T/got" || return 1
	! "$U" stacks "proc:pid=$pid" -e "$U" >"$T/got" 2>"$T/err" &&
		grep "is not the program that runs, or another build of it: the build-id is not that of .*$(basename "$PROCESS")" "$T/err" || return 1
	"$U" stacks "proc:pid=$pid" -e "$T/rebuilt" --accept-image >"$T/got" 2>"$T/err" && grep 'names may be wrong' "$T/err"
}

# perf events copy one stack. Frames by what is read of others afterwards are marked, and no such chain is complete.
one_stack() { # APP-VARIANT
	begin_app "$1"
	for seconds in 1 3 12 40; do
		timeout 90 "$U" record "proc:pid=$pid,via=perf" -F 499 -d $seconds -o "$T/s.uniscope" --overwrite 2>"$T/said" &&
			"$U" export --no-inline "$T/s.uniscope" -f folded -o "$T/p.folded" && "$U" export --no-inline "$T/s.uniscope" -f json -o "$T/s.json" ||
			return 1
		[ "$(awk '{ n += $NF } END { print n + 0 }' "$T/p.folded")" -lt 100 ] || break
	done
	grep 'were read after the sample or found by .*: perf events copy 32 KiB of one stack, .*\. With via=stop' "$T/said" &&
		"$U" report --all-time "$T/s.uniscope" >"$T/got" 2>"$T/err" &&
		grep '^counted .* 100 % is the time on a CPU: this process has no samples of other time' "$T/got" || return 1
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

# Looks at the process until it is there.
stacks_until() { # WORDS
	for _ in $(seq 600); do
		"$U" stacks "proc:pid=$pid" >"$T/stacks" || return 1
		grep -q "$1" "$T/stacks" && break
	done
	head -5 "$T/stacks"
}

# A thread in a system call: its innermost frame is the kernel, at no address.
in_kernel() {
	end
	/usr/bin/python3 -c 'f = open("/dev/zero", "rb", buffering=0)
b = bytearray(1 << 24)
while True:
    f.readinto(b)' &
	pid=$!
	stacks_until '#0 .*\[kernel\]' || return 1
	grep -q '#0 *\[kernel\]' "$T/stacks" && grep '#1 .*read' "$T/stacks" && ! grep ' 0000000000000000 ' "$T/stacks"
}

# The kernel maps the code that tells the time; it is no file.
in_vdso() {
	end
	/usr/bin/python3 -c 'from time import perf_counter
while True:
    perf_counter()' &
	pid=$!
	stacks_until __vdso_clock_gettime || return 1
	grep -A1 '__vdso_clock_gettime' "$T/stacks" | tail -1 | grep clock_gettime || return 1
	"$U" record "proc:pid=$pid" -q -d 0.4 -F 499 -o "$T/s.uniscope" --overwrite &&
		"$U" report "$T/s.uniscope" -n 0 >"$T/report" && grep __vdso_clock_gettime "$T/report" && ! grep ' 0x7f' "$T/report"
}

# The caller's frame is found by rbx, which libraries and the vDSO must leave known.
on_another_stack() {
	for above in 'memcpy\|memmove' __vdso_clock_gettime; do
		end
		case $above in
		mem*) "$BUILD/tests/e2e/otherstack" & ;;
		*) "$BUILD/tests/e2e/otherstack" tell & ;;
		esac
		pid=$!
		stacks_until "$above" && grep -A99 "$above" "$T/stacks" >"$T/above" &&
			grep -q ' run_on+' "$T/above" && grep -q ' main+' "$T/above" && ! grep '?' "$T/stacks" || return 1
	done
}

# A stack that does not fit into perf's copies: the thread is stopped for its samples. The book is the program's own CPU time.
deep_calls() {
	end
	"$BUILD/tests/e2e/deepcalls" >"$T/out" &
	pid=$!
	for seconds in 3 12 40; do # a busy host gives it few looks
		grep -c . "$T/out" >"$T/begin"
		timeout 90 "$U" record "proc:pid=$pid" -F 499 -d $seconds -o "$T/s.uniscope" --overwrite 2>"$T/said" &&
			"$U" export --no-inline "$T/s.uniscope" -f folded -o "$T/p.folded" && "$U" export "$T/s.uniscope" -f json -o "$T/s.json" || return 1
		cat "$T/said"
		python3 - "$T" <<'P' && return 0
import json, math, sys
t = sys.argv[1] + "/"
g = json.load(open(t + "s.json"))["recording"]["guests"][0]
rows = [tuple(map(int, line.split())) for line in open(t + "out") if len(line.split()) == 2]
first = int(open(t + "begin").read())
book = [b - a for a, b in zip(rows[max(first - 1, 0)], rows[-1])]
depth = total = roots = 0
for line in open(t + "p.folded"):
    stack, n = line.rsplit(" ", 1)
    total += int(n)
    roots += int(n) * stack.startswith("_start;")
    depth += int(n) * (";main;in_the_depth;calls;" in stack)
looks, share = g["pause_ns"]["nr"], book[0] / sum(book)
told = json.load(open(t + "s.uniscope/session.json"))["guests"][0]["statistics"]
equal = told["weight"] ** 2 / sum(told["squares"].values()) # looks stand for unequal times
bound = 4 * math.sqrt(share * (1 - share) / max(equal, 1)) + 0.02
periods = g["vcpus"][0]["guest"] * g["duration_ns"] * 499e-9
print(looks, "looks, as", equal, "equal ones", share, depth / total, bound, roots / total, periods, g["weight"], g["complete"])
if looks < 150 or total < 1000:
    sys.exit(3)
assert g["complete"] > 0.98 and roots > 0.98 * total and abs(depth / total - share) < bound
assert 0.9 * periods < g["weight"] + g["lost"] < 1.1 * periods
P
		[ $? -eq 3 ] || return 1
	done
	return 1
}

# Between its looks at a deep stack, too, the reader has the priority to be in time for the next one. A look takes the twentieth
# part of the time.
deep_in_time() {
	python3 - "$U" "$pid" "$T" <<'P'
import os, subprocess, sys, time
u, pid, folder = sys.argv[1:]
seen = []
with subprocess.Popen([u, "record", "proc:pid=" + pid, "-q", "-F", "499", "-d", "30", "-o", folder + "/late.uniscope", "--overwrite"]) as record:
    while len(seen) < 200 and record.poll() is None:
        try:
            policy = os.sched_getscheduler(record.pid) & ~os.SCHED_RESET_ON_FORK
        except ProcessLookupError:
            break
        if seen or policy == os.SCHED_FIFO:
            seen.append(policy == os.SCHED_FIFO)
        time.sleep(0.003)
    record.terminate()
print(sum(seen), len(seen))
sys.exit(len(seen) < 200 or sum(seen) < 30)
P
}

# A word of the stack is no caller, whatever the rows say; the way goes on by a guess, and is not complete.
stack_is_no_code() { # WAY
	end
	"$BUILD/tests/e2e/otherstack" raise &
	pid=$!
	stacks_until ' raises+' || return 1
	timeout 90 "$U" record "proc:pid=$pid,via=$1" -q -F 499 -d 0.5 -o "$T/s.uniscope" --overwrite &&
		"$U" export --no-inline "$T/s.uniscope" -f folded -o "$T/p.folded" && cat "$T/p.folded" &&
		"$U" export "$T/s.uniscope" -f json -o "$T/s.json" || return 1
	grep -q 'main ?;raises ' "$T/p.folded" && ! grep 0x "$T/p.folded" &&
		grep -A9 ' raises+' "$T/stacks" >"$T/above" && ! grep ' 00007ff' "$T/above" &&
		python3 -c 'import json, sys; g = json.load(open(sys.argv[1]))["recording"]["guests"][0]
print(g["complete"]); sys.exit(g["complete"] > 0.1)' "$T/s.json"
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
	for _ in $(seq 600); do # all of its threads wait
		[ "$(cat /proc/$pid/task/*/status 2>/dev/null | grep -c '^State:	S')" -eq 3 ] && return
		sleep 0.1
	done
}

# Ten threads that compute. The kernel locks little memory for a user: each thread has its part of the rings.
ten_threads() {
	end
	"$PROCESS" busy &
	pid=$!
	for seconds in 3 12 40; do # a busy host gives it few turns
		(ulimit -l 8192 2>/dev/null
			exec setpriv --bounding-set=-sys_resource "$U" record "proc:pid=$pid,via=perf" -q -F 199 -d $seconds \
				-o "$T/p.uniscope" --overwrite) || return 1
		"$U" report --json "$T/p.uniscope" >"$T/report" || return 1
		[ "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["total"])' "$T/report")" -lt 500 ] || break
	done
	python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
got = {f["name"]: f["self"] / r["total"] for f in r["functions"] if f["name"].startswith("busy_")}
print(r["total"], got)
sys.exit(not (len(got) == 10 and all(0.05 < share < 0.2 for share in got.values())))' "$T/report"
}

# The callback below the C library's qsort below ours: two images, both moved.
sorts() { # WAY
	for seconds in 0.7 3 12 40; do # a busy host gives it few turns
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
	[ "$(grep -c '^vCPU' "$T/stacks")" -eq 4 ] && [ "$(grep -c 'halted' "$T/stacks")" -ge 3 ] &&
		grep -q wait_for_ever "$T/stacks" && grep -q poller "$T/stacks" && grep -q receiver "$T/stacks"
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

# The profiler dies with a thread stopped, at several calls: the process runs on.
survives() {
	for i in $(by_default '1 3 13' '1 2 3 5 8 13 21 34'); do
		"$KILL_AT" -p $pid $i "$U" record "proc:pid=$pid,via=stop" -q -F 5000 -d 60 -o "$T/k.uniscope" \
			--overwrite || return 1
	done
	runs_on
}

# Wherever it dies while it makes a session: what is left is no obstacle to the next.
leaves_no_obstacle() {
	set -- "$U" record "proc:pid=$pid" -q -d 0.1 -o "$T/b.uniscope" --overwrite
	for call in $(by_default renameat 'mkdirat renameat'); do
		count_calls -c $call "$@" && rm -rf "$T/b.uniscope" || return 1
		echo "$nr of $call"
		for i in $(seq "$nr"); do
			"$KILL_AT" -c $call "$i" "$@" || return 1
		done
		"$@" || return 1
	done
}

ways=stop no_perf=
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
			# Each way once. In sh test.sh all, each app by each way, twice by perf; each variant with two apps. Not each of each.
			case ${UNISCOPE_ALL:-some},$way,$app,$variant in
			*,perf,deep,clang-nofp | *,stop,shares,gcc-fp) ;;
			1,perf,leaf,gcc-fp | 1,perf,shares,gcc-nofp | 1,stop,deep,gcc-nofp) ;;
			1,perf,shares,clang-nofp | 1,perf,leaf,gcc-nofp | 1,perf,deep,gcc-fp | 1,stop,leaf,clang-nofp) ;;
			*) continue ;;
			esac
			check "$app-$variant by $way" books $app-$variant $way
		done
	done
done
in_all check 'fibers-gcc-nofp by the way that is chosen' books fibers-gcc-nofp ''
[ -n "${UNISCOPE_ALL-}" ] || begin_app fibers-gcc-nofp
check 'an image that switches stacks is stopped, and told why' by pause 'switches stacks' "$U" record "proc:pid=$pid"
[ "$ways" = stop ] || check 'fibers-gcc-nofp, one stack by perf' one_stack fibers-gcc-nofp
begin_app deep-gcc-nofp
if [ "$ways" != stop ]; then
	check 'the method is perf' by perf 'host.s kernel (perf)' "$U" record "proc:pid=$pid"
	check '--method pause stops it' by pause paused "$U" record "proc:pid=$pid" --method pause
	check 'without perf events it is stopped, and told why' by pause 'not permitted' \
		"$BUILD/tests/e2e/noperf" "$U" record "proc:pid=$pid"
	check 'top' top
	check 'ten threads that compute have a share each' ten_threads
	check 'stacks that are too deep for perf events have their roots' deep_calls
	if chrt -f 1 true 2>/dev/null; then
		check 'they are looked at in time' deep_in_time
	else
		skip 'they are looked at in time' 'root of this container may not take a real-time priority'
	fi
	begin_app deep-gcc-nofp
fi
check 'top, by stopping' top --method pause
check 'a command that runs meanwhile is what the session is about' works
in_all check 'a command that fails: the session says so' fails
check 'a command that outlives the recording ends with it' outlived
check 'a command that is not there leaves no session' unknown_command
check '--aggregate is refused' refused 'aggregate counts in' --aggregate
check '--exits is refused' refused 'VM exits cannot be seen' --exits
check '--method bpf is refused' refused 'is for kvm: targets' --method bpf
check '--threads of a guest that has none' refused 'no model knows' --threads
check 'a process that sleeps' asleep
check 'one that a signal has stopped' stopped
check 'one in a system call' in_kernel
check 'one that asks for the time' in_vdso
check 'libraries on a stack that was switched to' on_another_stack
for way in $ways; do
	check "a place of the stack in place of a caller, by $way" stack_is_no_code $way
done
check 'a recording that is too short' too_short
in_all check 'a library that was replaced while it runs' deleted_library
check 'processes without a program, and one without its first thread' ended
check 'ls knows one by its tender' listed
sorter
check 'another build of its program, and another program' other_build
for way in $(by_default perf "$ways"); do
	check "through shared libraries by $way" sorts $way
done
check 'sleeping threads' sleeps
check 'the profiler is killed' survives
check 'and leaves nothing that blocks the next' leaves_no_obstacle
check 'nobody noticed' unnoticed
check 'no such process' refuses 'there is no process' proc:pid=4194303
check 'no pid' refuses 'which process' proc:via=stop
echo "1..$n"
