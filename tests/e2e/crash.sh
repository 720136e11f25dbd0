#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# crash.sh UNISCOPE BUILD SRCROOT: the recorder, the guest or the disk gives up, or the operator errs. There must be a readable
# session, one clear line, and a guest that runs on. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
ask="$SRC/tests/e2e/ask.py"
# It halts for nine tenths of its time: a busy one would use a CPU as long as each check waits.
elf=$(image idle) recorder=''
clean_up() {
	[ -z "$recorder" ] || kill -9 "$recorder" 2>/dev/null
	[ -z "$recorder" ] || wait "$recorder" 2>/dev/null
	umount "$T/disk" 2>/dev/null
	end_guest
	rm -rf "$T"
}
trap clean_up EXIT

start() { # NAME OPTION...: a recording in the background that has begun; its pid in $recorder
	session=$T/$1.uniscope
	shift
	"$U" record "$target" "$(method "$way")" -o "$session" -d 600 --watch lab_truth "$@" >"$T/log" 2>&1 &
	recorder=$!
	wait_for 60 test -s "$session/guest-0/samples-vcpu0"
}

ends() { # WANTED-STATUS
	wait "$recorder"
	status=$? recorder=
	[ $status -eq "$1" ] && return 0
	echo "status $status:"
	tr '\r' '\n' <"$T/log"
	return 1
}

says() { # WORDS
	grep -q "$1" "$T/log" && return 0
	tr '\r' '\n' <"$T/log"
	return 1
}

readable() { # SESSION MIN-SAMPLES
	"$U" report --no-inline --all-time --json "$1" >"$T/r.json" 2>"$T/err" || {
		cat "$T/err"
		return 1
	}
	python3 -c 'import json, sys
nr = json.load(open(sys.argv[1]))["total"]
print(nr, "samples")
sys.exit(nr < int(sys.argv[2]))' "$T/r.json" "$2"
}

# While it is recorded: what others can read has so many samples, of so long.
has_so_far() { # SAMPLES SECONDS
	readable "$session" "$1" && lasts "$2"
}

recorder_killed() {
	start killed -F 49 && wait_for 120 has_so_far 10 3 || return 1
	kill -9 "$recorder"
	wait "$recorder" 2>/dev/null
	recorder=
	readable "$session" 10 || return 1
	"$U" report "$session" >"$T/report" 2>&1 || return 1
	grep 'was not closed' "$T/report" && grep 'late and skipped ones are not known' "$T/report" &&
		! grep 'own cost' "$T/report"
}

lasts() { # SECONDS
	"$U" report "$session" 2>/dev/null | sed -n 's/.* in \([0-9.]*\) s from .*/\1/p' >"$T/wall"
	cat "$T/wall"
	awk -v least="$1" '{ ok = $1 >= least } END { exit !ok }' "$T/wall"
}

babeltrace_reads() {
	babeltrace2 "$T/killed.uniscope/guest-0" >"$T/bt" 2>&1 && [ "$(wc -l <"$T/bt")" -ge 10 ]
}

stopped_by() { # SIGNAL
	start "sig$1" || return 1
	kill "-$1" "$recorder"
	ends 0 && says 'wrote .*uniscope' && readable "$session" 1 && "$U" report "$session" >"$T/report" 2>&1 &&
		grep -q "^samples " "$T/report" && ! grep 'not closed' "$T/report"
}

wrong_image() {
	timeout 30 "$U" record "$target" "$(method "$way")" -e "$(image shares)" \
		-o "$T/wrong.uniscope" >"$T/out" 2>&1
	refused $? "$T/out" 1 'image' && [ ! -e "$T/wrong.uniscope" ]
}

# The second either is refused, or (a VMM's threads are held only for the samples) both work.
two_at_once() {
	start first || return 1
	timeout 30 "$U" record "$target" "$(method "$way")" -q -d 1 -o "$T/second.uniscope" \
		>"$T/out" 2>&1
	second=$?
	if [ "$accel" = tcg ]; then
		refused $second "$T/out" 1 'another debugger' || return 1
	elif [ $second -ne 0 ]; then
		cat "$T/out"
		return 1
	fi
	timeout 30 "$U" record "$target" "$(method "$way")" -q -d 1 -o "$session" --overwrite \
		>"$T/out" 2>&1
	[ "$accel" = tcg ] || refused $? "$T/out" 1 'recorded by another process' || return 1
	kill -INT "$recorder"
	ends 0 && readable "$session" 5
}

replayed() {
	timeout 30 "$U" record "$target" -q -F 49 -d 1 --max-pause off -o "$T/live.uniscope" \
		--save-replay "$T/live.replay" || return 1
	timeout 60 "$U" record "replay:file=$T/live.replay,once=1" -q -F 1000 -d 60 -e "$elf" \
		-o "$T/again.uniscope" || return 1
	"$U" export --no-inline --all-time "$T/live.uniscope" -f folded -o "$T/live.folded" &&
		"$U" export --no-inline --all-time "$T/again.uniscope" -f folded -o "$T/again.folded" &&
		python3 "$ask" near "$T/live.folded" "$T/again.folded" 1
}

# The image is gone, but its names are still there.
without_image() {
	mkdir -p "$T/there" && cp "$elf" "$T/there/gone.elf" &&
		timeout 30 "$U" record "$target" -q -d 1 -e "$T/there/gone.elf" -o "$T/here.uniscope" &&
		mv "$T/here.uniscope" "$T/there/moved.uniscope" && rm "$T/there/gone.elf" &&
		"$U" export --no-inline "$T/there/moved.uniscope" -f folded -o "$T/moved.folded" &&
		grep -q '^lab_entry;kmain;run_app;app_main;' "$T/moved.folded" &&
		! grep 0x "$T/moved.folded"
}

# The report repeats what the recorder said of the full disk.
same_counts() {
	want=$(sed -n 's/.* \([0-9]*\) samples lost, the \([0-9]*\) that .*/\2 \1/p' "$T/log")
	got=$("$U" report "$session" 2>/dev/null | sed -n 's/^samples  *\([0-9]*\) in .* \([0-9]*\) lost.*/\1 \2/p')
	echo "said $want, report $got"
	# The states of the lost ones are not counted either.
	states=$("$U" report "$session" 2>/dev/null | awk '$3 ~ /^samples?,$/ { n += $2 } END { print n }')
	echo "states $states"
	[ -n "$want" ] && [ "$want" = "$got" ] && [ "$states" = "${got% *}" ]
}

# If not even the beginning can be written, no folder is left that the next command would find.
nothing_left() {
	! "$U" record "$target" -q -d 1 -o "$T/disk/none.uniscope" 2>"$T/none" && cat "$T/none" &&
		[ ! -e "$T/disk/none.uniscope" ]
}

# A disk with room for some samples only has none for what names them. So nothing begins there.
nearly_full() {
	mkdir -p "$T/small" && mount -t tmpfs -o size=48k,nr_inodes=99 tmpfs "$T/small" || return 1
	timeout 30 "$U" record "$target" -q -d 1 -o "$T/small/s.uniscope" >"$T/out" 2>&1
	refused $? "$T/out" 1 'begins with 64 KiB of free space' && [ -z "$(ls "$T/small")" ]
	good=$?
	umount "$T/small"
	return $good
}

# Calls of write(2) of the recorder, also those that the kernel refused.
wrote_more_than() { # CALLS
	[ "$(sed -n 's/^syscw: //p' "/proc/$recorder/io")" -gt "$1" ]
}

disk_full() {
	mkdir -p "$T/disk" && mount -t tmpfs -o size=1m tmpfs "$T/disk" || return 1
	start disk/s -F 199 -q && wait_for 60 has_so_far 10 0 || return 1
	dd if=/dev/zero of="$T/disk/fill" bs=4096 2>/dev/null
	wait_for 60 wrote_more_than "$(sed -n 's/^syscw: //p' "/proc/$recorder/io")" || return 1
	kill -INT "$recorder"
	wait "$recorder"
	status=$? recorder=
	refused $status "$T/log" 1 'No space left' && readable "$session" 1 && same_counts &&
		nothing_left
	good=$?
	umount "$T/disk"
	return $good
}

guest_killed() {
	start dies || return 1
	kill -9 "$guest"
	ends 0 && says 'the guest ended; what was collected until then is kept' &&
		readable "$session" 1
}

guest_gone() {
	timeout 30 "$U" record "$target" "$(method "$way")" -e "$elf" -d 1 -o "$T/none.uniscope" >"$T/out" 2>&1
	refused $? "$T/out" 1 . && [ ! -e "$T/none.uniscope" ]
}

for way in ${ACCELS:-$(by_default kvm "$ways")}; do
	rm -rf "$T"/*.uniscope "$T/there"
	check "a guest boots under $way" boot "$way" "$elf" ''
	check "$way: SIGKILL: the session can be read and says it was not closed" recorder_killed
	check "$way: ... with all that was read before it died" lasts 3
	if command -v babeltrace2 >/dev/null; then
		check "$way: ... by babeltrace2, too" babeltrace_reads
	else
		skip "$way: ... by babeltrace2, too" 'babeltrace2 is not installed'
	fi
	check "$way: ... the guest runs on" beats
	check "$way: Ctrl-C ends a recording cleanly" stopped_by INT
	[ "$way" = bpf ] || check "$way: SIGTERM ends a recording cleanly" stopped_by TERM
	check "$way: a wrong image is one clear error" wrong_image
	check "$way: ... the guest runs on" beats
	[ "$way" = bpf ] || check "$way: two at once" two_at_once
	[ "$way" = bpf ] || check "$way: a saved replay gives the same profile" replayed
	check "$way: the guest still runs" beats
	check "$way: the guest is killed" guest_killed
	check "$way: a guest that is gone is one clear error" guest_gone
done

check 'a guest boots' boot "${accels##* }" "$elf" ''
check "a session without its image, elsewhere" without_image
if [ "$(id -u)" = 0 ] && mkdir "$T/m" && mount -t tmpfs tmpfs "$T/m" 2>/dev/null; then
	umount "$T/m"
	check "disk full" disk_full
	check "disk nearly full" nearly_full
else
	skip "disk full" 'tmpfs cannot be mounted'
	skip "disk nearly full" 'tmpfs cannot be mounted'
fi
rmdir "$T/m" 2>/dev/null
check "the guest still runs" beats
finish
