#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ls.sh UNISCOPE BUILD SRCROOT: `uniscope ls` on guests of other users, in containers, and on processes
# that only look like VMMs. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"

# Is the Python expression true of the entry with that pid (g; None if there is none)?
member() { # PID EXPRESSION
	cat "$T/ls.json"
	python3 -c 'import json, sys
g = next((g for g in json.load(open(sys.argv[1]))["guests"] if g["pid"] == int(sys.argv[2])), None)
sys.exit(not eval("(" + sys.argv[3] + ")"))' "$T/ls.json" "$1" "$2"
}
lists() { # PID EXPRESSION COMMAND...
	pid=$1 expression=$2
	shift 2
	"$@" ls --json >"$T/ls.json" && member "$pid" "$expression"
}

# Processes with a VMM name and without a guest: Firecracker before its start, a crosvm helper.
pretend() { # NAME ARGUMENT...
	[ -e "$T/$1" ] || cp "$(readlink -f /proc/$$/exe)" "$T/$1"
	"$T/$1" -c 'read -r line; :' "$@" <"$T/fifo" 9>&- &
	fake=$!
}
chmod 755 "$T"
mkfifo "$T/fifo"
exec 9<>"$T/fifo"
pretend firecracker --id vm1 --no-api
fc=$fake
pretend crosvm run --mem 64 vmlinux
crosvm=$fake
wait_for 60 grep -q crosvm /proc/$crosvm/comm
check 'a Firecracker that runs no guest is none' lists $fc 'g is None' "$U"
check 'nor is a helper of crosvm' lists $crosvm 'g is None' "$U"

# A QEMU with our plugin: `record` takes its counts, without any stub.
pretend qemu-system-x86_64 -accel tcg -name counting -plugin "/usr/lib/uniscope-exact.so,out=$T/counts,functions=$T/names"
counting=$fake
wait_for 60 grep -q qemu /proc/$counting/comm
check 'a QEMU that counts, and how its counts are had' lists $counting \
	"g['counts'] == '$T/counts' and g['backend'] == 'exact' and 'uniscope record $counting\`' in g['why'] and '-gdb unix' in g['why']" "$U"
says_record() { # COMMAND...
	"$U" "$@" counting >"$T/out" 2>&1
	refused $? "$T/out" 1 "uniscope record $counting. takes the counts"
}
check 'so says stacks' says_record stacks
check 'so says top' says_record top -b

# uniscope is stopped at its Nth look at the files of a process, which ends then. It is not in the list.
ends_meanwhile() { # N PID
	rm -f "$T/strace"
	strace -f -o "$T/strace" -e trace=openat -P "/proc/$2/fd" -e inject=openat:signal=SIGSTOP:when="$1" \
		"$U" ls --json >"$T/ls.json" 2>&1 &
	tracer=$!
	wait_for 60 grep -q 'stopped by SIGSTOP' "$T/strace" || return 1
	kill -9 "$2"
	wait_for 60 has_ended "$2"
	kill -CONT "$(pgrep -P $tracer)"
	wait $tracer
	member "$2" 'g is None'
}
has_ended() {
	! grep -q '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null
}
if command -v strace >/dev/null; then
	pretend qemu-system-x86_64 -name brief
	wait_for 60 grep -q qemu /proc/$fake/comm
	check 'nor is a VMM that ends while its files are read' ends_meanwhile 1 $fake
else
	skip 'nor is a VMM that ends while its files are read' 'strace is not installed'
fi

nobody='setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all'
if [ "$(id -u)" = 0 ] && $nobody true 2>/dev/null; then
	cp "$U" "$T/uniscope" && chmod 755 "$T/uniscope"
	check 'who may not look into a VMM is told so' lists $fc '
		g["target"] is None and g["backend"] is None and g["name"] == "vm1" and g["uid"] == 0
		and "not permitted" in g["why"] and "uid 0" in g["why"]' $nobody "$T/uniscope"
	# A path of nearly 108 bytes, as long as a socket's can be.
	long=$T/$(printf '%0*d' $((100 - ${#T})) 7)
	mkdir "$long" && : >"$long/mon" && chmod 0 "$long/mon"
	pretend qemu-system-x86_64 -accel kvm -name both -qmp "unix:$long/mon,server=on,wait=off"
	both=$fake
	wait_for 60 grep -q qemu /proc/$both/comm
	check 'whom neither way is open to is told of both' lists $both '
		g["target"] is None and g["why"].startswith("kvm: not permitted") and
		g["why"].endswith("; gdb: this user may not open '"$long"'/mon, the VMM'"'"'s monitor: "
			"run as the VMM'"'"'s user or as root")' $nobody "$T/uniscope"
	exec 9>&-
	wait $both
else
	skip 'who may not look into a VMM is told so' 'not root, or no setpriv'
	skip 'whom neither way is open to is told of both' 'not root, or no setpriv'
fi
exec 9>&-
wait $fc $crosvm

kvm_guest() {
	boot kvm "$(image idle)" '' --smp 2 || return 1
	lists "$guest" 'g["vmm"] == "qemu" and g["vcpus"] == 2 and g["memory_bytes"] == 64 << 20
		and g["target"] == "kvm:pid=%d" % g["pid"] and g["image"].endswith("-fp.elf")
		and g["backend"] in ("kvm-bpf", "kvm") and g["why"]' "$U"
}
# The backend is the one that the host permits, and doctor says the same.
as_permitted() {
	want=kvm-bpf word=ok
	[ -z "$no_bpf" ] || want=kvm word=no
	"$U" doctor >"$T/doctor" && grep "^$word *kvm-bpf " "$T/doctor" &&
		lists "$guest" "g['backend'] == '$want'" "$U"
}
# A VMM that was stopped has a guest that does nothing: no idle guest, and nobody's fault but its own.
stands_still() {
	kill -STOP "$guest"
	lists "$guest" '"kill -CONT" in g["why"]' "$U"
	listed=$?
	"$U" stacks "kvm:pid=$guest,via=stop" >"$T/out" 2>&1
	stacks=$?
	timeout 20 "$U" record "kvm:pid=$guest" -d 0.2 -q -o "$T/still" >"$T/rec" 2>&1
	kill -CONT "$guest"
	[ $listed = 0 ] && [ $stacks = 1 ] && grep 'a signal has stopped' "$T/out" &&
		grep 'a signal has stopped' "$T/rec"
}
# An image that only the VMM's own mount namespace has, and a pid of its own in there.
contained() {
	end_guest
	rm -f "$T/serial"
	mkdir -p "$T/c"
	unshare -p -f -m --mount-proc sh -c 'mount -t tmpfs none "$1" && cp "$2" "$1/app.elf" &&
		"$3" --accel kvm --append loop=1 --serial "file:$4" "$1/app.elf" & wait' sh \
		"$T/c" "$(image shares)" "$SRC/lab/boot" "$T/serial" </dev/null >"$T/boot" 2>&1 &
	outer=$!
	wait_for 60 grep -q '^lab: running' "$T/serial" || return 1
	guest=$(grep -lsaF "$T/c/app.elf" /proc/[0-9]*/cmdline | while read -r f; do
		readlink "${f%cmdline}exe" | grep -q /qemu-system && basename "${f%/cmdline}"
	done)
	lists "$guest" 'g["pid_in_container"] < 100 and g["image"].startswith("/proc/")
		and g["target"] == "kvm:pid=%d" % g["pid"]' "$U" &&
		"$U" stacks "$guest" >"$T/stacks" && grep lab_entry "$T/stacks"
}
# A container that sees the host's processes and has no /dev/kvm: what `ls` names is what works.
no_device() {
	unshare -m --propagation private sh -c '. "$1/tests/fresh/devices.sh" && mkdir "$2/dev" && few_devices "$2/dev" &&
		mount --move "$2/dev" /dev && [ ! -e /dev/kvm ] && "$3" ls --json >"$2/ls.json" &&
		"$3" record -q -d 0.5 -o "$2/n.uniscope" "$4" && "$3" stacks "$4"' sh "$SRC" "$T" "$U" "$guest" >"$T/out" 2>&1
	status=$?
	cat "$T/out"
	[ $status = 0 ] && grep lab_entry "$T/out" && member "$guest" 'g["target"] == "kvm:pid=%d" % g["pid"]'
}
# /proc has other numbers than the kernel takes from us: all commands agree, and the way out is one.
other_numbers() {
	for command in "doctor $guest" "stacks $guest" "record -d 1 kvm:pid=$guest" "record -d 1 proc:pid=$guest" "run -d 1 $(image shares)"; do
		# shellcheck disable=SC2086 # words
		timeout 60 unshare -p -f "$U" $command >"$T/out" 2>&1
		refused $? "$T/out" 1 'proc is that of another pid namespace.*unshare --mount-proc' || return 1
	done
	unshare -p -f "$U" doctor >"$T/out" 2>&1
	cat "$T/out"
	[ "$(grep -Ec '^no  *(kvm|kvm-bpf|kvm-exits|proc|run) ' "$T/out")" -eq 5 ] && unshare -p -f "$U" ls --json >"$T/ls.json" &&
		member "$guest" 'g["target"] is None and "another pid namespace" in g["why"]' &&
		unshare -p -f unshare --mount-proc "$U" doctor 2>&1 | grep '^ok  *kvm '
}
case " $accels " in
*' kvm '*)
	check 'a KVM guest with all that is known of it' kvm_guest
	check 'by the backend that the host permits' as_permitted
	check 'and whether its VMM stands still' stands_still
	if unshare -m true 2>/dev/null; then
		check 'a guest of the host, from where there is no /dev/kvm' no_device
	else
		skip 'a guest of the host, from where there is no /dev/kvm' 'unshare is not permitted'
	fi
	if unshare -p -f true 2>/dev/null; then
		check 'from a pid namespace with the /proc of another' other_numbers
	else
		skip 'from a pid namespace with the /proc of another' 'unshare is not permitted'
	fi
	if unshare -p -f -m --mount-proc true 2>/dev/null; then
		check 'a guest in a container, with its image' contained
		[ ! -x "$(command -v strace)" ] || check 'it ends while ls looks for a way to it' ends_meanwhile 2 "$guest"
		kill -9 "$guest" 2>/dev/null
		wait "$outer" 2>/dev/null
		guest=
	else
		skip 'a guest in a container, with its image' 'unshare is not permitted'
	fi
	;;
*) ;; # finish says so
esac
finish
