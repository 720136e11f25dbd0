# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: count
# limit: 3000
# Recordings of guests that keep books about themselves; judge/shares.sh compares. PV and PVH, one
# and two vCPUs, paused and not.
for type in pv pvh; do
	check "$type, 1 vCPU: recorded" recorded $type-1 $type 1 shares 1.2
	check "$type, 2 vCPUs: recorded" recorded $type-2 $type 2 smp 1.2
done
check 'pvh, 1 vCPU, not paused: recorded' recorded pvh-1-no-pause pvh 1 shares 1.2 --no-pause
check 'nothing is left' nothing_left
