#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# xen.sh BUILD SRC run|count [CASE...]: boots real Xen in QEMU TCG once. It runs there each case of tests/xen/cases for that boot.
# "# boot: run": time is the host's. "# boot: count": time is the number of instructions, so that a busy host does not matter.
# There, a Linux for a domain without privileges is in the share, too. Then it runs each case's judge outside,
# tests/xen/judge/CASE.sh, if it has one. TAP. Logs stay in BUILD/xen/log-BOOT.
set -u
BUILD=$1 SRC=$2 boot=$3
shift 3
. "$SRC/tests/support/can.sh"
need xen
[ "$boot" != run ] || . "$SRC/tests/e2e/ahead.sh"
cases=$SRC/tests/xen
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 130' INT TERM
export BUILD SRC
# shellcheck source=tests/lab/report.sh
. "$SRC/tests/lab/report.sh"

# A domain without privileges has no share: what it needs is among its programs.
guest=$BUILD/lab/trace/xen-trace-shares-gcc-fp.elf
[ -e "$guest" ] || guest=
"$SRC/lab/share" xen "$BUILD" "$T" "$BUILD/tests/e2e/conformance" "$BUILD/tests/e2e/kill_at" "$SRC/lab/xen/guest" ${guest:+"$guest"} || exit 1
cp "$SRC/tests/lab/run.sh" "$T/"
cat "$SRC/tests/lab/lib.sh" "$SRC/tests/support/kill.sh" "$cases/lib.sh" >"$T/lib.sh"
mkdir "$T/cases"
for c in $(grep -l "^# boot: $boot\$" "$cases"/cases/*.sh); do
	name=$(basename "$c" .sh)
	case " ${*:-$name} " in
	*" $name "*) cp "$c" "$T/cases/" ;;
	esac
done
[ ! -e "$T/cases/hvm.sh" ] || "$SRC/lab/xen/hvm" "$BUILD" "$T" "$BUILD/lab/trace/trace-shares-gcc-fp.elf" 'loop=1 uneven=1' || exit 1

begin=$(date +%s)
# By the host's clock, QEMU stood still for good in four of some ten boots. They had a domain of Linux beside a guest that is
# sampled (nested SVM, 100 % busy, cause unknown).
# If instructions are the clock, a lab that waits for a file of the share skips that time. On a busy host it skips hundreds of seconds.
limit=9000
case $boot in
# The device model of HVM is in dom0's memory, too.
count) option='-i -u -r -d 384 -m 832' ;;
*) option='' limit=900 ;;
esac
# shellcheck disable=SC2086 # none, or some
"$SRC/lab/xen/boot" -q $option -t 5400 -l $limit -o "$BUILD/xen" "$T" 2>"$T/boot.log"
status=$?
echo "# one boot and its cases: $(($(date +%s) - begin)) s"
rm -rf "$BUILD/xen/log-$boot"
cp -r "$T/log" "$BUILD/xen/log-$boot"

report_all
