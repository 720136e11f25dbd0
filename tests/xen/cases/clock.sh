# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: count
# With -icount, the time that the same work takes is the same.
work() { i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; }
hundredths() { awk '{ print int($1 * 100) }' /proc/uptime; }
same() {
	a=$(hundredths); work; b=$(hundredths); work; c=$(hundredths)
	echo "$((b - a)) and $((c - b)) hundredths of a second"
	[ $((b - a)) -gt 5 ] && [ $((100 * (b - a) - 100 * (c - b))) -le $((10 * (b - a) + 100)) ] &&
		[ $((100 * (c - b) - 100 * (b - a))) -le $((10 * (b - a) + 100)) ]
}
check 'the same work takes the same time' same
