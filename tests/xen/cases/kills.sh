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

# A profiler that stays in a hold, with its keeper, in a cgroup. Frozen, for the keeper ends what lasts for
# over a second, also here where all is slow; then the kernel kills both at once.
hold_in() { # CGROUP
	mkdir -p "$1" && : >"$T/holder" || return # not what the one before said
	sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - "$1" \
		conformance --image $image --hold "xen:dom=$name" >"$T/holder" 2>&1 &
	holder=$!
	wait_for 20 grep -q '^held' "$T/holder" && echo 1 >"$1/cgroup.freeze" &&
		wait_for 10 grep -q '^frozen 1' "$1/cgroup.events" && is_paused
}
holder() {
	grep -q cgroup2 /proc/mounts || { mkdir -p "$T/cgroup" && mount -t cgroup2 none "$T/cgroup"; } || return
	for try in 1 2 3 4 5; do
		cgroup=$T/cgroup/$1-$try
		hold_in "$cgroup" && break
		echo 1 >"$cgroup/cgroup.kill"
		uniscope ls >"$T/healed" 2>&1
	done
	echo "try $try: $(xargs <"$cgroup/cgroup.procs") in the cgroup, guardians $(pidof uni-guardian)"
	is_paused && [ "$(wc -l <"$cgroup/cgroup.procs")" -ge 2 ]
}
both_die() {
	echo 1 >"$cgroup/cgroup.kill"
	wait $holder
	status=$?
	echo "its status is $status"
	[ $status -eq 137 ] && wait_for 10 nobody && sleep 2 && is_paused && ls /run/uniscope/xen-*
}
nobody() { [ "$(wc -l <"$cgroup/cgroup.procs")" -eq 0 ] && ! pidof uni-guardian; }
# Whatever it is started for.
heals() {
	uniscope "$@" >"$T/healed" 2>&1
	status=$?
	cat "$T/healed"
	[ $status -eq 0 ] && runs
}

check 'a guest starts' start $name -t pvh shares loop=1
check '30 of 30 SIGKILLs in a pause' suite --kill-held 30
check '20 of 20 at random' suite --kill 20
check 'it runs' runs
check 'a profiler holds it' holder one
check 'profiler and guardian are killed together: it stands' both_die
check 'the next start heals that: stacks' heals stacks "xen:dom=$name"
check 'a profiler holds it once more' holder two
check 'killed together, again: it stands' both_die
told() { heals ls && grep "^- *$name .* stood still since a uniscope was killed: it runs again" "$T/healed"; }
check 'the next start heals that, and says so: ls' told
check 'no file stays behind' sh -c '! ls /run/uniscope/xen-* 2>/dev/null'
