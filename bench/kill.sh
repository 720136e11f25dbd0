#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# kill.sh [-b BUILD-DIR] [-e IMAGE] TARGET [N]: kill -9 a profiler of the running TARGET at N (200) random instants. They lie
# between the time before its attach and the middle of its sampling at full speed. After each the guest's own heartbeat must go on
# within 3 s. Prints "N of N survived". The image must be a lab image, booted with wait=1 (the heartbeat then never pauses), and its
# VMM a process of this host.
set -eu
build=build image=
while getopts b:e: opt; do
	case $opt in
	b) build=$OPTARG ;;
	e) image=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || { sed -n '3,6s/^# //p' "$0" >&2; exit 2; }
exec "$build/tests/e2e/conformance" --image "${image:-$build/lab/shares-gcc-fp.elf}" \
	--kill "${2:-200}" "$1"
