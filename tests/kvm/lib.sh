# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# For the cases, on the lab's host, behind tests/lab/lib.sh.

# start OPTION-OF-GUEST...: a guest, which gives way to the commands; $pid is its VMM, $target the guest, $name its name.
start() {
	name=$CASE
	pid=$(nice -n 19 guest -n "$name" "$@") && target=kvm:pid=$pid
}

# A line on the guest's console in time.
said() { # WORDS SECONDS
	wait_for "$2" grep -q -e "$1" "/tmp/$name.log"
}

# recorded NAME SECONDS RECORD-OPTION...: of a guest that keeps books about itself, exported for the judge.
recorded() {
	session=$out/$1.uniscope seconds=$2
	shift 2
	uniscope record "$target" -d "$seconds" --watch lab_truth -o "$session" "$@" 2>"$T/said" &&
		uniscope export --no-inline "$session" --all-time -f json -o "$session.json"
	status=$?
	cat "$T/said"
	return $status
}

# shows WORDS COMMAND...: does it print them, whatever its status?
shows() {
	words=$1
	shift
	"$@" >"$T/said" 2>&1
	cat "$T/said"
	grep -q -e "$words" "$T/said"
}

# Asks doctor about this host, and perhaps a guest, and (doctor_says) about one of the host's ways: ok or no.
ask_doctor() {
	uniscope doctor "$@" >"$T/doctor"
	cat "$T/doctor"
}
doctor_says() { # ok|no WAY
	cat "$T/doctor"
	grep -q "^$1  *$2 " "$T/doctor"
}

# None of our programs is in the kernel, nor comes back.
nothing_loaded() {
	wait_for 10 none_loaded && return
	bpftool prog show
	return 1
}
none_loaded() {
	! bpftool prog show | grep -q ' name uni_'
}

# No case finds what another one left behind.
sweep() {
	killall -9 uniscope qemu-system-x86_64 2>/dev/null
	nothing_loaded
}

at_end() {
	bpftool prog show >log/programs
}
