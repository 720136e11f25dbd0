#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# count.sh UNISCOPE BUILD SRCROOT: calls counted by breakpoints against the books that the guest prints at its end, under TCG and KVM.
# A function's callers are told, those of most calls first. uniscope is killed at each system call of a hit, stopped, and its guest
# paused by somebody else: the guest does all its work. TAP.
set -u
# shellcheck disable=SC2034 # for guest.sh
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
. "$SRC/tests/support/kill.sh"
smp=$(image smp) calls=$(image calls1)
[ -n "$smp" ] || absent 'no lab image'

# boot_counted ACCEL VCPUS ROUNDS INNER: waits for its work; its end is QEMU's.
boot_counted() {
	accel_=$1
	[ "$1" = tcg ] || set -- "$@" --gdb "unix:$T/gdb,server=on,wait=off"
	vcpus_=$2 rounds=$3 inner=$4
	shift 4
	boot_waiting "$accel_" "$vcpus_" "$smp" "rounds=$rounds inner=$inner" --qmp "$T/q" "$@" || return 1
	[ "$accel_" = kvm ] || target=gdb:unix=$T/gdb
}

# start_count WORDS: until it has its breakpoints, or has ended. $counter: its pid.
start_count() {
	: >"$T/said"
	"$@" >"$T/counts" 2>"$T/said" &
	counter=$!
	until grep -q 'a breakpoint' "$T/said" || ! kill -0 "$counter" 2>/dev/null; do
		sleep 0.05
	done
}
count() {
	start_count "$U" count "$target" -e "$smp" -d 0 --max-pause off --json "$@"
}

guest_does_all() { # and ends
	wait_for 120 grep -q '^lab: done' "$T/serial" || { echo 'the guest stands'; cat "$T/serial"; return 1; }
}

counter_ends() { # STATUS
	wait "$counter"
	status=$?
	[ $status -eq "$1" ] && return
	echo "status $status"
	cat "$T/said"
	return 1
}

judge() {
	python3 - "$T/counts" "$T/serial" "$@" <<-'END'
		import json, sys
		doc = json.load(open(sys.argv[1], encoding='utf-8'))
		books = {w[1]: int(w[2]) for w in map(str.split, open(sys.argv[2], encoding='utf-8', errors='replace')) if w[:1] == ['truth']}
		callers = {'cpu0_hot': 'cpu0_work', 'cpu0_warm': 'cpu0_work', 'cpu1_hot': 'cpu1_work', 'other_hot': 'other_work'}
		wrong, least = [], int(sys.argv[3])
		for f in doc['functions']:
		    n, name = f['calls'], f['name']
		    if n != books.get(name, 0):
		        wrong.append('%s: %d calls, the guest says %d' % (name, n, books.get(name, 0)))
		    if n < least:
		        wrong.append('%s: only %d calls' % (name, n))
		    if n and [(c['name'], c['calls']) for c in f['callers']] != [(callers[name], n)]:
		        wrong.append('%s: callers %s' % (name, f['callers']))
		    if n > 1 and (f['interval_ns']['number'] != n - 1 or
		                  abs(f['interval_ns']['mean'] * (n - 1) - (f['last_ns'] - f['first_ns'])) > n):
		        wrong.append('%s: intervals %s' % (name, f['interval_ns']))
		if doc['slowed'] != (sys.argv[4] == 'tcg'):
		    wrong.append('slowed: %s under %s' % (doc['slowed'], sys.argv[4]))
		if not 0 < doc['stopped_ns'] or doc['longest_stop_ns'] * doc['stops'] < doc['stopped_ns'] or doc['gaps']:
		    wrong.append('stops: %s' % {k: v for k, v in doc.items() if k != 'functions'})
		sys.exit('\n'.join(wrong) or 0)
	END
}

# Each vCPU has a function; two of four vCPUs run one together.
is_counted() { # ACCEL VCPUS ROUNDS INNER LEAST FUNCTION...
	boot_counted "$1" "$2" "$3" "$4" || return 1
	least=$5
	shift 5
	count "$@" && { echo >&9; guest_does_all; } && counter_ends 0 && judge "$least" "$accel_"
}

qmp() { python3 "$SRC/tests/e2e/qmp.py" "$T/q" "$@" >/dev/null; }

# The first pause is before the first call, the others are between calls.
is_paused_by_another() {
	boot_counted tcg 2 100 2 && count cpu0_hot cpu1_hot && qmp stop '{}' || return 1
	echo >&9
	qmp cont '{}' stop '{}' cont '{}' stop '{}' cont '{}' && guest_does_all && counter_ends 0 && judge 100 tcg
}

sleeps() { grep -q '^State:.T' "/proc/$counter/status"; }

# Stopped, it serves nobody: the guest is freed of the breakpoints.
is_stopped() { # SIGNAL
	boot_counted tcg 2 20 2 && count cpu0_hot || return 1
	kill "-$1" "$counter"
	wait_for 20 sleeps || return 1
	from=$(date +%s%N)
	echo >&9
	guest_does_all || return 1
	gone=$(($(date +%s%N) - from))
	kill -CONT "$counter"
	counter_ends 0
}

# It says for how long it did not count, even if the guest has ended meanwhile.
tells_gap() { # SIGNAL
	is_stopped "$1" || return 1
	python3 - "$T/counts" "$gone" <<-'END'
		import json, sys
		doc, gone = json.load(open(sys.argv[1], encoding='utf-8')), int(sys.argv[2])
		told = {k: doc[k] for k in ('gaps', 'gap_ns', 'ran_ns', 'stopped_ns')}
		sys.exit('stopped for %d ns: %s' % (gone, told) if doc['gaps'] != 1 or doc['gap_ns'] < 0.99 * gone else 0)
	END
}

# One function with three callers, which call it 10, 30 and 60 times. The lab's own output has others.
has_callers() { # OPTION...
	boot_waiting tcg 1 "$calls" rounds=1 || return 1
	start_count "$U" count "$target" -e "$calls" -d 0 --max-pause off -n 0 "$@" lab_printf
	echo >&9
	guest_does_all && counter_ends 0 || return 1
	python3 - "$T/counts" "$T/serial" "$*" <<-'END'
		import json, re, sys
		said = open(sys.argv[1], encoding='utf-8').read()
		if sys.argv[3]:
		    f = json.loads(said)['functions'][0]
		    calls, callers = f['calls'], [(c['calls'], c['name']) for c in f['callers']]
		else:
		    calls = int(re.search(r'^lab_printf .*: (\d+) calls', said, re.M)[1])
		    callers = [(int(n), name) for n, name in re.findall(r'^ *(\d+) +[0-9.]+ %  (\S+)\+0x', said, re.M)]
		books = {w[1]: int(w[2]) for w in map(str.split, open(sys.argv[2], encoding='utf-8', errors='replace')) if w[:1] == ['truth']}
		names = ['function_3', 'function_2', 'function_1']
		numbers = [n for n, _ in callers]
		right = [c for c in callers if c[1] in names] == [(books[name], name) for name in names]
		sys.exit(0 if right and sum(numbers) == calls and numbers == sorted(numbers, reverse=True) else 'callers: %s' % said)
	END
}

# Killed before this sendto: all that it does to the guest lies between two of these.
survives_kill() { # ACCEL N
	boot_counted "$1" 1 3 5 || return 1
	start_count "$KILL_AT" -c sendto "$2" "$U" count "$target" -e "$smp" -d 0 --max-pause off cpu0_hot
	echo >&9
	guest_does_all && counter_ends 0
}

is_given_up() {
	boot tcg "$smp" '' --smp 2 || return 1
	"$U" count "$target" -e "$smp" -d 60 --json cpu0_hot cpu1_hot >"$T/hot" 2>"$T/said"
	[ $? -eq 1 ] && [ "$(grep -c 'called too often' "$T/said")" -eq 2 ] && grep -q given_up "$T/hot" && beats
}

refuses() { # STATUS WORDS ARGUMENT...
	want=$1 words=$2
	shift 2
	"$U" count "$@" >"$T/out" 2>"$T/said"
	refused $? "$T/said" "$want" "$words"
}

check 'tcg: four vCPUs, each call once, as the guest has it' \
	is_counted tcg 4 20 2 20 cpu0_hot cpu0_warm cpu1_hot other_hot
check 'its JSON has its schema' python3 "$SRC/tests/e2e/schema.py" --file count "$SRC" "$T/counts"
check 'each of the callers of one function' has_callers --json
check 'the same as text' has_callers
if [ -z "$no_kvm" ]; then
	# It is named by its process: its stub is found.
	check 'kvm: two vCPUs, each call once' is_counted kvm 2 8 1 8 cpu0_hot cpu0_warm cpu1_hot
fi
check 'a guest that is paused by somebody else, and resumed' is_paused_by_another
check 'uniscope is stopped by SIGSTOP: the guest goes on' tells_gap STOP
check 'uniscope is stopped by Ctrl-Z: the guest goes on, and it says for how long' tells_gap TSTP
boot_counted tcg 1 3 5 && count_calls -c sendto "$U" count "$target" -e "$smp" -d 0.1 cpu0_hot >/dev/null
last=$nr
# From before the breakpoint to the second hit.
for at in $(seq $((last - 7)) $((last + 3))); do
	check "killed before sendto $at: the guest does all" survives_kill tcg "$at"
done
[ -n "$no_kvm" ] || check 'killed during a step under KVM' survives_kill kvm "$last"
check 'hot functions are given up, at the measured cost' is_given_up
check 'their JSON has its schema' python3 "$SRC/tests/e2e/schema.py" --file count "$SRC" "$T/hot"
boot_counted tcg 1 3 5
check 'no such function' refuses 1 'no function nonesuch' "$target" -e "$smp" nonesuch
check 'one function twice' refuses 2 'one function' "$target" -e "$smp" cpu0_hot cpu0_hot
check 'five functions' refuses 2 'usage' "$target" -e "$smp" 1 2 3 4 5
check 'a target without breakpoints' refuses 1 'gdb stub of QEMU' "proc:pid=$$" main
finish
