# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: run
# limit: 120
# Who paused a domain resumes it: never us.
name=$CASE
is_paused() { [ "$(state $name)" = p ]; }
refused() {
	uniscope record "xen:dom=$name" -d 2 -o "$out/s.uniscope" >"$T/said" 2>&1
	status=$?
	cat "$T/said"
	[ $status -eq 1 ] && [ "$(wc -l <"$T/said")" -eq 1 ] && grep -q 'xl unpause' "$T/said" && is_paused
}
looked_at() {
	uniscope stacks "xen:dom=$name" >"$T/stacks" && cat "$T/stacks"
	grep -q '^vCPU 0 (paused)$' "$T/stacks" && grep -q 'kmain' "$T/stacks" && is_paused &&
		uniscope stacks --json "xen:dom=$name" | grep -q '"state": *"paused"'
}
runs_on() { uniscope stacks "xen:dom=$name" | grep '^vCPU 0 (running)$'; }
samples=$out/t.uniscope/guest-0/samples-vcpu0
has_samples() { [ -e "$samples" ] && [ "$(wc -c <"$samples")" -gt "$1" ]; } # BYTES
# In the middle of a recording: it waits, and goes on when the domain does.
in_between() {
	uniscope record "xen:dom=$name" -F 50 -d 0 -o "$out/t.uniscope" >"$T/said" 2>&1 &
	pid=$!
	wait_for 30 has_samples 0 || return
	xl pause $name
	sleep 1
	is_paused || { echo 'somebody resumed it'; return 1; }
	before=$(wc -c <"$samples")
	xl unpause $name
	wait_for 30 has_samples "$before"
	kill -INT $pid
	wait $pid
	status=$?
	cat "$T/said"
	[ $status -eq 0 ] && ! is_paused
}

check 'a guest starts' start $name -t pvh shares loop=1
xl pause $name
check 'its stack can be seen' looked_at
check 'a recording would pause it: refused' refused
xl unpause $name
check 'it is said to run' runs_on
check 'paused in the middle of a recording' in_between
xl pause $name
check 'two uniscopes leave it paused' sh -c "uniscope stacks xen:dom=$name & uniscope stacks xen:dom=$name; wait"
check 'it is paused still' is_paused
