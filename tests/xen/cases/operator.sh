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
	rm -f "$T/said"
	uniscope record "xen:dom=$name" -F 50 -d 0 -o "$out/t.uniscope" >"$T/said" 2>&1 &
	pid=$!
	wait_for 30 has_samples 0 || return
	xl pause $name
	wait_for 30 grep -q 'somebody has stopped domain' "$T/said"
	is_paused || { echo 'somebody resumed it'; return 1; }
	before=$(wc -c <"$samples")
	xl unpause $name
	wait_for 30 grep -q 'the guest goes on, after' "$T/said"
	wait_for 30 has_samples "$before"
	kill -INT $pid
	wait $pid
	status=$?
	cat "$T/said"
	[ $status -eq 0 ] && ! is_paused && grep -q "somebody has stopped domain $dom (paused)" "$T/said" &&
		grep -q 'the guest goes on, after' "$T/said" &&
		uniscope report "$out/t.uniscope" | grep 'gap .*: somebody had stopped the domain'
}
# By its name over domains: what has another number and UUID then is the same guest.
followed() {
	rm -f "$T/said"
	uniscope record $name --follow -F 50 -d 0 -o "$out/f.uniscope" >"$T/said" 2>&1 &
	pid=$!
	samples=$out/f.uniscope/guest-0/samples-vcpu0
	wait_for 30 has_samples 0 && before=$dom && xl destroy $name && start $name -t pvh shares loop=1 &&
		wait_for 30 grep -q "goes on after .* s: domain $dom" "$T/said" &&
		before_bytes=$(wc -c <"$samples") && wait_for 30 has_samples "$before_bytes"
	status=$?
	kill -INT $pid
	wait $pid
	cat "$T/said"
	[ $status -eq 0 ] && grep -q "domain of $name, $before, has ended" "$T/said" &&
		uniscope report "$out/f.uniscope" | grep '^gap .*: the domain had ended; a new one was it then'
}
by_uuid() {
	uuid=$(xl list -v $name | awk 'NR == 2 { print $7 }')
	uniscope stacks "xen:dom=$uuid" | grep kmain
}
# A user who may not ask Xen is told so. That is no host without guests.
not_root() {
	grep -qs :65534: /etc/passwd || echo 'nobody:x:65534:65534::/:/bin/sh' >>/etc/passwd
	start-stop-daemon -S -c 65534:65534 -x "$(command -v uniscope)" -- ls >"$T/said" 2>&1
	status=$?
	cat "$T/said"
	[ $status -eq 0 ] && grep 'guests of xen: are not listed: .* as root' "$T/said" && ! grep $name "$T/said" &&
		! uniscope ls 2>&1 | grep 'not listed'
}

check 'a guest starts' start $name -t pvh shares loop=1
xl pause $name
check 'its stack can be seen' looked_at
check 'a recording would pause it: refused' refused
xl unpause $name
check 'it is said to run' runs_on
check 'paused in the middle of a recording' in_between
check 'by its UUID' by_uuid
check 'without the right to ask' not_root
check 'followed by its name to its next domain' followed
xl pause $name
check 'two uniscopes leave it paused' sh -c "uniscope stacks xen:dom=$name & uniscope stacks xen:dom=$name; wait"
check 'it is paused still' is_paused
