#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# truth.sh UNISCOPE BUILD SRCROOT tcg|kvm|bpf|aarch64: profiles of lab guests against the books they keep about themselves
# (judge.py). It judges shares of time, and call chains by the image's own call graph. aarch64 is by TCG. TAP.
set -u
U=$1 BUILD=$2 SRC=$3 HOW=$4 ACCEL=$4
LAB=$BUILD/lab qemu=qemu-system-x86_64
[ "$HOW" = bpf ] && ACCEL=kvm
[ "$HOW" = aarch64 ] && ACCEL=tcg LAB=$BUILD/lab/aarch64 qemu=qemu-system-aarch64
here=$SRC/tests/e2e

# shellcheck source=tests/support/can.sh
. "$SRC/tests/support/can.sh"
ls "$LAB"/shares-*-fp.elf >/dev/null 2>&1 || absent 'no lab images: is there a compiler?'
command -v $qemu >/dev/null || absent "$qemu is not installed"
method=auto
case $HOW in
kvm) method=pause && need kvm ;;
bpf) method=bpf && need kvm bpf ;;
esac
# shellcheck source=tests/e2e/ahead.sh
. "$SRC/tests/e2e/ahead.sh"
T=$(mktemp -d)
n=0
want=${TRUTH_SAMPLES:-2200} least= hz=499 first=6
# A way that stops nobody may look more often.
[ "$HOW" = bpf ] && hz=997 first=3
# A foreign architecture takes longer to get there: fewer, and wider bounds.
[ "$HOW" = aarch64 ] && want=700 least="--min-samples 500" hz=299 first=4
# If QEMU waits for a CPU at each pause, pauses become long, and few. So it gets a higher priority if it may.
ahead=
[ "$HOW" = aarch64 ] && ahead='nice -n -15'

# A guest that waits until it is told to begin, so that its whole run can be recorded.
start() { # IMAGE APPEND
	rm -f "$T/in" "$T/gdb" "$T/console" # no line of the guest before
	mkfifo "$T/in"
	set -- "$LAB/$1.elf" "loop=1 wait=1 $2"
	[ "$ACCEL" = tcg ] && set -- "$@" --gdb "unix:$T/gdb,server=on,wait=off"
	image=$1 append=$2
	shift 2
	# shellcheck disable=SC2086 # words
	$ahead "$SRC/lab/boot" --accel "$ACCEL" --append "$append" "$@" "$image" <"$T/in" >"$T/console" 2>&1 &
	guest=$!
	exec 9>"$T/in"
	says 'lab: waiting' && printf x >&9 && says 'lab: running'
}
says() { # waits up to 60 s for a line on the console
	i=0
	until grep -q "$1" "$T/console"; do
		i=$((i + 1))
		[ $i -gt 600 ] && return 1
		sleep 0.1
	done
}
stop() {
	exec 9>&-
	kill -9 "$guest" 2>/dev/null
	wait "$guest" 2>/dev/null
}
trap 'kill -9 $guest 2>/dev/null; rm -rf "$T"' EXIT INT TERM
guest=

recorded() { # SECONDS
	target=kvm:pid=$guest
	[ "$ACCEL" = tcg ] && target=gdb:unix=$T/gdb
	"$U" record "$target" --method "$method" -F $hz -d "$1" --watch lab_truth -o "$T/s.uniscope" --overwrite \
		>"$T/log" 2>&1
}

# How many samples fit into a second is a busy host's business: again, longer, if need be.
record() { # SAMPLES
	seconds=$first
	kill -CONT "$guest"
	for _ in 1 2 3 4; do
		recorded $seconds
		got=$(python3 -c 'import json, sys
print(int(json.load(open(sys.argv[1] + "/session.json"))["statistics"]["samples"]))' "$T/s.uniscope" 2>/dev/null)
		[ "${got:-0}" -ge "$1" ] && break
		seconds=$((seconds * $1 / (${got:-0} + 100) + first))
		[ $seconds -gt 100 ] && seconds=100
	done
	kill -STOP "$guest" # it would cost a CPU while the judge thinks
	"$U" export --no-inline "$T/s.uniscope" --all-time -f json -o "$T/s.json" >>"$T/log" 2>&1
}

# If a busy host gives a vCPU few turns, its samples come in bunches. Then one of some 60 shares may be off by more than 4 of their
# standard errors. The judge wants more samples then (3), with narrower bounds. It forgives no other error.
judged() { # IMAGE APPEND JUDGE-OPTIONS...
	name=$1 append=$2
	shift 2
	n=$((n + 1))
	if ! start "$name" "$append"; then
		stop
		echo "not ok $n - $name under $HOW: the guest did not start"
		sed 's/^/# /' "$T/console"
		return
	fi
	for samples in "$want" $((2 * want)) $((4 * want)); do
		record "$samples"
		# shellcheck disable=SC2086
		python3 "$here/judge.py" $least --stacks "$T/s.json" --session "$T/s.uniscope" \
			--graph "$LAB/$name.graph" "$@" >"$T/verdict" 2>&1
		status=$?
		[ $status -eq 3 ] || break
		echo "# retry: $name under $HOW: too few samples ($samples)"
	done
	stop
	if [ $status -eq 0 ]; then
		echo "ok $n - $name under $HOW"
	else
		echo "not ok $n - $name under $HOW"
	fi
	sed 's/^/# /' "$T/verdict"
	grep -E 'samples in|paused' "$T/log" | sed 's/^/# /'
	[ -s "$T/verdict" ] || sed 's/^/# /' "$T/log"
}

# The books are charged when a function ends, so turns are short. If a busy host takes the vCPU's
# time away, a long turn covers part of a second. Then the books and the samples have different
# intervals.
for cc in $(compiler_of "$HOW"); do
	[ -e "$LAB/shares-$cc-fp.elf" ] || continue
	# Signed returns are the harder half there.
	[ "$HOW" = aarch64 ] || judged shares-$cc-fp ''
	# The chains of calls are the unwinder's: pauses leave them to the same one everywhere (complete.sh).
	[ "$HOW" != bpf ] || in_all judged calls1-$cc-fp 'mix=1'
	case $HOW in
	bpf | aarch64) judged calls2-$cc-fp 'mix=1 inner=20' ;;
	esac
done
[ "$HOW" = aarch64 ] && judged shares-gcc-pac ''
echo "1..$n"
