# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# For the cases, in dom0, behind tests/lab/lib.sh.

# start NAME OPTION-OF-GUEST...: a guest, until it runs its app. $dom is its number.
start() {
	name=$1
	shift
	rm -f "/mnt/log/console/guest-$name.log"
	dom=$(guest -n "$name" "$@") && said "$name" '^lab: running' 60
}

# said NAME WORDS SECONDS: does the guest's console say so in time?
said() {
	wait_for "$3" grep -q "$2" "/mnt/log/console/guest-$1.log"
}

# The state that xl shows, without the dashes: b, r, p, s, c, d; empty if it waits for its turn.
state() { # DOMAIN
	xl list "$1" 2>/dev/null | awk 'NR == 2 { gsub("-", "", $5); print $5 }'
}

# recorded NAME TYPE VCPUS "APP WORDS" SECONDS RECORD-OPTION...: a guest that keeps books about
# itself, recorded and exported for judge.sh, and destroyed.
recorded() {
	name=$CASE-$1 session=$out/$1.uniscope
	type=$2 vcpus=$3 app=$4 seconds=$5
	shift 5
	# shellcheck disable=SC2086 # words
	start "$name" -t "$type" -s "$vcpus" $app loop=1 &&
		uniscope record "xen:dom=$name" -F 1000 -d $seconds --watch lab_truth -o "$session" "$@" &&
		uniscope export --no-inline "$session" -f json -o "$session.json"
	status=$?
	xl destroy "$name"
	return $status
}

exists() { # DOMAIN
	xl domid "$1" >/dev/null 2>&1
}

# Are there no domains but dom0, neither whole nor half gone (xl shows these as (null))?
nothing_left() {
	wait_for 10 only_dom0 && return
	xl list
	return 1
}
only_dom0() {
	[ "$(xl list | wc -l)" -eq 2 ]
}

# No case finds what another one left behind.
sweep() {
	for d in $(xl list | awk 'NR > 1 && $2 != 0 { print $2 }'); do
		echo "$d was left behind"
		xl destroy "$d"
	done
}

at_end() {
	xl dmesg >log/xen 2>&1
}
