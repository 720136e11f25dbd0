# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# What the cases of a lab's boot left, as one TAP stream; to be sourced. T is the folder that the lab had,
# cases the one with judge/, status that of the boot. Last comes `report_all`.
n=0
say() { # ok|'not ok' WORDS
	n=$((n + 1))
	echo "$1 $n - $2"
}
quote() { # FILE...: its end, as remarks
	for f in "$@"; do
		[ ! -s "$f" ] || { echo "# $(basename "$f"):"; tail -40 "$f" | tr -cd '\11\12\40-\176' | sed 's/^/#   /'; }
	done
}

# The lines of a TAP file as ours; fails unless it is whole.
relay() { # CASE FILE
	planned='' got=0
	while IFS= read -r line; do
		case $line in
		'ok '*) say ok "$1: ${line#* - }" ;;
		'not ok '*) say 'not ok' "$1: ${line#* - }"; failures=1 ;;
		'1..'*) planned=${line#1..}; continue ;;
		*) echo "# ${line#\# }"; continue ;;
		esac
		got=$((got + 1))
	done <"$2"
	[ "$planned" = "$got" ] && [ "$got" -gt 0 ]
}

report() { # CASE
	failures=0 o=$T/out/$1
	ended=$(cat "$o/status" 2>/dev/null || echo none)
	if ! { [ -e "$o/tap" ] && relay "$1" "$o/tap" && [ "$ended" = 0 ]; }; then
		say 'not ok' "$1: does not report to its end (status $ended)"
		failures=1
	elif [ -e "$cases/judge/$1.sh" ]; then
		OUT=$o sh "$cases/judge/$1.sh" >"$T/verdict" 2>"$o/judge"
		relay "$1" "$T/verdict" || {
			say 'not ok' "$1: its judge does not report to the end"
			failures=1
		}
	fi
	echo "# $1: $(cat "$o/seconds" 2>/dev/null || echo ?) s of the lab's"
	[ $failures -eq 0 ] || quote "$o/log" "$o/judge" "$T"/log/console/guest-"$1"*.log
}

# The boot, each case, and the judge of each outside.
report_all() {
	say "$([ "$status" -eq 0 ] && echo ok || echo 'not ok')" "the lab boots, and ends by itself (status $status)"
	[ "$status" -eq 0 ] || quote "$T/boot.log" "$T/log/output" "$T/log/boot"
	for c in "$T"/cases/*.sh; do
		report "$(basename "$c" .sh)"
	done
	echo "1..$n"
}
