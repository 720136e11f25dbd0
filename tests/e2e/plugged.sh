#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# plugged.sh UNISCOPE GROWING: a vCPU that is plugged in while `record` and `top` run is in the
# session and has its line. TAP.
set -u
U=$1 GROWING=$2
vmm='' watcher='' n=0
. "$(dirname "$0")/../support/can.sh"
need kvm bpf
. "$(dirname "$0")/ahead.sh"
T=$(mktemp -d) || exit 1
end_all() {
	exec 7>&-
	[ -z "$watcher" ] || kill -9 "$watcher" 2>/dev/null
	[ -z "$vmm" ] || wait "$vmm" 2>/dev/null
	watcher='' vmm=''
}
trap 'end_all; rm -rf "$T"' EXIT
trap 'exit 130' INT TERM
echo '0000000000001000 T loop' >"$T/names"

check() { # NAME COMMAND...
	name=$1
	shift
	n=$((n + 1))
	if "$@" >"$T/out" 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' "$T/out"
	fi
}

wait_for() { # COMMAND...
	for _ in $(seq 300); do
		"$@" && return 0
		sleep 0.1
	done
	echo "waited in vain: $*"
	return 1
}

begin() {
	end_all
	rm -f "$T/in" "$T/pid"
	mkfifo "$T/in"
	"$GROWING" <"$T/in" >"$T/pid" &
	vmm=$!
	exec 7>"$T/in"
	wait_for test -s "$T/pid" && target=kvm:pid=$(cat "$T/pid")
}
plug() {
	echo >&7
}

# For a session that is still being written, and for a finished one.
session() { # OPTION...
	begin || return 1
	rm -rf "$T/s.uniscope"
	"$U" record "$target" --method bpf -e "$T/names" -F 199 -o "$T/s.uniscope" "$@" \
		>"$T/log" 2>&1 &
	watcher=$!
	wait_for test -s "$T/s.uniscope/guest-0/samples-vcpu0" && plug &&
		wait_for test -s "$T/s.uniscope/guest-0/samples-vcpu1" || {
		cat "$T/log"
		return 1
	}
	"$U" report --vcpu 1 "$T/s.uniscope" >"$T/open" 2>&1
	sleep 1
	kill -INT "$watcher"
	wait "$watcher" || {
		cat "$T/log"
		return 1
	}
	watcher=
	cat "$T/log" "$T/open"
	grep -q 'from 2 vCPUs, 0 lost' "$T/log" && grep -q 'vCPU 1: ' "$T/log" &&
		grep -q 'loop' "$T/open"
}
reported() { # of each vCPU, and the sums are right
	"$U" report "$T/s.uniscope" >"$T/report" && cat "$T/report" &&
		grep -q '^vcpu 1 ' "$T/report" &&
		"$U" report --no-inline --all-time --json --vcpu 1 "$T/s.uniscope" >"$T/one.json" &&
		"$U" report --no-inline --all-time --json "$T/s.uniscope" >"$T/all.json" &&
		python3 - "$T" <<'END'
import json, sys
of = lambda name: json.load(open(sys.argv[1] + "/" + name))
guest = of("s.uniscope/session.json")["guests"][0]
st = guest["statistics"]
print(guest["nr_vcpus"], len(st["vcpus"]), st["lost"], st["weight"])
assert guest["nr_vcpus"] == 2 and len(st["vcpus"]) == 2 and st["lost"] == 0
assert st["vcpus"][1]["guest_ns"] + st["vcpus"][1].get("unsampled_ns", 0) > 0
assert of("all.json")["total"] == st["weight"]
assert 0 < of("one.json")["total"] < st["weight"]
END
}
# By default its samples and its exits in one session; sh test.sh all has each way to record.
for kind in $(by_default exits 'plain exits aggregate'); do
	option=--$kind
	[ "$kind" != plain ] || option=
	# shellcheck disable=SC2086 # one word, or none
	check "record, $kind: a vCPU that comes later is sampled and written" session $option
	check "report: it is there, and nothing was dropped" reported
done

lines() {
	begin || return 1
	rm -f "$T/top"
	"$U" top --no-inline "$target" -e "$T/names" --batch --json --count 0 -i 0.5 >"$T/top" 2>"$T/log" &
	watcher=$!
	wait_for test -s "$T/top" && plug && wait_for two_lines
	status=$?
	kill -INT "$watcher"
	wait "$watcher"
	watcher=
	[ $status = 0 ] || cat "$T/log" "$T/top"
	return $status
}
two_lines() {
	python3 - "$T/top" <<'END'
import json, sys
snaps = [json.loads(l) for l in open(sys.argv[1]) if l.endswith("\n")]
if len(snaps[-1]["vcpus"]) != 2:
    sys.exit(1)
v = snaps[-1]["vcpus"][1]
sys.exit(not (v["vcpu"] == 1 and (v["guest"] or 0) + (v["stolen"] or 0) > 0.2))
END
}
check 'top: it has its line' lines

# The reason why guest 0 could not be recorded is there instead of numbers.
failed() {
	python3 - "$T/s.uniscope/session.json" <<'END'
import json, sys
doc = json.load(open(sys.argv[1]))
doc["guests"][0]["failed"] = "no such map"
json.dump(doc, open(sys.argv[1], "w"))
END
	"$U" report "$T/s.uniscope" >"$T/report" && cat "$T/report" &&
		grep -q '^samples  *none: no such map' "$T/report" && ! grep -q ' lost' "$T/report"
}
check 'a guest that could not be recorded: why' failed

# However short it is and however long it took to begin.
not_empty() {
	begin && "$U" top --no-inline "$target" -e "$T/names" --json --count 1 -i 0.1 -F 997 >"$T/top" || return 1
	cat "$T/top"
	python3 -c 'import json, sys
s = json.load(open(sys.argv[1]))
sys.exit(not (s["quality"]["samples"] > 0 and s["functions"] and s["quality"]["rate"] > 0))' \
		"$T/top"
}
check 'top: the first snapshot is not empty' not_empty
echo "1..$n"
