#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tracekill.sh [-b BUILD-DIR] [-n KILLS] [-a kvm|tcg] [-s VCPUS]: the cost of switching tracing on. Also the guest's state if the
# profiler dies of it. A lab guest of a thousand traced functions runs. 20 times `trace start` and `trace stop` say how long it
# stood, and `trace record` and `trace dump` how long it stood at their end. Then KILLS (200) of `trace start`, `trace record` and
# `trace stop` are killed (kill -9) at random system calls of their work. After each, every patched place must hold old bytes or new
# ones, and the guest's own heartbeat must go on. The next command verifies all places, and leaves nothing alone. In the end
# everything is off, byte for byte.
set -u
build=build kills=200 accel=kvm vcpus=1
while getopts b:n:a:s: opt; do
	case $opt in
	b) build=$OPTARG ;;
	n) kills=$OPTARG ;;
	a) accel=$OPTARG ;;
	s) vcpus=$OPTARG ;;
	*) sed -n '3,10s/^# //p' "$0" >&2; exit 2 ;;
	esac
done
# shellcheck disable=SC2034 # for guest.sh
U=$build/src/cli/uniscope BUILD=$build SRC=$(dirname "$0")/..
. "$SRC/tests/e2e/guest.sh"
. "$SRC/tests/support/kill.sh"
image=$build/lab/trace/trace-many-gcc-fp.elf
boot "$accel" "$image" ring=512 --smp "$vcpus" || exit 1

fail() {
	echo "tracekill: $*" >&2
	exit 1
}

stood() { # COMMAND...: microseconds
	"$U" trace "$@" 2>"$T/said" || fail "$* : $(cat "$T/said")"
	grep -q 'left alone' "$T/said" && fail "$* : $(cat "$T/said")"
	sed -n 's/.*the guest was stopped .*\(for\|most\) \([0-9]*\) us.*/\2/p' "$T/said" | head -1
}

ended() { # COMMAND...: of `trace record`, `trace dump`, at their end
	"$U" trace "$@" -o "$T/e.uniscope" --overwrite 2>"$T/said" || fail "$* : $(cat "$T/said")"
	sed -n 's/.* was stopped for \([0-9]*\) us at the end.*/\1/p' "$T/said" | head -1
}

code() { # FILE: of the first and the last function, and some between
	"$U" record "$target" -e "$image" -q -F 20 -d 0.2 --watch many_000:512 --watch many_333:512 \
		--watch many_666:512 --watch many_990:160 -o "$T/code.uniscope" --overwrite &&
		python3 -c 'import json, sys
for w in json.load(open(sys.argv[1] + "/session.json"))["guests"][0]["watches"]:
    print(w["name"], w["last"]["bytes"])' "$T/code.uniscope" >"$1"
}

median() { sort -n | sed -n "$((($1 + 1) / 2))p"; }

code "$T/before" || fail 'the code cannot be read'
for i in $(seq 20); do
	stood start "$target" -e "$image" --filter 'many_*' >>"$T/start"
	[ "$i" -gt 1 ] || echo "$accel, $vcpus vCPUs: $(sed 's/^uniscope: //; s/;.*//' "$T/said")"
	stood stop "$target" -e "$image" >>"$T/stop"
	ended record "$target" -e "$image" --filter 'many_*' -d 0.05 >>"$T/record"
	ended dump "$target" -e "$image" >>"$T/dump"
done
echo "the guest was stopped for us, median of 20 (least, most):"
for what in start stop record dump; do
	echo "  $what $(median 20 <"$T/$what") ($(sort -n "$T/$what" | head -1), $(sort -n "$T/$what" | tail -1))"
done

for i in $(seq "$kills"); do
	case $((i % 3)) in
	0) set -- start "$target" -e "$image" --filter 'many_*' ;;
	1) set -- record "$target" -e "$image" --filter 'many_*' -q -d 0.05 -o "$T/k.uniscope" --overwrite ;;
	2) set -- stop "$target" -e "$image" ;;
	esac
	[ "$1" != stop ] || stood start "$target" -e "$image" --filter 'many_*' >/dev/null
	if [ ! -s "$T/nr-$1" ]; then
		count_calls "$U" trace "$@" || fail "$(cat "$T/said")"
		echo "$nr" >"$T/nr-$1"
	fi
	nr=$(cat "$T/nr-$1")
	killed_at $((1 + $(od -An -N4 -tu4 /dev/urandom) % nr)) "$U" trace "$@" || fail "$(cat "$T/said")"
	kill -0 "$guest" 2>/dev/null || fail "the guest died after $i kills"
	stood stop "$target" -e "$image" >/dev/null
	[ $((i % 20)) -ne 0 ] || beats >/dev/null || fail "no heartbeat after $i kills"
done
code "$T/after" && cmp "$T/before" "$T/after" || fail 'the code is not what it was'
beats >/dev/null || fail 'no heartbeat in the end'
echo "$kills kills, all before the end of the work: the guest runs on, all bytes are as they were"
