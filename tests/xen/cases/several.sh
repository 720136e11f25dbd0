# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: run
# limit: 200
# Two domains at once, and what shows them.
listed() {
	uniscope ls >"$T/ls" && uniscope ls --json >"$T/json"
	cat "$T/ls"
	grep -E "$CASE-a .*xen" "$T/ls" && grep -E "$CASE-b .*xen" "$T/ls" && grep -q 'xen-calls1' "$T/json"
}
doctor() {
	uniscope doctor >"$T/doctor"
	cat "$T/doctor"
	grep -q 'Xen answers, interface version 0x15' "$T/doctor" && uniscope doctor "xen:dom=$CASE-a"
}
both() {
	uniscope record "xen:dom=$CASE-a" "xen:dom=$CASE-b" -F 50 -d 2 -o "$out/s" 2>&1 &&
		uniscope export --no-inline "$out/s" --all-time -f folded >"$T/folded" &&
		grep -q 'burn_a' "$T/folded" && grep -q 'function_' "$T/folded"
}
# One of them ends: the other one is recorded to the end.
one_ends() {
	uniscope record "xen:dom=$CASE-a" "xen:dom=$CASE-b" -F 50 -d 5 -o "$out/t" >"$T/said" 2>&1 &
	pid=$!
	wait_for 60 sampled || return
	xl destroy "$CASE-b"
	wait $pid
	status=$?
	cat "$T/said"
	uniscope report "$out/t" >"$T/report"
	[ $status -eq 0 ] && grep -q 'was destroyed' "$T/said" && grep -q burn_a "$T/report" || {
		echo "status $status"
		cat "$T/report"
		return 1
	}
}
sampled() { [ -e "$out/t/guest-1/metadata" ] && sleep 1; }
top() { # OPTION-AND-TARGET...: without a screen, it writes what it would show
	uniscope top --batch --no-inline --count 1 -i 1 "$@" >"$T/top" 2>&1
	status=$?
	cat "$T/top"
	[ $status -eq 0 ] && grep -q 'burn_a' "$T/top"
}
runs() { xl domid "$1" && [ "$(state "$1" | tr -d rb)" = '' ]; }

check 'a guest starts' start "$CASE-a" -t pv shares loop=1
check 'another one starts' start "$CASE-b" -t pvh calls1 loop=1
check 'ls shows both' listed
check 'doctor' doctor
check 'both are recorded at once' both
check 'top of one' top "xen:dom=$CASE-a"
check 'top of one, not paused' top --no-pause "xen:dom=$CASE-a"
check 'top of both' top "xen:dom=$CASE-a" "xen:dom=$CASE-b"
check 'one is destroyed: the other one is recorded to its end' one_ends
check 'it runs on' runs "$CASE-a"
