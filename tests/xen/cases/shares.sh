# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: count
# limit: 300
# Recordings of guests that keep books about themselves; judge/shares.sh compares. PV and PVH, one
# and two vCPUs, paused and not.
recorded() { # NAME TYPE VCPUS APP SECONDS RECORD-OPTION...
	name=$CASE-$1 session=$out/$1.uniscope
	type=$2 vcpus=$3 app=$4 seconds=$5
	shift 5
	start "$name" -t "$type" -s "$vcpus" "$app" loop=1 &&
		uniscope record "xen:dom=$name" -F 600 -d $seconds --watch lab_truth -o "$session" "$@" &&
		uniscope export "$session" -f json -o "$session.json"
	status=$?
	xl destroy "$name"
	return $status
}

for type in pv pvh; do
	check "$type, 1 vCPU: recorded" recorded $type-1 $type 1 shares 5
	check "$type, 2 vCPUs: recorded" recorded $type-2 $type 2 smp 4
done
check 'pvh, 1 vCPU, not paused: recorded' recorded pvh-1-no-pause pvh 1 shares 5 --no-pause
check 'nothing is left' nothing_left
