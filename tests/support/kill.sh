# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Kills that hit, whatever else the host does; to be sourced. Wants a folder $T, and BUILD if
# kill_at, which kill_at.c describes, is there and not in PATH.
KILL_AT=${BUILD:+$BUILD/tests/e2e/}kill_at

# count_calls [-c CALL] COMMAND...: how many such system calls the whole of it makes, in $nr.
count_calls() {
	kill_call=
	[ "$1" != -c ] || { kill_call="-c $2" && shift 2; }
	# shellcheck disable=SC2086 # words
	"$KILL_AT" $kill_call -n "$T/nr" "$@" 2>"$T/said" || { cat "$T/said"; return 1; }
	nr=$(cat "$T/nr")
}

# killed_at [-c CALL] N COMMAND...: dead at this call, or at an earlier one if there are not so many.
killed_at() {
	kill_call=
	[ "$1" != -c ] || { kill_call="-c $2" && shift 2; }
	kill_nr=$1
	shift
	# shellcheck disable=SC2086 # words
	until "$KILL_AT" $kill_call "$kill_nr" "$@" 2>"$T/said"; do
		kill_nr=$((kill_nr * 3 / 4))
		[ $kill_nr -gt 0 ] || { cat "$T/said"; return 1; }
	done
}

# Does the process $pid run on? Its CPU time says so, that of all its threads.
ran_ns() { # all of its threads
	cat "/proc/$pid/task/"*/schedstat | awk '{ n += $1 } END { printf "%.0f\n", n }'
}
runs_on() {
	before=$(ran_ns)
	for _ in $(seq 300); do
		sleep 0.1
		[ "$(ran_ns)" -gt "$before" ] && return 0
	done
	return 1
}
