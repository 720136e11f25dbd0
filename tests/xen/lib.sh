# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For the cases, in dom0. CASE is the case's name, out/$CASE its folder, which is outside afterwards.
# shellcheck disable=SC2034 # for who sources this
n=0 out=/mnt/out/$CASE T=$(mktemp -d)

# check WHAT COMMAND...: one line of TAP; what the command said if it failed.
check() {
	n=$((n + 1)) what=$1
	shift
	read -r began _ </proc/uptime
	if "$@" >"$T/check" 2>&1; then
		echo "ok $n - $what"
		took
		return
	fi
	echo "not ok $n - $what"
	took
	sed 's/^/# /' "$T/check"
	return 1
}

took() {
	read -r now _ </proc/uptime
	echo "$began $now" | awk '{ printf "# %.1f s\n", $2 - $1 }'
}

# Every case ends here: one that does not has not reported.
finish() {
	echo "1..$n"
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
	tries=$(($1 * 10))
	shift
	until "$@" 2>/dev/null; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		usleep 100000
	done
}

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
		uniscope export "$session" -f json -o "$session.json"
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
