# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: run
# limit: 300
# The suite that each backend passes (tests/e2e/conformance.c), on a PV and a PVH domain.
suite() { # TYPE VCPUS
	name=$CASE-$1
	check "$1: a guest starts" start "$name" -t "$1" -s "$2" shares loop=1 || return
	conformance --image "$image" --beside "xen:dom=$name,pause=no" "xen:dom=$name" >"$out/$1" 2>&1
	check "$1: the suite ($(grep -c '^ok' "$out/$1") checks)" held "$out/$1" $?
	for state in attached held reading released; do
		exists "$name" || start "$name" -t "$1" shares loop=1
		conformance --image "$image" --domain "$name" --gone $state "xen:dom=$name" >"$out/$1-$state" 2>&1
		check "$1: destroyed: $state" held "$out/$1-$state" $?
	done
	check "$1: nothing is left" nothing_left
}
held() { # FILE STATUS
	[ "$2" -eq 0 ] && grep -q '^1\.\.' "$1" && return
	grep -v '^ok' "$1"
	return 1
}
image=/mnt/guests/xen-shares-gcc-fp.elf
suite pv 2
suite pvh 1
