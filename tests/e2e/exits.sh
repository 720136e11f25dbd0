#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# exits.sh UNISCOPE BUILD SRCROOT: VM exits of a guest that leaves a known number of times. Each is
# counted with the right reason and port, in the right function, below the right callers. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
judge="$SRC/tests/e2e/exits.py"
need kvm bpf
recorder=''
clean_up() {
	[ -z "$recorder" ] || kill -9 "$recorder" 2>/dev/null
	[ -z "$recorder" ] || wait "$recorder" 2>/dev/null
	exec 7>&-
	end_guest
	rm -rf "$T"
}
trap clean_up EXIT

# A guest that waits for a byte on its serial port: a pipe.
waits() { # IMAGE APPEND
	end_guest
	rm -f "$T/in" "$T/out"
	mkfifo "$T/in"
	"$SRC/lab/boot" --accel kvm --append "wait=1 $2" "$1" <"$T/in" >"$T/out" 2>&1 &
	guest=$!
	target=kvm:pid=$guest
	exec 7>"$T/in"
	wait_for 60 grep -q '^lab: waiting' "$T/out"
}

# Records while it does its work, to its end.
records() { # OPTION...
	session=$T/s.uniscope
	rm -rf "$session"
	"$U" record "$target" -o "$session" -d 60 "$@" >"$T/log" 2>&1 &
	recorder=$!
	# Waiting, it looks at its serial port: these are exits, too.
	wait_for 60 test -s "$session/guest-0/exits-vcpu0" || {
		cat "$T/log"
		return 1
	}
	printf x >&7
	wait "$recorder" || {
		cat "$T/log"
		return 1
	}
	recorder=
	wait "$guest"
	guest=
	grep -q '^lab: done' "$T/out"
}

judged() { # EVERY [chains]
	"$U" report --exits --json "$session" >"$T/exits.json" &&
		"$U" export --no-inline --exits -f folded "$session" >"$T/count.folded" &&
		"$U" export --no-inline --exits=time -f folded "$session" >"$T/time.folded" &&
		python3 "$judge" "$T" "$@"
}

says() { # WORDS COMMAND...
	words=$1
	shift
	"$@" >"$T/said" 2>&1
	grep -q -e "$words" "$T/said" && return 0
	cat "$T/said"
	return 1
}

# The time to get ready is not part of the recorded time.
no_more_time_than_passed() {
	python3 -c 'import json, sys
st = json.load(open(sys.argv[1] + "/session.json"))["guests"][0]["statistics"]
for v in st["vcpus"]:
    spent = sum(v[k] for k in v if k.endswith("_ns"))
    print(spent, "of", st["end_ns"] - st["begin_ns"])
    sys.exit(not 0 < spent <= st["end_ns"] - st["begin_ns"])' "$session"
}

fp=$(image ports)
nofp=$(echo "$fp" | sed 's/-fp\.elf$/-nofp.elf/')
check 'a guest that will leave a known number of times' waits "$fp" rounds=1
sees_none() { # of a guest that is stopped for samples: says why
	"$U" record "$target,via=stop" --exits -d 1 -q -o "$T/none" >"$T/out" 2>&1
	[ $? = 1 ] && grep 'only the sampler in the host.s kernel sees them' "$T/out"
}
check 'stopped for samples, it has none to show' sees_none
check 'is recorded with all its exits' records --exits -F 99
check 'numbers, reasons, functions and callers are exact' judged 1 chains
check 'the run is as long as its vCPU' no_more_time_than_passed
check 'the report has a table' says '10,000 .* io out 0x80 *out_often' "$U" report --exits "$session"
check 'and a tree' says '\[exit io out 0x84\]' "$U" report --exits=time --tree "$session"
check 'the ordinary report is that of samples' says 'samples  ' "$U" report "$session"
check 'and tells of exits' says 'exits  .* 0 lost' "$U" report "$session"
check 'a flame graph' says 'exit mmio write 0xd0000010' "$U" export --exits -f svg "$session"
check 'single samples are none' says 'holds single samples' "$U" export --exits -f uniprof "$session"
check 'by what?' says 'by count or by time' "$U" export --no-inline --exits=size -f folded "$session"

check 'one without frame pointers' waits "$nofp" rounds=1
check 'one exit in 7, no samples' records --exits=7 -F 0
check 'numbers are as exact' judged 7
nothing_of_samples() {
	cat "$T/log"
	! grep -q ' samples in ' "$T/log" && "$U" report "$session" >"$T/said" && cat "$T/said" &&
		! grep -q '^samples ' "$T/said" && grep -q '^exits ' "$T/said"
}
check 'nothing is said of samples' nothing_of_samples
inlined() { # the session has what the image says of each address
	"$U" export --exits -f folded "$session" >"$T/own.folded" &&
		"$U" export --exits -s "$nofp" -f folded "$session" >"$T/image.folded" &&
		diff "$T/own.folded" "$T/image.folded" && grep ';lab_out[a-z]*_\[i\];\[exit' "$T/own.folded"
}
check 'and functions inlined at exits have names' inlined
check 'three rounds' waits "$fp" rounds=3
check 'one exit in 100' records --exits=100
check 'numbers are as exact, and so are callers' judged 100 chains 3

check 'a guest without KVM' boot tcg "$(image demo)" ''
check 'has no exits that could be seen' says 'VM exits cannot be seen' "$U" record "$target" --exits -d 1
check 'nor has one that is paused' says 'needs the host' "$U" record "$target" --exits --method pause -d 1
check 'one in none' says 'give a whole number above 0' "$U" record "$target" --exits=0 -d 1
check 'a session of it' "$U" record "$target" -q -d 1 -o "$T/none.uniscope"
check 'says that it has none' says 'has no VM exits' "$U" report --exits "$T/none.uniscope"
finish
