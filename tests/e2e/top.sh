#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# top.sh UNISCOPE BUILDROOT SRCROOT: uniscope top, in a pipe and in a terminal, on real guests and
# on a replay of one. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
# shellcheck source-path=SCRIPTDIR source=guest.sh
. "$SRC/tests/e2e/guest.sh"
cd "$T" || exit 1

# Nothing but printable characters and newlines.
plain() { # FILE
	! LC_ALL=C grep -q '[^[:print:]]' "$1"
}
# The share of each burn_* of `shares`, as far as so few samples can tell.
shares() { # JSON-LINES
	python3 - "$1" <<'END'
import json, math, sys
want = {"burn_a": 0.5, "burn_b": 0.25, "burn_c": 0.15, "burn_d": 0.1}
lines = [json.loads(l) for l in open(sys.argv[1])]
self = {k: sum(f["self"] for l in lines for f in l["functions"] if f["name"] == k) for k in want}
n = sum(self.values())
print(n, self, lines[-1]["quality"], lines[-1]["vcpus"])
assert n >= 100
for k in want:
    assert abs(self[k] / n - want[k]) < 5 * math.sqrt(want[k] * (1 - want[k]) / n) + 0.01, k
assert all(l["quality"]["complete"] > 0.99 for l in lines)
assert [l["snapshot"] for l in lines] == list(range(1, len(lines) + 1))
END
}
ends_well() { # STATUS-FILE
	test "$(cat "$1")" = 0
}

for accel in $accels; do
	boot "$accel" "$(image shares)" '' || exit 1
	timeout 60 "$U" top "$target" -e "$elf" --json -n 5 -F 199 --rows 0 >"$T/json" 2>"$T/err"
	check "$accel: five snapshots" test "$(wc -l <"$T/json")" = 5
	check "$accel: shares are right" shares "$T/json"
	check "$accel: nothing to complain about" test ! -s "$T/err"
	timeout 60 "$U" top "$target" -e "$elf" --batch -n 2 --function app_main >"$T/text" 2>&1
	check "$accel: text has the functions and the calls" \
		sh -c "grep -q ' burn_a$' '$T/text' && grep -q '^calls of app_main$' '$T/text'"
	check "$accel: text is plain" plain "$T/text"
	check "$accel: two snapshots" test "$(grep -c snapshot "$T/text")" = 2
	(timeout 60 "$U" top "$target" -e "$elf" --batch -n 0 -i 0.2 2>"$T/err"; echo $? >"$T/st") |
		head -n 1 >/dev/null
	check "$accel: a reader that has enough is no failure" ends_well "$T/st"
	check "$accel: ... and nothing to talk about" test ! -s "$T/err"
	timeout -s INT 3 "$U" top "$target" -e "$elf" --batch -n 0 -i 0.5 >"$T/text" 2>"$T/err"
	check "$accel: Ctrl-C ends it well" test $? = 124 -a ! -s "$T/err" -a -s "$T/text"
	check "$accel: the guest runs on" beats
	(timeout 60 "$U" top "$target" -e "$elf" --json -n 0 -i 30 >"$T/json" 2>"$T/err"
		echo $? >"$T/st") &
	t=$!
	sleep 2
	end_guest
	wait $t
	check "$accel: a guest that ends is said to have, at once" \
		sh -c "test \"\$(cat '$T/st')\" = 0 && grep -q '\"ended\":true' '$T/json'"
done

boot tcg "$(image smp)" '' --smp 2 || exit 1
check "a replay to look at" "$U" record "$target" -e "$elf" -q -d 3 -F 49 \
	--save-replay "$T/smp.replay" -o "$T/smp.uniscope"
check "live guest: keys" python3 "$SRC/tests/e2e/top_screen.py" keys "$U" "$target" "$elf"
end_guest
for case in keys select pause sizes save signals suspend colour gone refused; do
	check "screen: $case" timeout 120 python3 "$SRC/tests/e2e/top_screen.py" "$case" "$U" \
		"replay:file=$T/smp.replay" "$elf"
done
finish
