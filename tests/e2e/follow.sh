#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# follow.sh UNISCOPE BUILD SRCROOT: `record NAME --follow` of KVM guests that move from one VMM to the next. They move by a restart,
# from a saved state, or to a VMM of another version. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
[ "$accels" = 'tcg kvm' ] || {
	echo '1..0 # SKIP /dev/kvm cannot be used'
	exit 0
}
name=follow$$ mon=$T/mon image=''

first() {
	end_guest
	rm -f "$T"/serial.*
	image=$(image idle) # rests while the test waits
	start_vmm 1
	wait_for 120 grep -q '^lab: running' "$T/serial.1"
}

# One with that name; $guest is its pid.
start_vmm() { # NUMBER [OPTION...]
	number=$1
	shift
	rm -f "$mon.$number"
	# shellcheck disable=SC2086 # words
	${QEMU:-qemu-system-x86_64} -M microvm ${runs:--accel kvm -cpu host,-arch-capabilities} -m 64 -nodefaults \
		-no-user-config -display none -no-reboot -serial "file:$T/serial.$number" -kernel "$image" \
		-append loop=1 -name "$name" -qmp "unix:$mon.$number,server=on,wait=off" "$@" >"$T/vmm" 2>&1 &
	guest=$!
	wait_for 60 test -e "$mon.$number"
}

qmp() { # NUMBER COMMAND [ARGUMENTS]
	python3 "$SRC/tests/e2e/qmp.py" "$mon.$1" "$2" "${3:-{\}}"
}

follow() { # WAY
	rm -rf "$T/f.uniscope" "$T/out"
	"$U" record "$name" --follow -d 0 --method "$1" -o "$T/f.uniscope" >"$T/out" 2>&1 &
	run=$!
	wait_for 60 test -s "$T/f.uniscope/guest-0/samples-vcpu0"
}

# goes_on: until samples of the new VMM are there; then the end, and what the session says.
goes_on() {
	new=$guest
	wait_for 120 grep -q "goes on after .*: pid $new" "$T/out" || {
		cat "$T/out"
		kill -INT $run
		return 1
	}
	size=$(stat -c %s "$T/f.uniscope/guest-0/samples-vcpu0")
	wait_for 60 sh -c "[ \$(stat -c %s '$T/f.uniscope/guest-0/samples-vcpu0') -gt $((size + 4096)) ]"
	kill -INT $run
	wait $run || {
		cat "$T/out"
		return 1
	}
	"$U" report "$T/f.uniscope" >"$T/report" 2>&1
	cat "$T/report"
	grep -Eq "^gap  .* s long, .* s after the begin: .*; pid $new had it then" "$T/report" || return 1
	# While a VMM does not run its guest, samples of a halted vCPU come until that VMM has ended.
	"$U" export --no-inline -f perf "$T/f.uniscope" >"$T/perf" 2>/dev/null &&
		"$U" export --no-inline --all-time -f perf "$T/f.uniscope" >"$T/all" 2>/dev/null || return 1
	python3 - "$T/f.uniscope/session.json" "$T/perf" "$T/all" <<-'END'
		import json, re, sys
		guests = json.load(open(sys.argv[1]))['guests']
		gap, = guests[0]['gaps']
		ran, times = ([float(t) for t in re.findall(r'(\d+\.\d+): ', open(f).read())] for f in sys.argv[2:])
		a, b = (gap[k] / 1e9 for k in ('begin_ns', 'end_ns'))
		before = sum(t < a for t in times)
		inside = sum(a < t < b for t in ran)
		after = sum(t >= b for t in times)
		print(len(guests), a, b, before, inside, after)
		sys.exit(not (len(guests) == 1 and before and after and not inside))
	END
}

# WAY is pause or bpf.
restarted() { # WAY
	first && follow "$1" || return 1
	end_guest
	rm -f "$T/serial.1"
	start_vmm 1
	goes_on
}

restored() { # WAY: from the state that the first one has saved
	first && follow "$1" || return 1
	qmp 1 stop && qmp 1 migrate "{\"uri\": \"exec:cat >$T/state\"}" &&
		wait_for 60 sh -c "python3 $SRC/tests/e2e/qmp.py $mon.1 query-migrate {} | grep -q completed" || return 1
	end_guest
	start_vmm 2 -incoming "exec:cat $T/state"
	wait_for 60 sh -c "python3 $SRC/tests/e2e/qmp.py $mon.2 query-status {} | grep -q paused" && qmp 2 cont &&
		goes_on
}

# A disk that can hold snapshots; the VMM makes it.
make_disk() {
	: >"$T/disk"
	qmp 1 blockdev-add "{\"driver\": \"file\", \"node-name\": \"raw\", \"filename\": \"$T/disk\"}" &&
		qmp 1 blockdev-create '{"job-id": "make", "options": {"driver": "qcow2", "file": "raw", "size": 67108864}}' &&
		wait_for 60 sh -c "python3 $SRC/tests/e2e/qmp.py $mon.1 query-jobs {} | grep -q concluded" &&
		qmp 1 job-dismiss '{"id": "make"}' &&
		qmp 1 blockdev-add '{"driver": "qcow2", "node-name": "disk", "file": "raw"}'
}

# loadvm of a VMM that runs on. Restoring is no new part, and stopping it alone is no restore.
set_back() { # APP OPTION...
	end_guest
	rm -rf "$T"/serial.* "$T/f.uniscope" "$T/out"
	image=$(image "$1")
	shift
	set -- "$name" "$@"
	start_vmm 1 && make_disk && wait_for 120 grep -q '^lab: running' "$T/serial.1" || return 1
	"$U" record "$@" -d 0 --method bpf -o "$T/f.uniscope" >"$T/out" 2>&1 &
	run=$!
	wait_for 60 test -s "$T/f.uniscope/guest-0/samples-vcpu0" || return 1
	qmp 1 human-monitor-command '{"command-line": "savevm a"}'
	qmp 1 stop && sleep 3 && qmp 1 cont
	sleep 5 # uniscope looks once a second: the snapshot must be older than two looks
	before=$(python3 -c 'import time; print(time.monotonic_ns())')
	qmp 1 human-monitor-command '{"command-line": "loadvm a"}'
	after=$(python3 -c 'import time; print(time.monotonic_ns())')
	wait_for 60 grep 'a snapshot was restored: the guest.s clock went back by' "$T/out"
	kill -INT $run
	wait $run || {
		cat "$T/out"
		return 1
	}
	"$U" report "$T/f.uniscope" >"$T/report" 2>&1
	report_has '^gap  *between .* s after the begin: a snapshot was restored, which set the guest.s clock back by ' &&
		! grep '^part' "$T/report" || return 1
	python3 - "$T/f.uniscope/session.json" "$before" "$after" "$guest" <<-'END'
		import json, sys
		before, after, pid = map(int, sys.argv[2:])
		guest, = json.load(open(sys.argv[1]))['guests']
		print(guest['gaps'], before, after)
		gap, = (g for g in guest['gaps'] if g.get('held') != 'vmm')
		sys.exit(not (gap['begin_ns'] <= after and before <= gap['end_ns'] and gap['pid'] == pid and 1e9 < gap['clock_back_ns'] < 60e9))
	END
}

upgraded() { # WAY: moved, running, to a VMM that is another file
	first && follow "$1" || return 1
	old=$guest
	cp "$(command -v qemu-system-x86_64)" "$T/qemu-system-next" || return 1
	QEMU="$T/qemu-system-next" start_vmm 2 -L /usr/share/qemu -incoming "unix:$T/move"
	wait_for 60 test -S "$T/move" && qmp 1 migrate "{\"uri\": \"unix:$T/move\"}" &&
		wait_for 120 sh -c "python3 $SRC/tests/e2e/qmp.py $mon.2 query-status {} | grep -q '\"running\": true'" || {
		kill -9 $old
		return 1
	}
	kill -9 $old
	wait $old 2>/dev/null
	goes_on
}

# Moved, but the VMM that had it stays: in QEMU's state postmigrate, until somebody ends it.
moved() { # WAY
	first && follow "$1" || return 1
	old=$guest
	start_vmm 2 -incoming "unix:$T/moves"
	wait_for 60 test -S "$T/moves" && qmp 1 migrate "{\"uri\": \"unix:$T/moves\"}" &&
		wait_for 120 sh -c "python3 $SRC/tests/e2e/qmp.py $mon.1 query-status {} | grep -q postmigrate"
	status=$?
	stood=$(python3 -c 'import time; print(time.monotonic_ns())')
	[ $status -eq 0 ] && goes_on
	status=$?
	kill -9 $old
	wait $old 2>/dev/null
	[ $status -eq 0 ] && grep "uniscope: another VMM has $name now" "$T/out" && ! grep 'has ended' "$T/out" || { cat "$T/out"; return 1; }
	python3 -c 'import json, sys; gap, = json.load(open(sys.argv[1]))["guests"][0]["gaps"]
print(gap, sys.argv[2]); sys.exit(not gap["begin_ns"] <= int(sys.argv[2]) < gap["end_ns"])' "$T/f.uniscope/session.json" "$stood"
}

# The VMM is there, and does not run the guest: a signal has stopped it, or it has paused the guest. Told once, and a gap.
held() { # WAY
	first && follow "$1" || return 1
	kill -STOP "$guest"
	wait_for 60 grep "a signal has stopped the VMM, pid $guest, and its guest with it: .* kill -CONT $guest lets it run" "$T/out"
	sleep 2
	kill -CONT "$guest"
	wait_for 60 grep 'the guest goes on, after [2-9]' "$T/out"
	qmp 1 stop
	wait_for 60 grep "its VMM, pid $guest, has paused the guest: it is not sampled until it goes on" "$T/out"
	sleep 2
	qmp 1 cont
	wait_for 60 sh -c "[ \$(grep -c 'the guest goes on, after [2-9]' '$T/out') -eq 2 ]"
	kill -INT $run
	wait $run
	status=$?
	cat "$T/out"
	"$U" report "$T/f.uniscope" >"$T/report" 2>&1
	[ $status -eq 0 ] && [ "$(grep -c 'a signal has stopped' "$T/out")" -eq 1 ] && [ "$(grep -c 'has paused the guest' "$T/out")" -eq 1 ] &&
		report_has '^gap  *[2-9]\.. s long, .* s after the begin: a signal .SIGSTOP. had stopped its VMM$' &&
		report_has '^gap  *[2-9]\.. s long, .* s after the begin: its VMM had paused the guest$' && ! grep '^part' "$T/report" &&
		/usr/bin/python3 "$SRC/tests/e2e/schema.py" --file session "$SRC" "$T/f.uniscope/session.json"
}

# The first part by the host's kernel, the second one by the stub of a QEMU without KVM. Each is described.
another_way() {
	first && follow auto || return 1
	end_guest
	rm -f "$T/serial.1"
	runs="-accel tcg -gdb unix:$T/stub,server=on,wait=off"
	start_vmm 1
	runs=
	goes_on || return 1
	report_has '^method  *not the same in all 2 parts: bpf, from part 2 on pause$' &&
		report_has "^part 1  *[1-9][0-9]* samples, 0 pauses: samples made by the host's kernel" &&
		report_has '^part 2  *[1-9][0-9]* samples, [1-9][0-9]* pauses: the guest is stopped for each sample' &&
		report_has '^pauses  *p50 .* of the time$' &&
		grep "$name: from now on the guest is stopped for each sample" "$T/out" && grep 'not the same in all 2 parts' "$T/out" &&
		python3 -c 'import json, sys; g, = json.load(open(sys.argv[1]))["guests"]; n, = g["gaps"]
assert (g["method"], n["method"]) == ("bpf", "pause") and 0 < n["weight"] < g["statistics"]["weight"] and n["pauses"] == g["statistics"]["pause_ns"]["nr"], n' \
			"$T/f.uniscope/session.json" &&
		"$U" report --html "$T/f.html" "$T/f.uniscope" && in_page 'part 2     ' "$T/f.html" || return 1
	# As older versions wrote it.
	python3 -c 'import json, sys; s = json.load(open(sys.argv[1])); [g.pop(k) for g in s["guests"][0]["gaps"]
for k in ("method", "why", "weight", "pauses")]; json.dump(s, open(sys.argv[1], "w"))' "$T/f.uniscope/session.json" &&
		"$U" report "$T/f.uniscope" >"$T/report" && report_has "^gap .* pid $guest had it then" && ! grep '^part' "$T/report"
}
# The next one is emulated, and has neither a stub nor a monitor.
out_of_reach() {
	first && follow auto || return 1
	end_guest
	qemu-system-x86_64 -M microvm -accel tcg -m 64 -nodefaults -no-user-config -display none -kernel "$image" -append loop=1 \
		-name "$name" >"$T/vmm" 2>&1 &
	guest=$!
	wait_for 120 grep "^uniscope: .*$name cannot be recorded yet: " "$T/out"
	told=$?
	kill -INT $run
	wait $run
	[ $told -eq 0 ] && [ "$(grep -c 'cannot be recorded yet' "$T/out")" -eq 1 ] || { cat "$T/out"; return 1; }
}
report_has() { # REGEX
	grep -E "$1" "$T/report" || {
		echo "the report has no $1"
		return 1
	}
}

# It ends while uniscope attaches to it for the first time: uniscope is stopped as it first reads the VMM's memory.
ends_at_first() {
	first || return 1
	rm -rf "$T/f.uniscope"
	strace -f -o "$T/strace" -e trace=process_vm_readv -e inject=process_vm_readv:signal=SIGSTOP:when=1 \
		"$U" record "$name" --follow -d 0 --method pause -o "$T/f.uniscope" >"$T/out" 2>&1 &
	run=$!
	wait_for 60 grep -q 'stopped by SIGSTOP' "$T/strace" || return 1
	old=$guest
	end_guest
	rm -f "$T/serial.1"
	start_vmm 1
	kill -CONT "$(pgrep -P $run)"
	wait_for 120 test -s "$T/f.uniscope/guest-0/samples-vcpu0"
	kill -INT "$(pgrep -P $run)"
	wait $run
	status=$?
	cat "$T/out"
	[ $status -eq 0 ] && grep "the VMM of $name, pid $old, has ended: waiting for its next one" "$T/out" &&
		"$U" report "$T/f.uniscope" | grep "^target *kvm:pid=$guest"
}

# The same without KVM, while the monitor is asked to switch a stub on: the killed VMM leaves its socket. The next VMM
# has no monitor, and the one after it has.
monitor_ends_at_first() {
	end_guest
	rm -rf "$T"/serial.* "$T/f.uniscope" "$T/strace" "$T/out"
	image=$(image demo)
	runs='-accel tcg' start_vmm 1
	strace -f -o "$T/strace" -e trace=connect -e inject=connect:delay_exit=2000000:when=1 \
		"$U" record "$name" --follow -d 0 -o "$T/f.uniscope" >"$T/out" 2>&1 &
	run=$!
	wait_for 60 test -s "$T/strace" || return 1
	old=$guest
	end_guest
	wait_for 60 grep -q "the VMM of $name, pid $old, has ended: waiting for its next one" "$T/out" || { cat "$T/out"; return 1; }
	qemu-system-x86_64 -M microvm -accel tcg -m 64 -nodefaults -no-user-config -display none -kernel "$image" -append loop=1 \
		-name "$name" >"$T/vmm" 2>&1 &
	guest=$!
	wait_for 60 grep -q "$name cannot be recorded yet: " "$T/out" || { cat "$T/out"; return 1; }
	end_guest
	runs='-accel tcg' start_vmm 2
	wait_for 120 test -s "$T/f.uniscope/guest-0/samples-vcpu0"
	kill -INT "$(pgrep -P $run)"
	wait $run
	status=$?
	cat "$T/out"
	[ $status -eq 0 ] && "$U" report "$T/f.uniscope" | grep "^target *gdb:qmp=$mon.2"
}

another_image() {
	first && follow auto || return 1
	end_guest
	image=$(image demo)
	start_vmm 1
	wait $run || return 1
	cat "$T/out"
	grep -q "$name is there again, pid $guest, but is not recorded further: it runs another image" "$T/out"
}

in_time() { # nobody comes: the recording ends when it would have, and is kept
	first || return 1
	rm -rf "$T/f.uniscope"
	"$U" record "$name" --follow -d 3 -o "$T/f.uniscope" >"$T/out" 2>&1 &
	run=$!
	wait_for 60 test -s "$T/f.uniscope/guest-0/samples-vcpu0"
	end_guest
	wait $run || return 1
	cat "$T/out"
	grep -q "$name was not there again: no guest named $name" "$T/out" && "$U" report -n 1 "$T/f.uniscope"
}

# A VMM that is stopped as it opens KVM: no guest yet, and none that QEMU emulates. It has a monitor, which could switch a stub on.
stopped_vmm() {
	qemu=$(pgrep -P "$guest" -x qemu-system-x86)
	[ -n "$qemu" ] && grep -q 'stopped by SIGSTOP' "$T/strace"
}
starting() {
	end_guest
	image=$(image demo)
	strace -o "$T/strace" -e trace=openat -P /dev/kvm -e inject=openat:signal=SIGSTOP:when=1 qemu-system-x86_64 -M microvm \
		-accel kvm -cpu host,-arch-capabilities -m 64 -nodefaults -no-user-config -display none -no-reboot -serial \
		"file:$T/serial.1" -kernel "$image" -append loop=1 -name "$name" -qmp "unix:$mon.1,server=on,wait=off" >"$T/vmm" 2>&1 &
	guest=$!
	wait_for 60 stopped_vmm || return 1
	guest=$qemu # which a failed check ends, too; strace ends with it
	"$U" ls >"$T/out"
	! grep "$name" "$T/out" || return 1
	"$U" record "$name" -d 1 -o "$T/f.uniscope" --overwrite 2>"$T/out"
	refused $? "$T/out" 1 "no guest named $name" || return 1
	"$U" stacks "kvm:pid=$qemu" 2>"$T/out"
	refused $? "$T/out" 1 'has not opened KVM yet' || return 1
	timeout 120 "$U" record "$name" --wait 100 -d 0.5 -o "$T/f.uniscope" --overwrite >"$T/out" 2>&1 &
	run=$!
	kill -CONT "$qemu"
	wait $run
	status=$?
	end_guest
	[ $status -eq 0 ] && "$U" report "$T/f.uniscope" >"$T/report" && grep "^target *kvm:pid=$qemu, qemu with KVM" "$T/report"
}

usage() {
	for words in "--follow $$" "--follow kvm:pid=$$" "--follow a b" "--follow --all" "--follow a --threads"; do
		# shellcheck disable=SC2086 # words
		"$U" record $words >"$T/out" 2>&1
		refused $? "$T/out" 2 '--follow \(needs\|cannot be\)' || return 1
	done
}

check 'what it goes with' usage
# Each by one way at the least.
moves='restarted,pause restored,pause upgraded,pause'
case $ways in
*bpf*) moves='restarted,pause restored,pause restarted,bpf upgraded,bpf' ;;
esac
for move in $(by_default 'restored,pause upgraded,bpf' "$moves"); do
	check "$move" "${move%,*}" "${move#*,}"
done
case $ways in *bpf*) way=bpf all='bpf pause' ;; *) way=pause all=pause ;; esac
for way in $(by_default $way "$all"); do
	check "moved, and its VMM stays, $way" moved "$way"
done
in_all check "held for a while, $way" held "$way"
case $ways in
*bpf*)
	check 'another way' another_way
	in_all check 'loadvm within one VMM' set_back demo --follow
	in_all check 'the same without --follow, of a guest that mostly sleeps' set_back idle
	;;
*) skip 'another way' "$no_bpf" ;;
esac
in_all check 'the next one cannot be reached, which is said' out_of_reach
in_all check 'the VMM ends while uniscope attaches for the first time' ends_at_first
in_all check 'so does one whose monitor is asked' monitor_ends_at_first
check 'another image' another_image
in_all check 'nobody comes' in_time
check 'a VMM that is about to open KVM is waited for, and not emulated' starting
finish
