#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs in a lab, from the share: each of cases/*.sh in a shell of its own with lib.sh. Leaves
# out/CASE/{tap,log,status,seconds}. tests/lab/report.sh reads these outside.
for file in cases/*.sh; do
	name=$(basename "$file" .sh)
	mkdir -p "out/$name"
	read -r begin _ </proc/uptime
	limit=$(sed -n 's/^# limit: //p' "$file")
	CASE=$name setsid timeout "${limit:-60}" sh -c '. ./lib.sh; . "./cases/$CASE.sh"; finish' \
		>"out/$name/tap" 2>"out/$name/log" &
	wait $!
	echo $? >"out/$name/status"
	kill -9 -$! 2>/dev/null
	CASE=$name sh -c '. ./lib.sh; sweep' >>"out/$name/log" 2>&1
	read -r end _ </proc/uptime
	echo "$begin $end" | awk '{ printf "%.1f\n", $2 - $1 }' >"out/$name/seconds"
done
CASE=none sh -c '. ./lib.sh; at_end'
dmesg >log/linux
