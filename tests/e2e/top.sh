#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# top.sh UNISCOPE BUILDROOT SRCROOT: uniscope top, in a pipe and in a terminal, on real guests and
# on a replay of one. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
# shellcheck source-path=SCRIPTDIR source=guest.sh
. "$SRC/tests/e2e/guest.sh"
cd "$T" || exit 1
case $U in
/*) ;;
*) U=$OLDPWD/$U ;;
esac
mkfifo "$T/pipe"

# Nothing but printable characters and newlines.
plain() { # FILE
	! LC_ALL=C grep -q '[^[:print:]]' "$1"
}
# The share of each burn_* of `shares`, as exact as the samples allow. It reads until there are
# enough, however slow the machine is today.
shares() { # JSON-LINES-PIPE
	python3 - "$1" <<'END'
import json, math, sys
want = {"burn_a": 0.5, "burn_b": 0.25, "burn_c": 0.15, "burn_d": 0.1}
got, lines = dict.fromkeys(want, 0), []
for line in open(sys.argv[1]):
    lines.append(json.loads(line))
    for f in lines[-1]["functions"]:
        got[f["name"]] = got.get(f["name"], 0) + f["self"]
    n = sum(got[k] for k in want)
    if n >= 300:
        break
print(n, got, lines[-1]["quality"], lines[-1]["vcpus"])
assert n >= 300
for k in want:
    assert abs(got[k] / n - want[k]) < 5 * math.sqrt(want[k] * (1 - want[k]) / n) + 0.01, k
assert all(l["quality"]["complete"] > 0.97 for l in lines if l["quality"]["samples"] > 100)
assert [l["snapshot"] for l in lines] == list(range(1, len(lines) + 1))
END
}
# If the host's kernel makes the samples, it stops nothing and knows more of each vCPU.
streamed() { # JSON-LINES
	python3 - "$1" <<'END'
import json, sys
s = [json.loads(l) for l in open(sys.argv[1])][-1]
print(s["quality"], s["vcpus"])
v = s["vcpus"][0]
assert s["quality"]["pause"] is None
assert abs(v["guest"] + v["vmm"] + v["idle"] + v["stolen"] + (v["kvm"] or 0) - 1) < 0.01
assert v["exits_per_s"] > 50 # 100 Hz timer
assert 0 < s["quality"]["host_ns_per_sample"] < 1e6
END
}
ends_well() { # STATUS-FILE
	test "$(cat "$1")" = 0
}

held() {
	rm -f "$T/json"
	env --default-signal=INT "$U" top "$target" -e "$elf" --json --count 0 -i 0.5 >"$T/json" 2>"$T/err" &
	t=$!
	wait_for 120 grep -q '"held":null' "$T/json"
	kill -STOP "$guest"
	wait_for 60 grep -q "\"held\":\"a signal has stopped the VMM, pid $guest, " "$T/json"
	kill -CONT "$guest"
	wait_for 60 sh -c "tail -1 '$T/json' | grep '\"held\":null'"
	free=$?
	kill -INT $t
	wait $t && [ $free -eq 0 ] && grep -q '"held":"a signal' "$T/json" && [ ! -s "$T/err" ]
}

# The last snapshot says so, and came before its time, 5 s after the one before.
ended_at_once() { # STATUS-FILE JSON-LINES
	ends_well "$1" && python3 - "$2" <<'END'
import json, sys
s = [json.loads(l) for l in open(sys.argv[1])]
print([(l["from_s"], l["to_s"], l["ended"]) for l in s])
assert [l["ended"] for l in s] == [False] * (len(s) - 1) + [True]
assert s[-1]["to_s"] - s[-2]["to_s"] < 4
END
}

for accel in ${accels##* }; do # keys, below, go to a TCG guest
	boot "$accel" "$(image shares)" '' || exit 1
	(timeout 120 "$U" top --no-inline "$target" -e "$elf" --json --count 0 -F 499 -i 0.5 --rows 0 >"$T/pipe" 2>"$T/err"
		echo $? >"$T/st") &
	t=$!
	check "$accel: shares are right" shares "$T/pipe"
	wait $t
	check "$accel: a reader that has enough is no failure" ends_well "$T/st"
	check "$accel: ... and nothing to talk about" test ! -s "$T/err"
	timeout 60 "$U" top "$target" -e "$elf" --batch --count 2 -i 0.5 --function app_main >"$T/text" 2>&1
	check "$accel: text has the functions and the calls" \
		sh -c "grep -q ' burn_a$' '$T/text' && grep -q '^calls of app_main$' '$T/text'"
	check "$accel: text is plain" plain "$T/text"
	check "$accel: two snapshots" test "$(grep -c snapshot "$T/text")" = 2
	in_all check "$accel: Enter shows the code of a function" timeout 600 \
		python3 "$SRC/tests/e2e/top_screen.py" code_live "$U" "$target" "$elf"
	boot "$accel" "$(image idle)" '' || exit 1 # rests while the test waits
	timeout 60 "$U" top "$target" -e "$elf" --batch -d 1.5 >"$T/text" 2>&1
	check "$accel: it ends after its time" test $? = 0 -a "$(grep -c snapshot "$T/text")" -ge 1 -a \
		"$(grep -c snapshot "$T/text")" -le 2
	# Behind a "&" the shell has it ignore SIGINT.
	rm -f "$T/text"
	env --default-signal=INT "$U" top "$target" -e "$elf" --batch --count 0 -i 0.5 >"$T/text" 2>"$T/err" &
	t=$!
	wait_for 120 grep -q snapshot "$T/text"
	kill -INT $t
	wait $t
	check "$accel: Ctrl-C ends it well" test $? = 0 -a ! -s "$T/err" -a -s "$T/text"
	check "$accel: the guest runs on" beats
	check "$accel: a VMM that a signal has stopped is named, while it lasts" held
	rm -f "$T/json"
	(timeout 120 "$U" top --no-inline "$target" -e "$elf" --json --count 0 -i 5 >"$T/json" 2>"$T/err"
		echo $? >"$T/st") &
	t=$!
	wait_for 60 test -s "$T/json"
	end_guest
	wait $t
	check "$accel: a guest that ends is said to have, at once" ended_at_once "$T/st" "$T/json"
done

# Several guests at once; what one does is not taken for what the other does.
if [ "$accels" != tcg ]; then
	boot kvm "$(image idle)" '' || exit 1
	if [ -z "$no_bpf" ]; then
		timeout 60 "$U" top --no-inline "$target" --json --count 2 -i 2 >"$T/json" 2>"$T/err"
		check "kvm: sampled without a stop" streamed "$T/json"
		[ -z "${UNISCOPE_ALL-}" ] || timeout 60 "$U" top --no-inline "$target" --json --no-exits >"$T/json" 2>"$T/err"
		in_all check "kvm: exits are not counted if unwanted" \
			grep -q '"exits_per_s":null' "$T/json"
	fi
	first=$guest
	guest=
	boot kvm "$(image shares)" '' || exit 1
	timeout 120 "$U" top --no-inline "kvm:pid=$first" "$target" --json --count 1 -i 1 --idle --rows 0 >"$T/json" \
		2>"$T/err"
	check "two guests" python3 - "$T/json" <<'END'
import json, sys
s = json.load(open(sys.argv[1]))
f = {x["name"]: x for x in s["functions"]}
print(s)
names = sorted({v["guest_name"] for v in s["vcpus"]})
assert len(names) == 2 and "idle" in names[0] and "shares" in names[1], names
busy, idle = f[names[1]]["total"], f[names[0]]["total"]
assert busy and idle and busy + idle == s["total"]
assert 0 < sum(f[k]["self"] for k in f if k.startswith("burn_")) <= busy
assert 0 < sum(f[k]["self"] for k in f if k in ("do_work", "[idle]", "lab_halt")) <= idle
END
	check "two guests: nothing to complain about" test ! -s "$T/err"
	# Stopped by Ctrl-Z: no guest stands still with it, also where each sample is a stop.
	in_all check "Ctrl-Z with a guest that is stopped for samples" timeout 600 \
		python3 "$SRC/tests/e2e/top_screen.py" suspend_paused "$U" "$target" "$elf"
	check "the guest runs on" beats
	kill -9 "$first"
	wait "$first" 2>/dev/null
fi

boot tcg "$(image smp)" '' --smp 2 || exit 1
check "a replay to look at" "$U" record "$target" -e "$elf" -q -d 3 -F 49 \
	--save-replay "$T/smp.replay" -o "$T/smp.uniscope"
in_all check "live guest: keys" python3 "$SRC/tests/e2e/top_screen.py" keys "$U" "$target" "$elf"
end_guest
for case in $(by_default 'keys select code save signals suspend gone refused' \
	'keys select code pause sizes save signals duration suspend colour gone refused'); do
	check "screen: $case" timeout 600 python3 "$SRC/tests/e2e/top_screen.py" "$case" "$U" \
		"replay:file=$T/smp.replay,once=0" "$elf"
done
finish
