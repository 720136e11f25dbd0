#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# no_stub.sh UNISCOPE BUILD SRCROOT: a QEMU that was started with a QMP socket and without a gdb stub. It is found, recorded, and
# left as it was, also when uniscope is killed. QEMU is asked how it is. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
mon=$T/mon
# It halts for nine tenths of its time: a busy one would use a CPU as long as each check waits.
resting=$(image idle)

start() { # ACCEL [LAB-BOOT-OPTION...]
	accel=$1
	shift
	rm -f "$mon"
	qemu_args="-qmp unix:$mon,server=on,wait=off -name nostub$$"
	boot kvm "$resting" "" --accel "$accel" "$@" || return 1
	target=gdb:qmp=$mon
}

qmp() { # COMMAND [ARGUMENTS]
	python3 "$SRC/tests/e2e/qmp.py" "$mon" "$1" "${2:-{\}}"
}

# It runs, and has no character device of a stub: asked from outside.
as_before() { # RUNNING
	qmp query-status >"$T/status" && qmp query-chardev >"$T/chardev" || return 1
	grep -q "\"running\": ${1:-true}" "$T/status" && ! grep -q uniscope-gdb "$T/chardev" && return 0
	cat "$T/status" "$T/chardev"
	return 1
}

switched_on() {
	qmp query-chardev | grep -q uniscope-gdb
}

listed() {
	"$U" ls --json >"$T/ls.json" && python3 - "$T/ls.json" "$guest" "$mon" <<-'END'
		import json, sys
		g = next(g for g in json.load(open(sys.argv[1]))['guests'] if g['pid'] == int(sys.argv[2]))
		print(g)
		sys.exit(not (g['target'] == 'gdb:qmp=' + sys.argv[3] and g['backend'] == 'gdb' and 'QMP' in g['why']))
	END
}

recorded() { # TARGET OPTION...
	rm -rf "$T/s.uniscope"
	"$U" record -q -d 1 -o "$T/s.uniscope" "$@" || return 1
	"$U" report --all-time -n 0 "$T/s.uniscope" >"$T/report" && grep lab_entry "$T/report" && as_before
}

start_recording() {
	rm -rf "$T/k.uniscope"
	"$U" record -q -d 600 -o "$T/k.uniscope" "$target" >"$T/out" 2>&1 &
	run=$!
	wait_for 60 test -s "$T/k.uniscope/guest-0/samples-vcpu0" && switched_on
}

killed() {
	start_recording || return 1
	kill -9 $run
	wait $run 2>/dev/null
	wait_for 60 as_before || return 1
	sed 's/.*/ /' "$T/status"
	recorded "$target" # and once more
}

# Only its guardian is killed: uniscope may stop the guest no more. It says so, and switches the stub off.
guardian_killed() {
	start_recording || return 1
	kill -9 "$(pgrep -P $run uni-guardian)"
	wait $run
	refused $? "$T/out" 1 'guardian process (uni-guardian) was killed' && as_before &&
		"$U" report --all-time -n 0 "$T/k.uniscope" | grep lab_entry
}

# The same while functions are traced: they stay so, and somebody has to know.
still_traced() {
	elf=$(image trace/trace-shares)
	qemu_args="-qmp unix:$mon,server=on,wait=off"
	rm -f "$mon"
	boot kvm "$elf" loop=1 --accel tcg || return 1
	rm -f "$T/out"
	"$U" trace record "gdb:qmp=$mon" -e "$elf" --filter 'burn_*' -d 0 -o "$T/t.uniscope" 2>"$T/out" &
	run=$!
	wait_for 60 grep -q 'places are traced' "$T/out" || return 1
	kill -9 "$(pgrep -P $run uni-guardian)"
	wait $run
	[ $? -eq 1 ] && grep 'guardian.*was killed' "$T/out" && grep 'still traced' "$T/out" && as_before &&
		"$U" trace stop "gdb:qmp=$mon" -e "$elf" 2>&1 | grep 'have their old code again'
}

# Nobody is left to switch the stub off. The next one does, and lets the guest run if it stands.
both_killed() {
	both=$run\ $(pgrep -P $run uni-guardian)
	# shellcheck disable=SC2086 # words
	kill -STOP $both && kill -9 $both
	wait $run 2>/dev/null
	wait_for 60 eval 'qmp query-chardev | grep -q disconnected:fd:uniscope-gdb'
}

stale() {
	start_recording && both_killed && qmp stop && recorded "$target"
}

# Here somebody else had paused it, so it stays paused.
stale_paused() {
	qmp stop || return 1
	"$U" record -q -d 600 -o "$T/line.uniscope" "$target" >"$T/out" 2>&1 &
	run=$!
	wait_for 60 switched_on && both_killed && "$U" stacks "$target" | grep lab_entry && as_before false && qmp cont && as_before
}

second_uniscope() {
	start_recording || return 1
	"$U" record -q -d 1 -o "$T/2.uniscope" "$target" >"$T/2" 2>&1
	refused $? "$T/2" 1 'another uniscope has switched this QEMU.s gdb stub on'
	status=$?
	kill -INT $run
	wait $run && [ $status -eq 0 ] && as_before
}

# `ls` gives no target, because no way would work, and says why.
unreachable() { # WORDS UNISCOPE...
	words=$1
	shift
	"$@" ls --json >"$T/ls.json" && python3 - "$T/ls.json" "$guest" "$words" <<-'END'
		import json, sys
		g = next(g for g in json.load(open(sys.argv[1]))['guests'] if g['pid'] == int(sys.argv[2]))
		print(g)
		sys.exit(g['target'] is not None or g['backend'] is not None or sys.argv[3] not in g['why'])
	END
}

# The monitor has no rights. Root would open it all the same, so it asks as an ordinary user.
forbidden() {
	as='' public=$(mktemp -d) && chmod 755 "$public" && cp "$U" "$public/uniscope" && chmod 0 "$mon" || return 1
	[ "$(id -u)" != 0 ] || as='setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all'
	# shellcheck disable=SC2086 # words
	unreachable "this user may not open $mon" $as "$public/uniscope"
	status=$?
	chmod 755 "$mon"
	rm -r "$public"
	return $status
}

# Another client has the monitor; it takes the greeting, so it is really served.
held() {
	python3 -c '
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.recv(1)
open(sys.argv[2], "w").close()
time.sleep(600)' "$mon" "$T/holds" &
	holder=$!
	wait_for 60 test -e "$T/holds" || return 1
	status=0
	named="record -q -d 1 -o $T/h.uniscope nostub$$"
	[ "$way" != kvm ] || named="stacks $target"
	for words in "record -q -d 1 -o $T/h.uniscope $target" "stacks $target" "$named" "record -q -d 1 --qmp $mon -o $T/h.uniscope $1"; do
		begin=$(date +%s%N)
		# shellcheck disable=SC2086 # words
		timeout 60 "$U" $words >"$T/out" 2>&1
		refused $? "$T/out" 1 "another client (pid $holder, python3) holds $mon" || status=1
		echo "$((($(date +%s%N) - begin) / 1000000)) ms"
	done
	# Under KVM, there is a way without the monitor.
	if [ "$way" != kvm ]; then
		waits_once || status=1
		unreachable "another client (pid $holder, python3) holds $mon" "$U" || status=1
		"$U" doctor "nostub$$" >"$T/out" 2>&1
		refused $? "$T/out" 1 "another client (pid $holder, python3) holds $mon" || status=1
	fi
	rm -f "$T/holds"
	kill $holder
	wait $holder 2>/dev/null
	[ $status -eq 0 ] && wait_for 60 as_before
}

# By name, it waits for the other client once, and no program is loaded into the kernel for a guest that KVM does not run. A busy
# host takes seconds for these.
waits_once() {
	strace -f -o "$T/calls" -e trace=bpf,clock_nanosleep "$U" record -q -d 1 -o "$T/h.uniscope" "nostub$$" >"$T/out" 2>&1
	naps=$(grep -c clock_nanosleep "$T/calls")
	programs=$(grep -c 'bpf(' "$T/calls")
	echo "$naps naps of 20 ms, $programs calls of bpf()"
	[ "$naps" -gt 0 ] && [ "$naps" -le 16 ] && [ "$programs" -eq 0 ]
}

# A signal has stopped QEMU. Clients that gave up wait in its queue, so each try sees another state.
frozen() {
	status=0
	kill -STOP "$guest"
	for words in "record -q -d 1 -o $T/f.uniscope $target" "stacks $target" "record -q -d 1 -o $T/f.uniscope $target"; do
		begin=$(date +%s%N)
		# shellcheck disable=SC2086 # words
		"$U" $words >"$T/out" 2>&1
		refused $? "$T/out" 1 "a signal has stopped the VMM, pid $guest: kill -CONT" || status=1
		echo "$((($(date +%s%N) - begin) / 1000000)) ms"
	done
	[ "$way" != tcg ] || unreachable 'a signal has stopped the VMM' "$U" || status=1
	kill -CONT "$guest"
	[ $status -eq 0 ] && wait_for 60 as_before && recorded "$target"
}

# Only the operator who paused it resumes it.
stays_paused() {
	qmp stop && "$U" stacks "$target" | grep lab_entry && as_before false && qmp cont && as_before
}

# shown TARGET: `ls` shows it as that, by a stub that is there.
shown() {
	"$U" ls --json >"$T/ls.json" && python3 - "$T/ls.json" "$guest" "$1" <<-'END'
		import json, sys
		g = next(g for g in json.load(open(sys.argv[1]))['guests'] if g['pid'] == int(sys.argv[2]))
		print(g)
		sys.exit(not (g['target'] == sys.argv[3] and g['backend'] == 'gdb' and 'QMP' not in g['why']))
	END
}

# Somebody has switched the stub on at the monitor; the command line does not show it.
by_hand() { # ADDRESS TARGET
	qmp human-monitor-command "{\"command-line\": \"gdbserver $1\"}" && shown "$2" && recorded "nostub$$" || return 1
	"$U" doctor "nostub$$" >"$T/out"
	grep 'stopped for each sample, by its gdb stub$' "$T/out" || {
		cat "$T/out"
		return 1
	}
	"$U" stacks "$target" >"$T/out" 2>&1
	refused $? "$T/out" 1 "has a gdb stub already: give its own address, $2" &&
		qmp human-monitor-command '{"command-line": "gdbserver none"}' && listed
}
switched_by_hand() {
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	by_hand "unix:$T/hand,server=on,wait=off" "gdb:unix=$T/hand" && by_hand "tcp::$port" "gdb:tcp=127.0.0.1:$port"
}

own_stub() {
	start tcg --gdb "unix:$T/own,server=on,wait=off" || return 1
	target=gdb:qmp=$mon
	"$U" record -q -d 1 -o "$T/o.uniscope" "$target" >"$T/out" 2>&1
	refused $? "$T/out" 1 'has a gdb stub already' && as_before
}

# Another process passes the packets on, as ssh -L does: QEMU itself says that TCG runs the guest.
passed_on() {
	python3 "$SRC/tests/e2e/stream_proxy.py" "$T/line" "$T/own" slow 65536 &
	line=$!
	wait_for 60 test -S "$T/line" &&
		"$U" record -q -d 1 --overwrite -o "$T/line.uniscope" "gdb:unix=$T/line" -e "$resting" &&
		"$U" report -n 0 "$T/line.uniscope" | head -1 | tee "$T/report" | grep '^target .*qemu without KVM$' && wait_for 60 as_before
	status=$?
	kill $line 2>/dev/null
	wait $line 2>/dev/null
	return $status
}


# Its monitor is on TCP: one line says what to do, and that works.
over_tcp() {
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	qemu_args="-qmp tcp:127.0.0.1:$port,server=on,wait=off -name tcp$$"
	boot kvm "$resting" "" --accel tcg || return 1
	"$U" ls | grep "^$guest " | tee "$T/out" | grep -q "monitor is at TCP, 127.0.0.1:$port: the monitor.s command .gdbserver" || {
		cat "$T/out"
		return 1
	}
	"$U" record -q -d 1 -o "$T/t.uniscope" "gdb:qmp=127.0.0.1:$port" >"$T/out" 2>&1
	refused $? "$T/out" 1 'needs a monitor on a unix socket' || return 1
	"$U" record -q -d 1 -o "$T/t.uniscope" "tcp$$" >"$T/out" 2>&1
	refused $? "$T/out" 1 "monitor is at TCP"
}

# Its own folder's path is longer than a socket's may be.
far() {
	end_guest
	deep=$T/$(printf '%060d/%060d' 1 2)
	mkdir -p "$deep" || return 1
	(cd "$deep" && exec qemu-system-x86_64 -M microvm -accel tcg -m 64 -nodefaults -no-user-config -display none \
		-kernel "$resting" -append loop=1 -name "far$$" -qmp unix:m,server=on,wait=off) >"$T/boot" 2>&1 &
	guest=$!
	wait_for 60 test -S "$deep/m" && mon=/proc/$guest/cwd/m && listed && recorded "far$$"
}

# As libvirt starts it: QEMU gets the listening socket as an open file, and its command line has no path.
passed() {
	end_guest
	python3 -c '
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(1)
os.set_inheritable(s.fileno(), True)
os.execvp(sys.argv[2], sys.argv[2:] + ["-chardev", "socket,id=m,fd=%d,server=on,wait=off" % s.fileno()])' "$T/passed" \
		qemu-system-x86_64 -M microvm -accel tcg -m 64 -nodefaults -no-user-config -display none -kernel "$resting" \
		-append loop=1 -name "passed$$" -mon chardev=m,mode=control >"$T/boot" 2>&1 &
	guest=$!
	mon=$T/passed
	wait_for 60 test -S "$mon" && wait_for 60 listed && recorded "passed$$"
}

# A stub of something that is no VMM that we know: nothing more is asked.
other_stub() {
	python3 -c '
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(1)
time.sleep(600)' "$T/other" &
	other=$!
	wait_for 60 test -S "$T/other" && "$U" doctor "gdb:unix=$T/other" >"$T/out" 2>&1
	status=$?
	kill $other
	wait $other 2>/dev/null
	cat "$T/out"
	[ $status -eq 0 ] && grep '^ok *target' "$T/out" && grep 'stopped for each sample, by its gdb stub$' "$T/out"
}

for way in $(by_default tcg "$accels"); do
	start "$way" || {
		check "$way" false
		continue
	}
	[ "$way" != tcg ] || check 'ls shows the way' listed
	[ "$way" != tcg ] || check 'a monitor that this user may not open' forbidden
	check "recorded under $way" recorded "$target"
	in_all check "recorded with memory by packets under $way" recorded "$target,mem=packets"
	[ "$way" != tcg ] || check 'recorded by name' recorded "nostub$$"
	[ "$way" != tcg ] || check 'a stub that somebody has switched on at the monitor' switched_by_hand
	check "SIGKILL switches the stub off under $way" killed
	check "its guardian alone is killed under $way" guardian_killed
	check "the stub of one that was killed with its guardian under $way" stale
	[ "$way" != tcg ] || in_all check 'the same, if somebody else had paused the guest' stale_paused
	check "a second uniscope under $way" second_uniscope
	check "a guest that was paused stays so under $way" stays_paused
	[ "$way" != tcg ] || in_all check 'a VMM that a signal has stopped' frozen
done
[ -n "$guest" ] && check 'a monitor that another client holds' held "$(if [ "$way" = kvm ]; then echo "kvm:pid=$guest,via=stop"; else echo "$target"; fi)"
check 'a guardian that is killed while functions are traced' still_traced
in_all check 'a monitor in a folder with a long path' far
in_all check 'a monitor whose socket was passed as an open file' passed
mon=$T/mon
check 'doctor: a stub of an unknown process' other_stub
check 'a QEMU that has a stub' own_stub
check 'a stub behind another process' passed_on
check 'a QEMU whose monitor is on TCP' over_tcp
finish
