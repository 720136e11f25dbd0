#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# compare.sh UNISCOPE SRCROOT MKSESSION: `uniscope diff` on files: verdicts, exit status, sides, what is refused. TAP.
set -u
U=$(realpath "$1") MKSESSION=$(realpath "$3")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
cd "$T" || exit 1
n=0
check() { # DESCRIPTION COMMAND...
	what=$1
	shift
	n=$((n + 1))
	if "$@" >log 2>&1; then echo "ok $n - $what"; else
		echo "not ok $n - $what"
		cut -c1-160 log | sed 's/^/# /' | head -20
	fi
}
# gives STATUS WORDS ARGS...: that exit status, and the words on stdout or stderr
gives() {
	status=$1 words=$2
	shift 2
	"$U" diff "$@" >out 2>err
	got=$?
	cat out err
	echo "status $got"
	[ $got -eq "$status" ] && cat out err | grep -q -e "$words"
}

folded() { # NAME A B C: main;a and so on
	printf 'main;a %s\nmain;b;leaf %s\nmain;c %s\n' "$2" "$3" "$4" >"$1"
}
folded old 3000 5000 2000
folded new 3400 4500 2100
folded same 3010 4985 2005
folded short 30 50 20
check 'a larger share is status 4' gives 4 '^larger share: a takes 34.0 % .*30.0 % before' old new
check 'and the row has the arithmetic of the two files' grep -q ' 30.00%   34.00%    +4.00 .*\* self   a$' out
check 'totals are there, too' grep -q ' 50.00%   45.00%    -5.00 .*\* total  b$' out
check 'the same is status 0' gives 0 '^the same: no function' old same
check 'nothing is listed then' sh -c '! grep -q BEFORE out'
check 'with --all everything is' gives 0 'total  main$' --all old same
check 'the sides may be exchanged' gives 4 'leaf takes 50.0 %' new old
check 'few samples cannot tell, and it says how many would' gives 3 '^cannot tell: .*about [0-9,]* samples of each side' short short
check 'samples without times: it says that they count as independent' gives 0 'taken as independent' old same
check 'three runs of each side are compared as runs' gives 0 'after .*, 3 runs' old same old -- old same same
check 'two are not' sh -c '"$1" diff old same -- old same | grep -q "taken as independent"' sh "$U"
check 'a threshold hides smaller changes' gives 0 '^the same' --threshold 6 --tolerance 7 old new
printf 'main;a 3000\nmain;gone 5000\nmain;c.part.0 2000\n' >old2
printf 'main;a 3000\nmain;fresh 5000\nmain;c 2000\n' >new2
check 'a new function is shown' gives 4 '0.00%   50.00% .* fresh  (new)' old2 new2
check 'and one that is gone' grep -q ' gone  (gone)' out
check 'parts that compilers split off are their function' sh -c '! grep -q "  c" out'
check 'an import is the same as its file' sh -c '"$1" import old -o old.uniscope >no && "$1" diff --all --json old.uniscope new >a.json
	"$1" diff --all --json old new >b.json; sed -i "/\"old/d" a.json b.json; cmp a.json b.json' sh "$U"

"$MKSESSION" "$T/s.uniscope" 3000 2 || exit 1
check 'a session is compared by blocks of time' gives 0 ', 32 blocks of time' s.uniscope s.uniscope
check 'by wall time, idle and stolen time are functions' gives 0 'self   \[stolen\]' --of wall --all s.uniscope s.uniscope
check 'VM exits can be compared' gives 0 '299 exits' --of exits s.uniscope s.uniscope
check 'the same input gives the same bytes' sh -c '"$1" diff --json old s.uniscope >1; "$1" diff --json old s.uniscope >2; cmp 1 2' sh "$U"
check 'JSON: the shares of the table' sh -c '"$1" diff --json old new | python3 -c "
import json, sys
d = json.load(sys.stdin)
a = [f for f in d[\"functions\"] if f[\"name\"] == \"a\"][0][\"self\"]
assert d[\"verdict\"] == \"larger\" and a[\"changed\"] and abs(a[\"difference\"] - 0.04) < 1e-9
assert a[\"interval\"][0] < 0.04 < a[\"interval\"][1] and a[\"p\"] <= a[\"q\"] < 0.05"' sh "$U"

check 'a condition that fails is status 4' gives 4 '^failed: function a +2pp: a (self) +4.00' --fail-if 'function a +2pp' old new
check 'another function does not matter to it' gives 0 '^passed: function c +3pp: c' --fail-if 'function c +3pp' old new
check 'a limit within the interval is status 3' gives 3 '^cannot tell: function a +5pp: a' --fail-if 'function a +5pp' old new
check 'the worst of several conditions counts' gives 4 '^passed: function c' --fail-if 'function c* +3pp' --fail-if 'function ? +3pp' old new
check 'JSON has them' sh -c '"$1" diff --json --fail-if "function a +2pp" old new | python3 -c "
import json, sys
assert json.load(sys.stdin)[\"conditions\"] == [{\"condition\": \"function a +2pp\", \"result\": \"failed\", \"function\": \"a\"}]"' sh "$U"
check 'a total of unknown work cannot grow: a usage error' gives 2 'only shares can grow' --fail-if 'total +5%' old new
for condition in 'function a +2' 'function a 2pp' 'function +2pp' 'function a+2pp' 'a +2pp' 'function a +-2pp' 'function a +nanpp' ''; do
	check "the form of a condition is said for '$condition'" gives 2 "a condition is 'function GLOB" --fail-if "$condition" old new
done
check 'a limit below the threshold is refused' gives 2 'hides such changes' --fail-if 'function a +0.5pp' old new

check 'one side is a usage error' gives 2 'give OLD NEW' old
check 'three files without -- are one, too' gives 2 'give OLD NEW' old new same
check 'an unknown --of names those there are' gives 2 'time wall waiting exits' --of speed old new
check 'VM exits of a folded file: a usage error' gives 2 'for sessions' --of exits old new
check 'a file that is not there is status 1' gives 1 'nofile' old nofile
: >empty
check 'and so is one with nothing in it' gives 1 'empty' old empty
check 'a tolerance below the threshold makes no sense' gives 2 'at least --threshold' --tolerance 0.5 old new
echo "1..$n"
