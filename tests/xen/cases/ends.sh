# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: count
# limit: 3000
# A domain ends while it is recorded. The recording ends with it, with exit status 0, keeps what it
# has, and says in one line what happened. Nothing of the domain is left.
recording() { # WHAT GUEST-OPTION...: a guest, and a recording that has begun; $pid. Then its app.
	name=$CASE-$1 session=$T/$1.uniscope
	shift
	rm -rf "/mnt/log/console/guest-$name.log" "$session"
	dom=$(guest -n "$name" "$@" wait=1) && said "$name" '^lab: waiting' 60 || return
	uniscope record "xen:dom=$name" -F 50 -d 200 -o "$session" --overwrite >"$T/said" 2>&1 &
	pid=$!
	wait_for 60 sampled && printf x >"$(xenstore-read "/local/domain/$dom/console/tty")" &&
		said "$name" '^lab: running' 60
}
sampled() { [ -e "$session/guest-0/metadata" ]; } # it is there before the first sample
ended() { # WORDS
	wait $pid
	status=$?
	cat "$T/said"
	[ $status -eq 0 ] && [ "$(grep -c -- "$1" "$T/said")" -eq 1 ] &&
		uniscope report "$session" >"$T/report" && grep 'app_main' "$T/report"
}
absent() { ! exists "$name"; }
# A domain whose pages are mapped stays, without a name.
gone() { wait_for 10 absent && nothing_left; }

destroyed() {
	recording destroyed -t "$1" shares loop=1 && usleep 300000 && xl destroy "$name" &&
		ended 'was destroyed' && gone
}
by_itself() { # TYPE HOW WORDS: the guest ends
	recording "$2" -t "$1" -o 'on_crash="destroy"' shares msecs=300 end="$2" && ended "$3" && gone
}
is_suspended() { [ "$(state "$name")" = ss ]; } # and its reason
saved() { # it leaves, to be somewhere else; until then it might go on
	recording suspend -t "$1" shares msecs=300 end=suspend && wait_for 30 is_suspended &&
		wait_for 30 grep -q 'somebody has stopped domain .* (suspended)' "$T/said" && xl destroy "$name" &&
		ended 'was suspended' && gone
}
# Dead, and kept by an operator's wish: as it died, for as long as he likes.
preserved() { # TYPE HOW WORDS
	recording "kept-$2" -t "$1" -o 'on_crash="preserve"' -o 'on_poweroff="preserve"' shares msecs=300 \
		end="$2" && ended "$3" && uniscope stacks "xen:dom=$name" >"$T/stacks" && cat "$T/stacks" &&
		grep -q kmain "$T/stacks" && grep -q "^vCPU 0 ($3)\$" "$T/stacks" &&
		uniscope record "xen:dom=$name" -F 50 -d 1 --watch lab_truth -o "$session" --overwrite 2>"$T/said" && cat "$T/said" &&
		grep -q "$3 and is preserved: one snapshot of it is recorded" "$T/said" &&
		uniscope stacks "xen:dom=$name" | cmp - "$T/stacks" && exists "$name" &&
		xl destroy "$name" && gone
}

check 'pv: destroyed' destroyed pv
check 'pvh: destroyed' destroyed pvh
check 'pv: powered off' by_itself pv poweroff 'powered off'
check 'pvh: crashed' by_itself pvh crash 'crashed'
check 'pvh: gone elsewhere' saved pvh
check 'pv: crashed, preserved' preserved pv crash 'crashed'
check 'pvh: powered off, preserved' preserved pvh poweroff 'powered off'
