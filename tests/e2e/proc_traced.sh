#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# proc_traced.sh UNISCOPE BUILD SRCROOT: calls of processes, which count them, traced from outside. Whoever is killed in between,
# the code is as before in the end. TAP.
set -u
U=$1 BUILD=$2 SRC=$3 all=${UNISCOPE_ALL-}
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

# A recording in the background, its pid in $tracer. The process goes on when its code is patched.
recorded() { # OPTION...
	timeout 60 "$U" trace record "proc:pid=$pid" -q -d 0 "$@" -o "$T/c.uniscope" --overwrite 2>"$T/said" &
	tracer=$!
	for _ in $(seq 600); do
		code && ! cmp -s "$T/code" "$T/plain" && break
		sleep 0.1
	done
	echo >&9
}

# Every call that the process counted, with what its functions take and return.
calls() {
	traced 50 || return 1
	recorded --args 'work_*'
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
	recorded --filter 'work_*'
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

traced 1 && code && cp "$T/code" "$T/plain"
check 'its calls are traced' calls
check 'few of them are there at once' few
for way in instrument fentry; do
	[ $way$all = instrument ] || check "functions that call the tracer by themselves ($way) are switched" by_itself procself-$way
	for mode in graph lite function callers; do
		check "each of their calls ($way, $mode)" all_by_itself procself-$way $mode
	done
done
check 'the tracer is killed' tracer_dies
check 'its guardian restores the code' guarded
echo "1..$n"
