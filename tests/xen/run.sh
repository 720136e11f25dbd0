#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# In dom0, from the share: runs cases/*.sh, each in a shell of its own with lib.sh, and leaves
# out/CASE/{tap,log,status,seconds}. Tests/e2e/xen.sh reads these outside.
for file in cases/*.sh; do
	name=$(basename "$file" .sh)
	mkdir -p "out/$name"
	read -r begin _ </proc/uptime
	limit=$(sed -n 's/^# limit: //p' "$file")
	CASE=$name timeout "${limit:-60}" sh -c '. ./lib.sh; . "./cases/$CASE.sh"; finish' \
		>"out/$name/tap" 2>"out/$name/log"
	echo $? >"out/$name/status"
	# No case finds what another one left behind.
	for d in $(xl list | awk 'NR > 1 && $2 != 0 { print $2 }'); do
		echo "$d was left behind" >>"out/$name/log"
		xl destroy "$d" >>"out/$name/log" 2>&1
	done
	read -r end _ </proc/uptime
	echo "$begin $end" | awk '{ printf "%.1f\n", $2 - $1 }' >"out/$name/seconds"
done
xl dmesg >log/xen 2>&1
dmesg >log/linux
