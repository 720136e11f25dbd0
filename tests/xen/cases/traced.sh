# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: count
# limit: 3000
# A domain that counts its own calls is traced from before the first to after the last. Records and lost events are compared with
# its books outside. And one is destroyed, or powers itself off, while it is traced.
app=trace-traced-gcc-fp where=$out
tracing() { # SESSION GUEST-OPTION...: a guest that waits, and a recording of its calls; $dom, $pid
	session=$where/$1.uniscope name=$CASE-$1
	shift
	rm -f "/mnt/log/console/guest-$name.log" "$T/said"
	dom=$(guest -n "$name" -m 96 "$@" wait=1) && said "$name" '^lab: waiting' 60 || return
	uniscope trace record "xen:dom=$dom" -d 0 --filter 'traced_*' -o "$session" --overwrite >"$T/said" 2>&1 &
	pid=$!
	wait_for 60 grep -q 'places are traced' "$T/said" && printf x >"$(xenstore-read "/local/domain/$dom/console/tty")"
}
counted() { # SESSION GUEST-OPTION...
	if ! { tracing "$@" && said "$name" '^traced: ' 120; }; then
		cat "$T/said"
		return 1
	fi
	kill -INT $pid
	wait $pid
	status=$?
	cat "$T/said"
	[ $status -eq 0 ] && uniscope record "xen:dom=$dom" -q -F 20 -d 0.3 --watch lab_traced \
		-o "$out/$1-truth.uniscope"
	status=$?
	xl destroy "$name"
	return $status
}
# By exit status 0, with what came, and a line that says what happened; and nothing of it stays mapped.
ended() { # WORDS
	wait $pid
	status=$?
	cat "$T/said"
	[ $status -eq 0 ] && [ "$(grep -c -- "$1" "$T/said")" -eq 1 ] &&
		uniscope trace report "$session" >"$T/report" && grep traced_fib "$T/report" && rm -r "$session" &&
		nothing_left
}
destroyed() {
	tracing "destroyed-$1" -t "$1" $app loop=1 && usleep 200000 && xl destroy "$name" &&
		ended 'was destroyed'
}
powered_off() {
	tracing poweroff -t pvh $app msecs=300 end=poweroff && ended 'powered off'
}
# Nobody has the image any more: the rings are found by their magic, through the guest's page tables.
by_magic() { # TYPE
	name=$CASE-magic-$1
	cp "/mnt/guests/xen-$app.elf" "$T/gone.elf" &&
		dom=$(guest -n "$name" -t "$1" -m 96 "$T/gone.elf" loop=1) && said "$name" '^lab: running' 60 &&
		uniscope trace start "xen:dom=$dom" -e "$T/gone.elf" --filter 'traced_*' || return
	rm "$T/gone.elf"
	uniscope trace dump "xen:dom=$dom" -o "$T/magic.uniscope" --overwrite >"$T/said" 2>&1
	status=$?
	cat "$T/said"
	[ $status -eq 0 ] && sed -n 's/^uniscope: \([0-9]*\) events.*/\1/p' "$T/said" |
		awk '$1 >= 1000 { ok = 1 } END { exit !ok }' && xl destroy "$name"
}

check 'pv: every call' counted pv -t pv $app rounds=1000 hold=1
check 'pvh, 2 vCPUs: every call' counted pvh -t pvh -s 2 $app rounds=500 hold=1
check 'pvh: more calls than the ring holds' counted lost -t pvh $app rounds=10000 ring=256 hold=1
where=$T # many events, and the share is slow
check 'pv: destroyed while it is traced' destroyed pv
check 'pvh: destroyed while it is traced' destroyed pvh
check 'pvh: powers itself off while it is traced' powered_off
check 'pv: rings without an image' by_magic pv
check 'pvh: rings without an image' by_magic pvh
check 'nothing is left' nothing_left
