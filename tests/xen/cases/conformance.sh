# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: run
# limit: 300
# The suite that each backend passes (tests/e2e/conformance.c), on a PV and a PVH domain.
suite() { # TYPE VCPUS STATE...: the states in which it is destroyed
	type=$1 name=$CASE-$1
	check "$type: a guest starts" start "$name" -t "$type" -s "$2" shares loop=1 || return
	conformance --image "$image" --beside "xen:dom=$name,pause=no" "xen:dom=$name" >"$out/$type" 2>&1
	check "$type: the suite ($(grep -c '^ok' "$out/$type") checks)" held "$out/$type" $?
	shift 2
	for state; do
		exists "$name" || start "$name" -t "$type" shares loop=1
		conformance --image "$image" --domain "$name" --gone "$state" "xen:dom=$name" >"$out/$type-$state" 2>&1
		check "$type: destroyed: $state" held "$out/$type-$state" $?
	done
	check "$type: nothing is left" nothing_left
}
held() { # FILE STATUS
	[ "$2" -eq 0 ] && grep -q '^1\.\.' "$1" && return
	grep -v '^ok' "$1"
	return 1
}
image=/mnt/guests/xen-shares-gcc-fp.elf
suite pv 2 attached reading
suite pvh 1 held released
