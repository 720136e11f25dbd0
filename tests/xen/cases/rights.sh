# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: run
# limit: 200
# Root's commands look at a domain without rights. Whoever reads the image has an open connection to Xen.
name=$CASE image=/mnt/guests/xen-shares-gcc-fp.elf
children() {
	grep -l "^PPid:	$1\$" /proc/[0-9]*/status 2>/dev/null | cut -d/ -f3
}
tree() {
	echo "$1"
	for child in $(children "$1"); do
		tree "$child"
	done
}
# "NAME CAPABILITIES own|UID confined|free" of each process of the command, sorted. A user of its own belongs to no one else.
rights() { # PID
	for p in $(tree "$1"); do
		awk '/^(Name|Cap...|Uid|NoNewPrivs|Seccomp):/ { v[$1] = $2 }
			END {
				caps = v["CapPrm:"] == v["CapEff:"] ? v["CapPrm:"] : "more"
				if (v["CapInh:"] != caps && v["CapInh:"] !~ /^0+$/) caps = "more"
				if (v["CapAmb:"] != caps && v["CapAmb:"] !~ /^0+$/) caps = "more"
				sub(/^0+/, "", caps)
				who = v["Uid:"] + 0 >= 1879048192 ? "own" : v["Uid:"]
				bound = v["NoNewPrivs:"] == 1 && v["Seccomp:"] == 2 ? "confined" : "free"
				print v["Name:"], (caps == "" ? 0 : caps), who, bound
			}' "/proc/$p/status"
	done | sort
}
# The keeper, who ends a pause, and the opener have the rights to reach root's files, and nobody else has any.
worker='uniscope 0 own confined'
opener='uniscope-opener 6 0 confined' keeper='uni-guardian 6 own confined'
begun() { # FILE: something is in it; or PID: it is no longer root
	case $1 in
	/*) [ -s "$1" ] ;;
	*) grep -q '^Uid:	[1-9]' "/proc/$1/status" ;;
	esac
}
# A guest that stands still waits for nobody else's turn.
hurried() { # PID
	for t in /proc/"$1"/task/*/stat; do
		sed 's/.*) //' "$t"
	done | awk '$39 == 1 { n++ } END { exit !n }'
}
first() {
	uniscope record -q -d 0 -o "$T/f" "xen:dom=$name" &
	pid=$!
	wait_for 60 test -s "$T/f/session.json" && wait_for 20 hurried $pid
	status=$?
	kill -INT $pid
	wait $pid && [ $status -eq 0 ]
}
has() { # "PROCESS..." FILE COMMAND...: while it runs, and has written the file
	wanted=$1 file=$2
	shift 2
	rm -rf "$file"
	"$@" >"$T/said" 2>&1 &
	pid=$!
	wait_for 60 begun "${file:-$pid}" && rights $pid >"$T/rights"
	kill -INT $pid
	wait $pid
	status=$?
	cat "$T/said" "$T/rights"
	echo "status $status"
	[ $status -eq 0 ] && [ "$(cat "$T/rights")" = "$(echo "$wanted" | sort)" ]
}
not_paused="$worker
$opener"
paused="$keeper
$not_paused"
traced="$paused
uni-unpatch 8840e6 0 confined"
# Whoever starts xl, and whoever ends the domain if that one is killed, have all rights.
booted="$paused
uniscope 1ffffffffff 0 free
uni-guardian 1ffffffffff 0 free"
cat >"$T/app.cfg" <<-EOF
	name = "$name-booted"
	type = "pvh"
	kernel = "$image"
	memory = 64
	vcpus = 1
	extra = "loop=1"
	tsc_mode = "native"
EOF
looks() { uniscope stacks "xen:dom=$name" | grep kmain; }
saved() { uniscope record -q -d 1 "xen:dom=$name" --save-replay "$T/replay" -o "$T/r" && uniscope stacks "replay:file=$T/replay" -e $image | grep kmain; }

check 'a guest starts' start "$name" -t pv shares loop=1
check 'record: only opener and guardian have rights' has "$paused" "$T/s/session.json" uniscope record -q -d 0 -o "$T/s" "xen:dom=$name"
check 'record: whoever pauses it has real-time priority' first
check 'record, not paused' has "$not_paused" "$T/t/session.json" uniscope record -q -d 0 --no-pause -o "$T/t" "xen:dom=$name"
check 'top' has "$paused" "$T/said" uniscope top --batch --count 0 "xen:dom=$name"
check 'uniprof' has "$paused" '' uniscope uniprof -F 50 -T 100 "$T/raw" "$dom"
check 'a look works so' looks
check 'a recording with all that was read' saved
check 'another guest starts' start "$name-traced" -t pvh trace-traced-gcc-fp loop=1
check 'trace record: so does the one that restores its code' has "$traced" "$T/said" uniscope trace record -d 0 --filter 'traced_*' -o "$T/c" \
	"xen:dom=$dom"
xl destroy "$dom"
xl destroy "$name"
check 'run --xl: who records has none' has "$booted" "$T/b/session.json" uniscope run --xl "$T/app.cfg" -q -d 0 -o "$T/b"
