#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ctf_babeltrace.sh MKSESSION: babeltrace2 reads our traces as they stand: no error, no warning,
# all samples, in time order and at the right time. TAP.
set -u
MK=$1
# shellcheck source=tests/support/can.sh
. "$(dirname "$0")/../support/can.sh"
command -v babeltrace2 >/dev/null || absent 'babeltrace2 is not installed (apt-get install babeltrace2)'
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
n=0
check() { # DESCRIPTION COMMAND...: ok when the command succeeds
	what=$1
	shift
	n=$((n + 1))
	if "$@" >"$T/log" 2>&1; then echo "ok $n - $what"; else
		echo "not ok $n - $what"
		sed 's/^/# /' "$T/log"
	fi
}
reads() { # SAMPLES VCPUS: writes such a session and reads it back to $T/text
	rm -rf "$T/s.uniscope"
	"$MK" "$T/s.uniscope" "$1" "$2" &&
		babeltrace2 --clock-gmt --clock-date "$T/s.uniscope/guest-0" >"$T/text" 2>"$T/err" &&
		cat "$T/err" && [ ! -s "$T/err" ]
}
counts() { # SAMPLES
	got=$(grep -c ' sample: ' "$T/text")
	echo "samples: $got, expected $1"
	[ "$got" = "$1" ]
}
in_order() {
	sed -n 's/^\[\([^]]*\)\].*/\1/p' "$T/text" | LC_ALL=C sort -c
}

check "4 vCPUs, several packets: no message" reads 20000 4
check "all samples are there" counts 20000
check "in time order" in_order
check "wall-clock time" grep -q '^\[2023-11-14 22:13:25.000001000\].* sample: ' "$T/text"
check "each vCPU has its own stream" grep -q 'sample: { cpu_id = 3 }' "$T/text"
check "stop reasons have names" grep -q 'stop = ( "bad-pointer" ' "$T/text"
check "states have names" grep -q 'state = ( "halted" ' "$T/text"
check "the new ones, too" grep -q 'state = ( "stolen" ' "$T/text"
check "chains are addresses" grep -q 'pc = \[ \[0\] = 0xFFFFFFFF80000010, ' "$T/text"
check "exits are there" test "$(grep -c ' exit: ' "$T/text")" = 2000
check "each vCPU has its own stream of them" grep -q 'exit: { cpu_id = 2 }' "$T/text"
check "what they were has names" grep -q 'isa = ( "VMX" : .*info_kind = ( "port" : .*access = ( "read" ' "$T/text"
check "ports are in hex" grep -q 'info = 0x3F8, ' "$T/text"
check "one sample" reads 1 1
check "is one sample" counts 1
check "no sample: no message" reads 0 2
check "64 vCPUs" reads 640 64
check "are all there" counts 640
# Several guests: a trace each, and all of them in one go.
check "three guests: no message" sh -c '
	"$1" "$2/m.uniscope" 1000 2 3 &&
	babeltrace2 --clock-gmt --clock-date "$2/m.uniscope" >"$2/text" 2>"$2/err" &&
	cat "$2/err" && [ ! -s "$2/err" ]' sh "$MK" "$T"
check "all samples of all guests" counts 3000
check "in time order across guests" in_order
# A recorder that died after a whole packet leaves a trace that is as good.
cut_short() { # the samples of the first packet are the first ones of all, as they were
	f=$T/k.uniscope/guest-0/samples-vcpu0
	"$MK" "$T/k.uniscope" 3000 1 && babeltrace2 "$T/k.uniscope/guest-0" | grep ' sample: ' >"$T/whole" &&
		size=$(od -An -tu8 -j48 -N8 "$f") && truncate -s $((size / 8)) "$f" &&
		babeltrace2 "$T/k.uniscope/guest-0" >"$T/text" 2>"$T/err" && [ ! -s "$T/err" ] || return 1
	grep ' sample: ' "$T/text" >"$T/left"
	nr=$(wc -l <"$T/left")
	echo "$nr of 3000 left"
	[ "$nr" -gt 100 ] && [ "$nr" -lt 3000 ] && head -n "$nr" "$T/whole" | cmp - "$T/left"
}
check "without the last packets" cut_short
echo "1..$n"
