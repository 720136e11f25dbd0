# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: run
# limit: 300
# Whoever dies while a domain is paused by us, it runs on.
name=$CASE
image=/mnt/guests/xen-shares-gcc-fp.elf
runs() { # a domain that runs uses time
	before=$(used) && sleep 1 && [ "$(used)" != "$before" ] && return
	xl list
	return 1
}
used() { xl list $name | awk 'NR == 2 { print $6 }'; }
is_paused() { [ "$(state $name)" = p ]; }
suite() { conformance --image $image --beside "xen:dom=$name,pause=no" "$@" "xen:dom=$name"; }

# A profiler that stays in a hold, with its keeper: both are killed at once, as a cgroup's end does.
holder() {
	conformance --image $image --hold "xen:dom=$name" >"$T/holder" 2>&1 &
	holder=$!
	wait_for 20 grep -q '^held' "$T/holder"
}
both_die() {
	# shellcheck disable=SC2046
	kill -STOP $(pidof uni-guardian) && kill -9 $holder $(pidof uni-guardian) && wait $holder
	wait_for 5 is_paused
}
heals() {
	uniscope stacks "xen:dom=$name" >"$T/stacks" 2>&1
	status=$?
	cat "$T/stacks"
	[ $status -eq 0 ] && runs
}

check 'a guest starts' start $name -t pvh shares loop=1
check '100 of 100 SIGKILLs in a pause' suite --kill-held 100
check '20 of 20 at random' suite --kill 20
check 'it runs' runs
check 'a profiler holds it' holder
check 'profiler and guardian are killed together: it stands' both_die
check 'the next start heals that' heals
check 'no file stays behind' sh -c '! ls /run/uniscope/xen-* 2>/dev/null'
