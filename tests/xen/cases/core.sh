# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: dump
# limit: 600
# `xl dump-core` of a paused PVH domain shows the stacks that the domain has. It goes through the whole address space below 4 GiB,
# which takes minutes in QEMU: by hand, tests/e2e/xen.sh BUILD SRC dump. xl writes no core of a PV guest that publishes no list of
# its frames, such as ours.
same() { # TYPE VCPUS APP
	name=$CASE-$1-$3 core=$T/$1.core
	start "$name" -t "$1" -s "$2" -m 32 "$3" loop=1 || return 1
	sleep 1
	elf=/mnt/guests/xen-$3-gcc-fp.elf
	xl pause "$name" &&
		uniscope stacks "xen:dom=$name" -e "$elf" >"$T/live" 2>"$T/said" &&
		xl dump-core "$name" "$core" &&
		uniscope stacks "core:file=$core" -e "$elf" >"$T/dead" 2>>"$T/said"
	status=$?
	xl destroy "$name"
	rm -f "$core"
	cat "$T/said" "$T/live" "$T/dead"
	[ $status -eq 0 ] && [ "$(grep -c '^vCPU' "$T/dead")" -eq "$2" ] && grep -q 'app_main+' "$T/dead" &&
		frames "$T/live" >"$T/live.frames" && frames "$T/dead" | cmp - "$T/live.frames"
}
frames() { grep '^  #' "$1"; } # whether a vCPU is halted is in no dump

check 'pvh: a dump of one vCPU' same pvh 1 shares
check 'nothing is left' nothing_left
finish
