# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: count
# limit: 3000
# Tracing in a domain: its code is patched while it is paused. Its rings are read by foreign mapping, also when it is dead. And
# pages that a guest grants, named in xenstore as MirageOS does.
app=trace-traced-gcc-fp
runs() { # a domain that runs uses time
	before=$(used) && usleep 200000 && [ "$(used)" != "$before" ] && [ "$(state "$dom" | tr -d rb)" = '' ]
}
used() { xl list "$dom" | awk 'NR == 2 { print $6 }'; }
# At least so many events were had, as the summary tells.
events() { # NUMBER
	cat "$T/said"
	sed -n 's/^uniscope: \([0-9]*\) events.*/\1/p' "$T/said" | awk -v least="$1" '$1 >= least { ok = 1 } END { exit !ok }'
}
recorded_calls() {
	uniscope trace record "xen:dom=$dom" -d 0.1 --filter 'traced_*' -o "$T/t" --overwrite >"$T/said" 2>&1 &&
		events 10000 && runs
}
as_before() { # what is not traced is as in the image: nothing is left to restore
	uniscope trace stop "xen:dom=$dom" >"$T/said" 2>&1
	status=$?
	cat "$T/said"
	[ $status -eq 0 ] && grep -q ' 0 places' "$T/said"
}
# Killed while it patches, records or restores: the domain runs on, and can be traced again.
killed() {
	set -- uniscope trace record "xen:dom=$dom" -q -d 0.1 --filter 'traced_*' -o "$T/k" --overwrite
	count_calls "$@" || return
	echo "$nr calls"
	for part in 2 4 6 8; do
		killed_at $((nr * part / 8)) "$@" && runs || return
	done
	uniscope trace stop "xen:dom=$dom" && recorded_calls
}
# The console's and the store's page are granted to dom0 as they lie: what is seen is the console.
granted() { # TYPE
	# Nothing is named, so memory is searched: 1 s of the lab's in a PVH domain. In a PV one it ends at its limit of 8 s.
	[ "$1" = pv ] || { uniscope trace mirage "xen:dom=$dom" -o "$T/ring" && return 1; }
	xenstore-write "/local/domain/$dom/data/mprof/ring-ref" 0,1 || return
	uniscope trace mirage "xen:dom=$dom" -o "$T/ring" && [ "$(wc -c <"$T/ring")" -eq 8192 ] &&
		grep -q 'lab: running' "$T/ring" && uniscope trace mirage -q "xen:dom=$dom" -o - | cmp - "$T/ring"
}
bad_grants() {
	for refs in 0,9999 '' x 0,; do
		xenstore-write "/local/domain/$dom/data/mprof/ring-ref" "$refs"
		uniscope trace mirage "xen:dom=$dom" -o "$T/ring" 2>"$T/said" && return 1
		cat "$T/said"
		[ "$(wc -l <"$T/said")" -eq 1 ] || return
	done
}
# A guest with a ring as MirageOS has it: the guest grants it and names it in xenstore itself. From its grants to the threads that
# are seen. Also when it has ended and is preserved.
mirage() { # TYPE
	name=$CASE-mirage-$1
	dom=$(guest -n "$name" -t "$1" -o 'on_poweroff="preserve"' mirage rounds=20) && wait_for 60 ended_so || return
	uniscope trace mirage "xen:dom=$dom" -o "$T/ring" && [ "$(wc -c <"$T/ring")" -eq 16384 ] &&
		uniscope trace threads "$T/ring" >"$T/threads" 2>"$T/said"
	status=$?
	cat "$T/said" "$T/threads"
	[ $status -eq 0 ] && [ "$(grep -o 'job-0[0-9]*' "$T/threads" | sort -u | wc -l)" -eq 20 ] &&
		grep -q 'job-020' "$T/threads" && xl destroy "$dom"
}
mirage_runs() { # more than fits: the newest; while it is written
	name=$CASE-mirage-runs
	dom=$(guest -n "$name" -t pvh mirage loop=1) && said "$name" '^lab: running' 60 || return
	for i in 1 2 3; do
		usleep 300000
		uniscope trace mirage "xen:dom=$dom" -o "$T/ring" &&
			uniscope trace threads "$T/ring" >"$T/threads" 2>"$T/said" || break
	done
	cat "$T/said" "$T/threads"
	[ "$(grep -o 'job-0[0-9]*' "$T/threads" | sort -u | wc -l)" -ge 15 ] && runs && xl destroy "$dom"
}
dead() { # HOW: the ring of one that has ended
	name=$CASE-$1
	dom=$(guest -n "$name" -t pvh -m 96 -o 'on_poweroff="preserve"' $app wait=1 msecs=300 "end=$1") &&
		said "$name" '^lab: waiting' 60 && uniscope trace start "xen:dom=$dom" --filter 'traced_*' &&
		printf x >"$(xenstore-read "/local/domain/$dom/console/tty")" && wait_for 60 ended_so || return
	uniscope trace dump "xen:dom=$dom" -o "$T/d" --overwrite >"$T/said" 2>&1 && events 10000 || return
	xl destroy "$dom" && nothing_left
}
# A guest that does not know the rate of its counter, and reads the machine's: Xen tells it.
rate() { # WORD...: as a recording has it
	name=$CASE-rate
	dom=$(guest -n "$name" -t pvh -m 96 $app loop=1 "$@") && said "$name" '^lab: running' 60 &&
		uniscope trace record "xen:dom=$dom" -q --wait 60 -d 0.1 --filter 'traced_*' -o "$T/rate" --overwrite && xl destroy "$name" &&
		grep -o '"tsc_hz": *"*[0-9]*' "$T/rate/session.json" | head -n 1 | tr -dc 0-9
}
same_rate() {
	own=$(rate) && xen=$(rate hz=0) && echo "$own as the guest says, $xen as Xen does" && [ "$own" -gt 0 ] &&
		[ $((xen - own)) -le $((own / 100)) ] && [ $((own - xen)) -le $((own / 100)) ]
}
ended_so() { case $(state "$dom") in *c | *s) ;; *) return 1 ;; esac }

for type in pv pvh; do
	check "$type: a guest starts" start "$CASE-$type" -t $type -m 96 $app loop=1
	check "$type: its calls are recorded" recorded_calls
	check "$type: its code is as before" as_before
	[ $type = pv ] || check "$type: uniscope is killed" killed
	check "$type: what it grants" granted $type
	check "$type: what it does not grant" bad_grants
	xl destroy "$dom"
done
for type in pv pvh; do
	check "$type: a ring as MirageOS grants it" mirage $type
done
check 'a ring as MirageOS grants it, while it is written' mirage_runs
check 'the rate of a native counter' same_rate
check 'a ring after a crash' dead crash
check 'a ring after power-off' dead poweroff
