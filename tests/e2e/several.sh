#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# several.sh UNISCOPE BUILD SRCROOT: several guests under KVM in one session, by each method. They
# are kept apart, and each is judged by its own books. A guest that ends or cannot be attached does
# not harm the others. --all finds them (in a pid namespace of its own, so as not to touch other
# guests). TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
need kvm
ask="$SRC/tests/e2e/ask.py"
one='' two=''
end_both() {
	for pid in $one $two; do
		kill -9 "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	one='' two=''
}
trap 'end_both; rm -rf "$T"' EXIT

start() { # NAME IMAGE: its pid in $started
	rm -f "$T/serial.$1"
	"$SRC/lab/boot" --accel kvm --append 'loop=1' --serial "file:$T/serial.$1" "$2" \
		</dev/null >"$T/boot.$1" 2>&1 &
	started=$!
	wait_for 60 grep -q '^lab: running' "$T/serial.$1" || {
		cat "$T/boot.$1"
		return 1
	}
}

both() {
	end_both
	start one "$(image shares)" && one=$started && start two "$(image calls2)" && two=$started
}

record() { # OPTION...
	timeout 90 "$U" record "$(method "$way")" -F 299 "$@" -o "$T/s.uniscope" --overwrite \
		>"$T/log" 2>&1
}

member() { # EXPRESSION of doc, the session
	python3 -c 'import json, sys
doc = json.load(open(sys.argv[1] + "/session.json"))
guests = doc["guests"]
sys.exit(not eval(sys.argv[2]))' "$T/s.uniscope" "$1" && return 0
	echo "not so: $1"
	cat "$T/log"
	return 1
}

kept_apart() {
	record "kvm:pid=$one" "kvm:pid=$two" -d 1.5 || {
		cat "$T/log"
		return 1
	}
	member 'len(guests) == 2 and all(g["statistics"]["weight"] > 100 for g in guests)' || return 1
	"$U" report --no-inline --all-time --json "$T/s.uniscope" >"$T/all.json" || return 1
	first=$(basename "$(image shares)" .elf) second=$(basename "$(image calls2)" .elf)
	python3 "$ask" below "$T/all.json" "$first" burn_a &&
		python3 "$ask" below "$T/all.json" "$second" burn_a not &&
		python3 "$ask" below "$T/all.json" "$second" function_1 &&
		python3 "$ask" below "$T/all.json" "$first" function_1 not || return 1
	"$U" report --no-inline --all-time --guest "$second" --json "$T/s.uniscope" >"$T/second.json" || return 1
	! grep -q burn_a "$T/second.json" && grep -q function_1 "$T/second.json"
}

# Guests that were mixed up would be off by tens of points; truth.sh looks more closely.
as_the_books_say() { # GUEST IMAGE
	"$U" export --no-inline --guest "$1" "$T/s.uniscope" --all-time -f json -o "$T/s.json" || return 1
	python3 -c 'import json, sys
doc = json.load(open(sys.argv[1] + "/session.json"))
doc["guests"] = [doc["guests"][int(sys.argv[2])]]
doc["statistics"] = doc["guests"][0]["statistics"]
json.dump(doc, open(sys.argv[3], "w"))' "$T/s.uniscope" "$1" "$T/one.json" || return 1
	python3 "$SRC/tests/e2e/judge.py" --stacks "$T/s.json" --session "$T/one.json" \
		--graph "$BUILD/lab/$(basename "$(image "$2")" .elf).graph" \
		--min-samples $least --sigmas 6 --floor 0.05 --min-complete 0.95
}

# Fewer samples give wider bounds.
soonest=6 least=500
[ -n "${UNISCOPE_ALL-}" ] || soonest=3 least=200
judged() {
	for seconds in $soonest 12 30; do # a busy host gives them few turns
		record "kvm:pid=$one" "kvm:pid=$two" -d $seconds --watch lab_truth || {
			cat "$T/log"
			return 1
		}
		as_the_books_say 0 shares && as_the_books_say 1 calls2
		judgement=$?
		[ $judgement -eq 3 ] || break
		retry "too few samples in $seconds s"
	done
	return $judgement
}

by_babeltrace() {
	babeltrace2 "$T/s.uniscope" >"$T/text" 2>"$T/err" && [ ! -s "$T/err" ] || {
		cat "$T/err"
		return 1
	}
	want=$(python3 -c 'import json, sys
print(json.load(open(sys.argv[1] + "/session.json"))["statistics"]["samples"])' "$T/s.uniscope")
	got=$(grep -c ' sample: ' "$T/text")
	echo "$got of $want"
	[ "$got" = "$want" ]
}

grown() { # SIZE
	[ "$(stat -c %s "$T/s.uniscope/guest-0/samples-vcpu0")" -gt "$1" ]
}

one_ends() {
	rm -rf "$T/s.uniscope"
	"$U" record "$(method "$way")" -F 299 "kvm:pid=$one" "kvm:pid=$two" -d 0 -o "$T/s.uniscope" >"$T/log" 2>&1 &
	recorder=$!
	wait_for 60 test -s "$T/s.uniscope/guest-1/samples-vcpu0"
	kill -9 "$two"
	wait "$two" 2>/dev/null
	two=
	for _ in 1 2; do # samples are written from time to time
		wait_for 60 grown "$(stat -c %s "$T/s.uniscope/guest-0/samples-vcpu0")"
	done
	kill -INT $recorder
	wait $recorder || {
		cat "$T/log"
		return 1
	}
	grep -q 'the guest ended; what was collected until then is kept' "$T/log" &&
		member 'all(g["statistics"]["weight"] > 0 for g in guests)' &&
		member 'guests[0]["statistics"]["end_ns"] > guests[1]["statistics"]["end_ns"]'
}

one_is_not_there() {
	record "kvm:pid=$one" no-such-guest "kvm:pid=$one" -d 1
	status=$?
	[ $status = 1 ] && grep -q 'no-such-guest: left out: no guest named' "$T/log" &&
		grep -q "kvm:pid=$one: left out: the same guest" "$T/log" &&
		member 'len(guests) == 1 and guests[0]["statistics"]["samples"] > 20'
}

# Nothing is stopped, and the session says so.
never_stopped() {
	member 'all(g["method"] == "bpf" and g["statistics"]["pause_ns"]["nr"] == 0 for g in guests)' &&
		member 'all(sum(v[k] for k in v if k.endswith("_ns")) > 0
			for g in guests for v in g["statistics"]["vcpus"])' &&
		"$U" report "$T/s.uniscope" | grep '^pauses     none: the guest was never stopped'
}

for way in $(by_default bpf "$ways"); do
	[ "$way" = tcg ] && continue
	check "$way: two guests boot" both
	check "$way: two guests in one session, kept apart" kept_apart
	if command -v babeltrace2 >/dev/null; then
		check "$way: babeltrace2 reads both" by_babeltrace
	else
		skip "$way: babeltrace2 reads both" 'babeltrace2 is not installed'
	fi
	[ "$way" = bpf ] && check "$way: never stopped, and it says so" never_stopped
	check "$way: each as its own books say" judged
	in_all check "$way: one that is not there is left out" one_is_not_there
	in_all check "$way: one ends, the other goes on" one_ends
done

# A new pid namespace with its own /proc holds our two guests and nobody else's.
all_of_them() {
	unshare -p -f -m sh -c 'mount -t proc proc /proc &&
		. "$1/all.sh"' sh "$T" >"$T/log" 2>&1 || {
		cat "$T/log"
		return 1
	}
	member 'sorted(g["kernel"].split("/")[-1] for g in guests) == '"['$(basename "$(image calls2)")', \
'$(basename "$(image shares)")']"
}
cat >"$T/all.sh" <<END
for image in $(image shares) $(image calls2); do
	"$SRC/lab/boot" --accel kvm --append loop=1 --serial "file:$T/serial.\${image##*/}" \
		"\$image" </dev/null >/dev/null 2>&1 &
	for _ in \$(seq 300); do
		grep -q '^lab: running' "$T/serial.\${image##*/}" 2>/dev/null && break
		sleep 0.1
	done
done
timeout 60 "$U" record --all -d 1 -F 199 -o "$T/s.uniscope" --overwrite
END
# One more, under TCG and without a stub: it is left out, and said, and the others are recorded.
all_but_one() {
	sed '$d' "$T/all.sh" >"$T/others.sh" && cat >>"$T/others.sh" <<END
"$SRC/lab/boot" --accel tcg --append loop=1 --serial "file:$T/serial.still" "$(image idle)" </dev/null >/dev/null 2>&1 &
for _ in \$(seq 300); do
	grep -q '^lab: running' "$T/serial.still" 2>/dev/null && break
	sleep 0.1
done
timeout 60 "$U" record --all -d 1 -F 199 -o "$T/s.uniscope" --overwrite
END
	unshare -p -f -m sh -c 'mount -t proc proc /proc && . "$1/others.sh"' sh "$T" >"$T/log" 2>&1
	status=$?
	cat "$T/log"
	[ $status -eq 0 ] && grep 'left out: no backend' "$T/log" &&
		member 'sorted(g["kernel"].split("/")[-1] for g in guests) == '"['$(basename "$(image calls2)")', \
'$(basename "$(image shares)")']"
}
if [ "$(id -u)" = 0 ] && unshare -p -f -m mount -t proc proc /proc 2>/dev/null; then
	end_both
	in_all check 'record --all' all_of_them
	rm -f "$T"/serial.*
	check 'record --all: one that cannot be recorded' all_but_one
else
	skip 'record --all' 'a pid namespace needs root'
fi
finish
