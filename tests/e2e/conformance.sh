#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# conformance.sh BUILD-DIR [CASE...]: boots lab guests and runs the conformance suite on each way to
# reach them. A case is TARGET-ACCEL, such as gdb_unix-tcg; all by default. TAP, one line a run.
set -u
build=${1:?usage: conformance.sh BUILD-DIR [CASE...]}
shift
suite=$build/tests/e2e/conformance
image=$build/lab/shares-gcc-fp.elf
[ -r "$image" ] || image=$build/lab/shares-clang-fp.elf
. "$(dirname "$0")/ahead.sh"
boot=$(dirname "$0")/../../lab/boot
T=$(mktemp -d) || exit 1
vm=
end_vm()
{
	[ -z "$vm" ] || kill -9 "$vm" 2>/dev/null
	[ -z "$vm" ] || wait "$vm" 2>/dev/null
	vm=
	rm -f "$T/g" "$T/q" "$T/serial"
}
trap 'end_vm; rm -rf "$T"' EXIT
trap 'exit 130' INT TERM
n=0
# None that connections are given, nor one where somebody listens.
port=$((20000 + $$ % 12000))
while grep -qi "^ *[0-9]*: [0-9a-f]*:$(printf %04x $port) [0-9a-f]*:0000 " /proc/net/tcp; do
	port=$((port + 1))
done

# start ACCEL GDB-DEVICE SMP: a guest that waits, beating; its pid in $vm
start()
{
	end_vm
	# shellcheck disable=SC2094
	"$boot" --accel "$1" --smp "$3" --append wait=1 --serial "file:$T/serial" --gdb "$2" \
		--qmp "$T/q" "$image" >"$T/boot" 2>&1 </dev/null &
	vm=$!
	for _ in $(seq 600); do
		grep -q '^lab: waiting' "$T/serial" 2>/dev/null && return 0
		kill -0 "$vm" 2>/dev/null || break
		sleep 0.1
	done
	sed 's/^/# /' "$T/boot" "$T/serial" 2>/dev/null
	return 1
}

result()
{
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		checks=$(grep -c '^ok' "$T/log")
		echo "ok $n - $2$([ "$checks" -eq 0 ] || echo " ($checks checks)")"
	else
		echo "not ok $n - $2"
		grep -v '^ok' "$T/log" | sed 's/^/# /'
	fi
}

skip()
{
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

# run WHAT OPTIONS... TARGET: a guest that runs offers all that the suite looks at, but for what $without matches
without='no guest'
run()
{
	what=$1
	shift
	timeout 120 "$suite" --image "$image" --vmm "$vm" "$@" >"$T/log" 2>&1
	status=$?
	[ $status -ne 0 ] || ! grep '# SKIP' "$T/log" | grep -qv "$without" || {
		sed -i 's/^ok\(.* # \)SKIP/left out: \1/' "$T/log"
		status=1
	}
	result $status "$what"
}

unix="unix:$T/g,server=on,wait=off"

# whole NAME ACCEL GDB-DEVICE TARGET: the suite, then the VM's death in each state
whole()
{
	start "$2" "$3" 2 || { : >"$T/log"; result 1 "$1: a guest boots"; return; }
	target=$(echo "$4" | sed "s/@PID@/$vm/")
	run "$1: the suite" "$target"
	for state in attached held reading released; do
		start "$2" "$3" 1 || { : >"$T/log"; result 1 "$1: a guest boots"; return; }
		target=$(echo "$4" | sed "s/@PID@/$vm/")
		run "$1: the VM dies: $state" --gone "$state" "$target"
	done
}

case_gdb_unix() { whole "gdb:unix, $1" "$1" "$unix" "gdb:unix=$T/g"; }
case_gdb_tcp() { whole "gdb:tcp, $1" "$1" "tcp:127.0.0.1:$port" "gdb:tcp=127.0.0.1:$port"; }
case_gdb_packets() { whole "gdb:, memory by packets, $1" "$1" "$unix" "gdb:unix=$T/g,mem=packets"; }

# The host's kernel lets a VMM go when its tracer dies: there is no guardian.
case_kvm()
{
	without='of the guardian\|stopped in a hold'
	whole "kvm:, $1" "$1" none "kvm:pid=@PID@"
	without='no guest'
}

case_gdb_operator()
{
	for mem in process ${UNISCOPE_ALL:+packets}; do
		start "$1" "$unix" 1 || { : >"$T/log"; result 1 "a guest boots"; return; }
		run "gdb: beside an operator, memory by $mem, $1" --operator "$T/q" \
			"gdb:unix=$T/g,mem=$mem"
	done
}

# memory FILE: of the guest, as QEMU has it, from $val on $size bytes
memory()
{
	python3 "$(dirname "$0")/qmp.py" "$T/q" pmemsave "{\"val\": $val, \"size\": $size, \"filename\": \"$1\"}"
}

# looks COMMAND TARGET OPTION...: it succeeds, and QEMU finds every byte as it was
looks()
{
	command=$1 target=$2
	shift 2
	timeout 60 "$build/src/cli/uniscope" "$command" "$target" -e "$image" "$@" >"$T/log" 2>&1 &&
		memory "$T/after" >>"$T/log" 2>&1 && cmp "$T/before" "$T/after" >>"$T/log" 2>&1
	result $? "nothing is written, $accel: $command $(echo "$target" | sed 's,=[^,]*,,')"
}

# Neither sampling nor looking writes: all memory of a guest that stands, the code of one that runs.
case_unwritten()
{
	start "$1" "$unix" 1 || { : >"$T/log"; result 1 "a guest boots"; return; }
	if [ "$1" = tcg ]; then
		python3 "$(dirname "$0")/qmp.py" "$T/q" stop '{}' >"$T/log"
		val=0 size=67108864 targets="gdb:unix=$T/g gdb:unix=$T/g,mem=packets"
	else
		set -- $(readelf -lW "$image" | awk '$1 == "LOAD" && / R E / { print $4, $6; exit }')
		val=$(($1)) size=$(($2)) targets="kvm:pid=$vm kvm:pid=$vm,via=sync kvm:pid=$vm,via=procmem"
	fi
	memory "$T/before" >"$T/log" 2>&1 && [ "$(wc -c <"$T/before")" -eq $size ] &&
		[ "$(tr -d '\000' <"$T/before" | wc -c)" -gt 1000 ]
	result $? "nothing is written, $accel: there is something to compare"
	[ -n "${UNISCOPE_ALL-}" ] || targets=${targets%% *}
	for target in $targets; do
		looks stacks "$target"
		looks record "$target" -q -F 99 -d 0.5 --watch lab_truth -o "$T/u" --overwrite
		looks top "$target" --batch --count 1 -i 0.5
	done
	end_vm
}

case_replay()
{
	start "$1" "$unix" 1 || { : >"$T/log"; result 1 "a guest boots"; return; }
	"$build/src/cli/uniscope" record -q -e "$image" -d 1 -o "$T/s" --save-replay "$T/r" \
		"gdb:unix=$T/g" >"$T/log" 2>&1
	result $? "replay: record one"
	end_vm
	timeout 120 "$suite" --image "$image" "replay:file=$T/r,once=0" >"$T/log" 2>&1
	result $? "replay: the suite"
}

case_core()
{
	start "$1" none 2 || { : >"$T/log"; result 1 "core: a guest boots"; return; }
	for paging in ${UNISCOPE_ALL:+false} true; do
		python3 "$(dirname "$0")/qmp.py" "$T/q" dump-guest-memory \
			"{\"paging\": $paging, \"protocol\": \"file:$T/core\"}" >"$T/log" 2>&1
		result $? "core: make one, paging $paging"
		timeout 120 "$suite" --image "$image" "core:file=$T/core" >"$T/log" 2>&1
		result $? "core: the suite, paging $paging"
	done
	end_vm
}

. "$(dirname "$0")/../support/can.sh"
has_kvm=no
can kvm && has_kvm=yes
cases="unwritten-tcg unwritten-kvm gdb_unix-tcg gdb_operator-tcg replay-tcg core-tcg kvm-kvm"
[ -z "${UNISCOPE_ALL-}" ] || cases="$cases gdb_packets-tcg core-kvm gdb_unix-kvm gdb_tcp-kvm"
for c in ${*:-$cases}; do
	accel=${c##*-}
	if [ "$accel" = kvm ] && [ "$has_kvm" = no ]; then
		skip "$c" "$why_not"
	else
		"case_${c%-*}" "$accel"
	fi
done
echo "1..$n"
