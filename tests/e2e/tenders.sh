#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tenders.sh UNISCOPE BUILD SRCROOT NOTES: `uniscope run` of images that are linked for Solo5, with tenders of some lines. The one for
# spt is a lab app that ran as a process, and the image is the same file with Solo5's notes. TAP.
set -u
U=$1 BUILD=$2 SRC=$3 NOTES=$4
. "$SRC/tests/support/can.sh"
. "$SRC/tests/e2e/ahead.sh"
app=$BUILD/lab/process/deep-gcc-fp
[ -e "$app" ] || absent 'no lab processes'
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 130' INT TERM
n=0
mkdir "$T/bin" "$T/w" && cd "$T/w" || exit 1
case $U in
/*) ;;
*) U=$OLDPWD/$U ;;
esac

# shellcheck source=tests/support/tap.sh
. "$SRC/tests/support/tap.sh"

# An image whose notes name this binding, and these devices.
image() { # FILE BINDING [net:NAME|block:NAME]...
	file=$1
	shift
	python3 "$NOTES" "$app" "$file" "$@"
}

# Its words go to a file; it ends at once.
tender() { # NAME STATUS
	cat >"$T/bin/$1" <<-EOF
		#!/bin/sh
		for word; do echo "\$word"; done >"$T/words"
		echo first; echo "$1: the last of its words"
		exit $2
	EOF
	chmod 755 "$T/bin/$1"
}
words() { printf '%s\n' "$@" | diff - "$T/words"; }

run() { # STATUS OPTION...
	want=$1
	shift
	rm -f "$T/words"
	PATH=$T/bin:$PATH timeout 60 "$U" run -d 1 "$@" >"$T/out" 2>"$T/said"
	status=$?
	cat "$T/out" "$T/said"
	[ $status -eq "$want" ]
}
says() { grep -qF -- "$1" "$T/said"; }

image app.hvt hvt
image app.spt spt
image dev.hvt hvt net:service0 block:storage
image dev.spt spt block:disk
image app.xen xen
image app.virtio virtio

# Is there a process whose program is this one?
runs() { [ -n "$(find /proc/[0-9]*/exe -maxdepth 0 -lname "$1" 2>/dev/null)" ]; }

recorded() {
	cp "$app" "$T/bin/solo5-spt" || return 1
	# A busy host leaves few samples.
	for seconds in 1 5 20; do
		run 0 -d $seconds --overwrite -o app.spt.uniscope app.spt --memory 64M --append loop=1 &&
			says 'started app.spt with solo5-spt' && ! runs "$T/bin/solo5-spt" && grep running app.spt.console.log &&
			"$U" export app.spt.uniscope -f folded -o folded || return 1
		grep 'kmain;run_app;app_main;down_a' folded && return
	done
	return 1
}

# Root's process that reads the image and the guest has no rights.
bare() { # PID
	[ "$(id -u)" -eq 0 ] || return 0
	for child in $(cat "/proc/$1/task/$1/children"); do
		[ "$(cat "/proc/$child/comm")" = uniscope ] || continue
		grep -q '^CapPrm:[[:space:]]*0*$' "/proc/$child/status" && grep -q '^Seccomp:[[:space:]]*2' "/proc/$child/status" && return
	done
	return 1
}

# With --duration 0 it lasts until it is killed, and the tender with it.
killed() {
	PATH=$T/bin:$PATH "$U" run -q -d 0 -o killed app.spt --append loop=1 &
	run=$!
	for _ in $(seq 600); do
		[ -s killed/guest-0/metadata ] && break
		sleep 0.1
	done
	bare $run
	bare=$?
	runs "$T/bin/solo5-spt" && kill -9 $run
	wait $run 2>/dev/null
	for _ in $(seq 600); do
		runs "$T/bin/solo5-spt" || return $bare
		sleep 0.1
	done
	return 1
}

ended() {
	tender solo5-hvt 3
	run 1 app.hvt --append 'a  b' && words --mem=128 -- app.hvt 'a  b' && [ ! -e app.hvt.uniscope ] &&
		says 'solo5-hvt left with status 3; its last words: solo5-hvt: the last of its words, before it could be recorded'
}
given() {
	tender solo5-hvt 0
	run 1 dev.hvt -- --net:service0=tap100 --block:storage=disk.img --mem=32 &&
		words --net:service0=tap100 --block:storage=disk.img --mem=32 -- dev.hvt
}
lacking() {
	run 2 dev.hvt --append "it's" -- --block:storage=disk.img && [ ! -e "$T/words" ] && says 'needs 1 device that is not given' &&
		says "started by hand with: solo5-hvt --mem=128 --block:storage=disk.img --net:service0=TAP -- dev.hvt 'it'\\''s'" &&
		says 'uniscope record dev.hvt' || return 1
	run 2 dev.spt && says 'solo5-spt --mem=128 --block:disk=FILE -- dev.spt'
}
missing() {
	rm "$T/bin/solo5-hvt"
	run 1 app.hvt && says 'solo5-hvt is needed for app.hvt, and is not in PATH' && says 'with: solo5-hvt --mem=128 -- app.hvt'
}
qemus() {
	for option in --accel=tcg --vcpus=2 --machine=q35 --cpu=max --qemu=q --exact; do
		run 2 "$option" app.spt && says 'app.spt runs under solo5-spt, and not under QEMU' || return 1
	done
}
domain() {
	run 1 app.xen --memory 32M && says 'is a domain of Xen, and this' && grep -x 'type = "pvh"' "$T/out" &&
		grep -x 'memory = 32' "$T/out" && grep -x 'name = "app"' "$T/out" && grep -x "kernel = \"$T/w/app.xen\"" "$T/out"
}
qemu() { run 1 app.virtio --qemu "$T/bin/none" && says "cannot run $T/bin/none"; }
by_pid() {
	"$app" loop=1 >"$T/app" 2>&1 &
	pid=$!
	"$U" record $pid -d 1 -o pid.uniscope >"$T/said" 2>&1
	status=$?
	kill -9 $pid
	cat "$T/said"
	[ $status -eq 0 ] && says "process $pid is no VMM that can be seen: taken as proc:pid=$pid" && "$U" report -n 0 pid.uniscope
}
gone() { "$U" record 99999999 -d 1 2>&1 | grep 'there is no process 99999999'; }

check 'spt: the tender runs, is recorded, and ends' recorded
check 'spt: whoever reads has no rights. uniscope is killed, and the tender with it' killed
if [ -e /dev/kvm ]; then
	check 'hvt: its words and its end are told' ended
	check 'devices that are given go to the tender' given
else
	echo "ok $((n + 1)) - hvt # SKIP there is no /dev/kvm" && n=$((n + 1))
	tender solo5-hvt 0
fi
check 'devices that are not given: the command is told' lacking
check 'no tender: the command is told' missing
check "QEMU's options are refused" qemus
check 'xen: elsewhere than in a dom0, the configuration is the result' domain
check 'virtio: QEMU boots it' qemu
check 'a pid of a process is taken as proc:' by_pid
check 'a pid of no process' gone
echo "1..$n"
