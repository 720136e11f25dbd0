#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# xen.sh BUILD SRC run|count|dump|domu [CASE...]: boots real Xen in QEMU TCG once and runs there each case of
# tests/xen/cases that says "# boot: run" (time is the host's), "# boot: count" (time is the number of
# instructions: as good on a busy host) or "# boot: domu" (the same, and there is a Linux for a domain
# without privileges), then its judge outside, tests/xen/judge/CASE.sh, if it
# has one. TAP. Logs stay in BUILD/xen/log-BOOT.
set -u
BUILD=$1 SRC=$2 boot=$3
shift 3
[ "$boot" != run ] || . "$SRC/tests/e2e/ahead.sh"
cases=$SRC/tests/xen
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 130' INT TERM
export BUILD SRC
n=0

# A domain without privileges has no share: what it needs is among its programs.
guest=$BUILD/lab/trace/xen-trace-shares-gcc-fp.elf
[ -e "$guest" ] || guest=
"$SRC/lab/xen/share" "$BUILD" "$T" "$BUILD/tests/e2e/conformance" "$SRC/lab/xen/guest" ${guest:+"$guest"} || exit 1
cp "$cases/run.sh" "$cases/lib.sh" "$T/"
mkdir "$T/cases"
for c in $(grep -l "^# boot: $boot\$" "$cases"/cases/*.sh); do
	name=$(basename "$c" .sh)
	case " ${*:-$name} " in
	*" $name "*) cp "$c" "$T/cases/" ;;
	esac
done

begin=$(date +%s)
# By the host's clock QEMU stood still for good in four of some ten boots with a domain of Linux beside a
# guest that is sampled (nested SVM, 100 % busy, cause unknown).
case $boot in
count) option=-i ;;
domu) option='-i -u' ;;
*) option= ;;
esac
# shellcheck disable=SC2086 # none, one or two
"$SRC/lab/xen/boot" -q $option -t 1500 -l 900 -o "$BUILD/xen" "$T" 2>"$T/boot.log"
status=$?
if [ $status -eq 77 ]; then
	echo "1..0 # SKIP $(tail -1 "$T/boot.log")"
	exit 0
fi
echo "# one boot and its cases: $(($(date +%s) - begin)) s"
rm -rf "$BUILD/xen/log-$boot"
cp -r "$T/log" "$BUILD/xen/log-$boot"

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

say "$([ $status -eq 0 ] && echo ok || echo 'not ok')" "the lab boots, and ends by itself (status $status)"
[ $status -eq 0 ] || quote "$T/boot.log" "$T/log/output" "$T/log/boot"
for c in "$T"/cases/*.sh; do
	report "$(basename "$c" .sh)"
done
echo "1..$n"
