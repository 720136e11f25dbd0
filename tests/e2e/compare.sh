#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# compare.sh UNISCOPE SRCROOT MKSESSION MKTRACE: `uniscope diff` on files: verdicts, exit status, sides, what is refused. TAP.
set -u
U=$(realpath "$1") SRC=$(realpath "$2") MKSESSION=$(realpath "$3") MKTRACE=$(realpath "$4")
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
printf 'main;one 4\nmain;two 1\n' >few
printf 'main;one 1\nmain;three 4\n' >other
check 'no share can have moved by more than 100 points' sh -c '"$1" diff --json --all --max 0 few other | python3 -c "
import json, sys
ends = [e for f in json.load(sys.stdin)[\"functions\"] for c in (\"self\", \"total\") for e in f[c][\"interval\"]]
print(ends)
assert min(ends) == -1 and max(ends) == 1"' sh "$U"
check 'samples without times: it says that they count as independent' gives 0 'taken as independent' old same
folded alike 2995 5010 1995
check 'three runs of each side are compared as runs' gives 0 'after .*, 3 runs' old same alike -- alike same old
check 'one file three times is one run' gives 2 'old is given twice on one side' old old old -- same
check 'by another name as well' sh -c 'ln -s old link; ln old hard; for name in link hard ./old; do
	"$1" diff same -- old $name 2>err; [ $? -eq 2 ] && grep -q "old and $name are the same recording" err || exit 1; done' sh "$U"
check 'on both sides it may be' gives 0 '^the same' old -- old
check 'two are not' sh -c '"$1" diff old same -- old same | grep -q "taken as independent"' sh "$U"
# The program is in a or in b for half a second, ten times; only its times tell that these are ten and not 5,000.
phases() { # NAME PHASES [joined]
	python3 - "$2" "${3-}" >"$1" <<'P'
import sys
lines = [(i / 1000, name) for i, name in enumerate(name for name in sys.argv[1] for _ in range(500))]
lines.append((len(lines) / 1000, "end"))
if sys.argv[2] == "joined":
    lines = lines[1::2] + lines[::2]
for at, name in lines:
    print(f"app  7/7  {1000 + at:.6f}:   1001001 cpu-clock:u: \n\t  401136 {name} (/app)\n\t  401200 main (/app)\n")
P
}
for of in timed joined; do
	phases p1.$of aabababbab $of
	phases p3.$of aaaaaaabab $of
done
check 'perf script: its times make blocks' gives 3 'p3.timed: 5,001 samples.* 128 blocks of time' p1.timed p3.timed
check 'nothing is sure of ten phases' grep -q '^cannot tell' out
check 'two outputs joined are put in order' sh -c '"$1" diff --json p1.timed p3.timed >1; "$1" diff --json p1.joined p3.joined | sed s/joined/timed/g >2; cmp 1 2' sh "$U"
# A boot of a tenth, and then what changes at random from one sample to the next.
booted() { # NAME SEED WEIGHT-OF-A
	python3 - "$2" "$3" >"$1" <<'P'
import random, sys
rng = random.Random(int(sys.argv[1]))
for i, name in enumerate(["boot"] * 500 + rng.choices("abcd", [int(sys.argv[2]), 30, 20, 20], k=4500)):
    print(f"app  7/7  {1000 + i / 1000:.6f}:   1001001 cpu-clock:u: \n\t  401136 {name} (/app)\n\t  401200 main (/app)\n")
P
}
booted boot1 1 30 && booted boot2 2 60
check 'a boot: what to leave out is said, and no number of samples' gives 3 '^cannot tell: .*; the first 1[0-9] % are another phase than the rest: leave that out$' boot1 boot2
check 'ten phases are none at the begin' sh -c '"$1" diff p1.timed p3.timed | grep -q "samples of each side would tell"' sh "$U"
sed 's/^app /slow /' p1.timed >p1.slow
check 'a program of another name: nothing is new' sh -c '"$1" diff --all p1.timed p1.slow >out; grep -q " a$" out && ! grep -q "(new)\|(gone)\| app$" out' sh "$U"
# Stacks of nanoseconds, as our own export writes those of perf script.
"$U" export -f folded -o n1.folded p1.timed 2>no
check 'folded nanoseconds: a period is one sample' gives 0 'n1.folded: 5,001 samples' n1.folded n1.folded
printf 'main;a 300000001\nmain;b 700000002\n' >huge1
printf 'main;a 310000003\nmain;b 690000001\n' >huge2
check 'nor are values that no number of samples has' gives 3 'not known' huge1 huge2
bytes() { # NAME A B
	printf '{"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "main"}, {"name": "a"}, {"name": "b"}]},
"profiles": [{"type": "sampled", "name": "heap", "unit": "bytes", "startValue": 0, "endValue": 1, "samples": [[0, 1], [0, 2]], "weights": [%s, %s]}]}' "$2" "$3" >"$1"
}
bytes heap1.json 4096 8192
bytes heap2.json 8192 8192
check 'bytes are no time, and no samples' gives 3 '^before   heap1.json: 12,288 bytes$' heap1.json heap2.json
check 'and named as what they are' sh -c 'grep -q "^100 %    all bytes, of each side by itself$" out && ! grep -q "time\|samples" out' sh
check 'JSON says what was counted' sh -c '"$1" diff --json heap1.json heap2.json | grep -qx "  .counted.: .bytes.," && "$1" diff --json old new | grep -qx "  .counted.: .time.,"' sh "$U"
check 'bytes and samples are no pair' gives 1 'old holds samples, and the file before it bytes: only like' heap1.json old
# Our own pprof of 999 Hz. And such as Go's, whose stacks here are multiples of 1,000 samples of 10 ms.
for name in p1 p3; do "$U" export -o $name.pb.gz $name.timed 2>no; done
check 'pprof says how many samples there were' gives 4 '^before   p1.pb.gz: 5,001 samples' p1.pb.gz p3.pb.gz
gopprof() { # NAME TYPES VALUES-OF-A VALUES-OF-B
	python3 - "$@" <<'P'
import gzip, sys
def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
def field(number, data):
    return varint(number << 3) + varint(data) if isinstance(data, int) else varint(number << 3 | 2) + varint(len(data)) + data
def pair(a, b):
    return field(1, a) + field(2, b)
strings = [b"", b"cpu", b"nanoseconds", b"samples", b"count", b"a", b"b"]
out = b"".join(field(1, pair(3, 4) if t == "samples" else pair(1, 2)) for t in sys.argv[2].split(","))
for place, values in enumerate(sys.argv[3:5], 1):
    out += field(2, field(1, varint(place)) + field(2, b"".join(varint(int(v)) for v in values.split(","))))
    out += field(4, field(1, place) + field(4, field(1, place))) + field(5, pair(place, place + 4))
out += field(11, pair(1, 2)) + field(12, 10000000) + field(14, 1) + b"".join(field(6, s) for s in strings)
open(sys.argv[1], "wb").write(gzip.compress(out))
P
}
gopprof go1 samples,cpu 4000,40000000000 6000,60000000000
gopprof go2 cpu 40000000000 60000000000
gopprof go3 cpu,samples 40000000000,3000 60000000000,5000
check 'with its own column of samples' gives 0 '^before   go1: 10,000 samples' go1 go1
check 'also behind the column that is shown' gives 0 '^before   go3: 8,000 samples' go3 go3
check 'or by its period' gives 0 '^before   go2: 10,000 samples' go2 go2
# The same guest with other names of two functions, whose code is the same.
renamed() {
	tar xf "$SRC/tests/golden/recorded/recorded.tar.xz" demo.elf demo.replay &&
		objcopy --redefine-sym json_string=json_text --redefine-sym checksum_update=sum_up demo.elf after.elf || return 1
	for e in demo after; do
		"$U" record replay:file=demo.replay,once=1 -e $e.elf -F 50 -q -o $e.uniscope || return 1
	done
}
check 'a guest whose functions have new names' renamed
check 'a part of the time is said as that' gives 3 'demo.uniscope: [12] samples\? in 0.0 s' --to 0.02 demo.uniscope demo.uniscope
check 'and named' grep -q '^part     0 s to 0.02 s only$' out
printf 'main;a 1\n' >lone
check 'one sample is no samples' gives 3 'lone: 1 sample, ' lone lone
check 'renamed functions are matched by their code' gives 3 'checksum_update  (the same code is sum_up after)' --all demo.uniscope after.uniscope
check 'so nothing is new or gone' sh -c '! grep -q "(new)\|(gone)" out && grep -q "json_string  (the same code is json_text after)" out'
check 'a condition knows both names' gives 3 '^cannot tell: function sum_up +2pp: checksum_update' --fail-if 'function sum_up +2pp' demo.uniscope after.uniscope
check 'JSON has both names' sh -c '"$1" diff --json --all demo.uniscope after.uniscope | grep -A1 "name.: .checksum_update" | grep -q "new_name.: .sum_up"' sh "$U"
check 'the tree has the new name for both' sh -c '"$1" diff --tree demo.uniscope after.uniscope >out; grep -q "50.00%  *50.00%  *+0.00 .*sum_up" out && ! grep -q -- "- checksum_update" out' sh "$U"
check 'so has the picture' sh -c '"$1" diff -o d.svg demo.uniscope after.uniscope >out; grep -q "<title>sum_up .*before 50" d.svg && ! grep -q "<title>checksum_update" d.svg' sh "$U"
rm -f after.elf
check 'without the image they are new and gone' gives 3 'sum_up  (new)' --all demo.uniscope after.uniscope
check 'a threshold hides smaller changes' gives 0 '^the same' --threshold 6 --tolerance 7 old new
printf 'main;a 3000\nmain;gone 5000\nmain;c.part.0 2000\n' >old2
printf 'main;a 3000\nmain;fresh 5000\nmain;c 2000\n' >new2
check 'a new function is shown' gives 4 '0.00%   50.00% .* fresh  (new)' old2 new2
check 'and one that is gone' grep -q ' gone  (gone)' out
check 'parts that compilers split off are their function' sh -c '! grep -q "  c" out'
check 'an import is the same as its file' sh -c '"$1" import old -o old.uniscope >no && "$1" diff --all --json old.uniscope new >a.json
	"$1" diff --all --json old new >b.json; sed -i "/\"old/d" a.json b.json; cmp a.json b.json' sh "$U"

"$MKSESSION" "$T/s.uniscope" 3000 2 || exit 1
cp -r s.uniscope copy.uniscope
check 'nor is a copy of a session another run' gives 2 's.uniscope and copy.uniscope are the same recording' s.uniscope copy.uniscope -- s.uniscope
check 'a session is compared by blocks of time' gives 0 ', 128 blocks of time' s.uniscope s.uniscope
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
check 'a name that no function has is told' gives 0 '^passed: function nosuch. +3pp: no function of these recordings has such a name' \
	--fail-if 'function nosuch* +3pp' old new
check 'the worst of several conditions counts' gives 4 '^passed: function c' --fail-if 'function c* +3pp' --fail-if 'function ? +3pp' old new
check 'JSON has them' sh -c '"$1" diff --json --fail-if "function a +2pp" old new | python3 -c "
import json, sys
assert json.load(sys.stdin)[\"conditions\"] == [{\"condition\": \"function a +2pp\", \"result\": \"failed\", \"function\": \"a\", \"functions_named\": 1}]"' sh "$U"
check 'a total of unknown work cannot grow: a usage error' gives 2 'only shares can grow' --fail-if 'total +5%' old new

check 'the tree marks functions that changed' gives 4 ' -5.00 .* b [*]$' --tree old new
check 'and no other' sh -c 'grep -q " a [*]$" out && ! grep -q " c [*]$\| main [*]$" out'
check 'a flame graph is drawn' gives 4 '^larger share' -o d.svg old new
check 'it names both sides, and the verdict' sh -c 'grep -q "new, compared with old: orange takes more, blue less<" d.svg && grep -q "larger share: a takes 34.0 %" d.svg'
long=$(printf '%090d' 0)
cp old "$long" && cp new "new$long"
fits() {
	"$U" diff -o long.svg "$long" "new$long" >no
	python3 - long.svg <<'P'
import re, sys
size, text = re.search(r'<text id="title"[^>]* font-size="([\d.]+)">(.*?)</text>', open(sys.argv[1]).read()).groups()
print(size, text)
assert len(text) > 200 and 6 <= float(size) and len(text) * float(size) * 0.59 <= 1180.1
P
}
check 'long names are smaller, and fit' fits
check 'its cards have both shares' grep -q '<title>a (3,400 samples, 34.00%; before 30.00%; the function changed)' d.svg
check 'only functions that changed have a colour' python3 - d.svg <<'P'
import re, sys
fill = {}
for title, colour in re.findall(r"<title>([a-z]+) .*?</title>.*?fill=\"([^\"]*)\"", open(sys.argv[1]).read(), re.S):
    fill[title] = colour
print(fill)
rgb = {name: [int(x) for x in re.findall(r"\d+", colour)] for name, colour in fill.items()}
assert rgb["main"] == rgb["c"] == rgb["all"] == [255, 255, 255]
assert rgb["a"][0] > rgb["a"][2] + 30 and rgb["b"][2] > rgb["b"][0] + 30 and rgb["leaf"][2] > rgb["leaf"][0] + 30
P
check 'nothing changed: nothing has a colour' sh -c '"$1" diff -o e.svg old same >no && grep -q "<rect.*rgb(255,255,255)" e.svg && ! grep "<rect" e.svg | grep -v "rgb(255,255,255)" | grep -q "rgb("' sh "$U"
printf 'main;a;leaf 3000\nmain;b;leaf 3000\nmain;c 4000\n' >apart1
printf 'main;a;leaf 4400\nmain;b;leaf 2400\nmain;c 3200\n' >apart2
check 'a function moves apart below two callers' gives 4 '^larger share: leaf takes 68.0 %' -o f.svg apart1 apart2
check 'where it moved against the whole, it has no colour' python3 - f.svg <<'P'
import re, sys
leaf = dict(re.findall(r"<title>leaf \(([0-9,]*) samples.*?</title>.*?fill=\"rgb\(([^\"]*)\)\"", open(sys.argv[1]).read(), re.S))
print(leaf)
red, _, blue = map(int, leaf["4,400"].split(","))
assert leaf["2,400"] == "255,255,255" and red > blue + 30
P
check 'other endings are refused' gives 2 'FILE.html for a page' -o d.png old new
check 'the tree is no JSON' gives 2 'leave out --tree' --tree --json old new

# Recordings of one command: with the samples of the made-up session, 822 to 846 before, and 985 to 1013 after.
made() { # COMMAND STATUS NAME SAMPLES
	"$MKSESSION" "$T/$3.uniscope" "$4" 2 || exit 1
	python3 - "$3.uniscope/session.json" "$1" "$2" <<'P'
import json, sys
name, command, status = sys.argv[1:]
s = json.load(open(name))
s["work"] = {"command": command, "begin_ns": 0, "end_ns": 1 << 62, "status": int(status)}
json.dump(s, open(name, "w"))
P
}
for i in 1 2 3; do
	made 'load -n 100' 0 o$i $((3000 + 30 * i))
	made 'load -n 100' 0 n$i $((3600 + 30 * i))
done
made 'load -n 100' 3 failed 3630
made 'load -n 200' 0 other 3630
olds='o1.uniscope o2.uniscope o3.uniscope' news='n1.uniscope n2.uniscope n3.uniscope'
check 'runs of one command: it became slower' gives 4 '^slower: +19.5 % of .* per run (95 %' $olds -- $news
check 'what of it took more is listed' grep -q '[*] self   .unknown.$' out
check 'and faster the other way round' gives 0 '^faster: -16.3 %' $news -- $olds
made 'load -n 100' 0 w1 11000 && made 'load -n 100' 0 w2 19000 && made 'load -n 100' 0 w3 15000
check 'a large change of few uneven runs: a few more would tell' gives 3 '^cannot tell: +[0-9.]* % .* per run (95 %: +.*; about [4-9] runs of each side would tell' $olds -- w1.uniscope w2.uniscope w3.uniscope
check 'the total has conditions' gives 4 '^failed: total +10%: +19.5' --fail-if 'total +10%' $olds -- $news
check 'which hold' gives 0 '^passed: total +40%' --fail-if 'total +40%' $olds -- $news
check 'JSON has the total' sh -c '"$1" diff --json o[123].uniscope -- n[123].uniscope | python3 -c "
import json, sys
d = json.load(sys.stdin)
t = d[\"total\"][\"relative\"]
assert d[\"verdict\"] == \"slower\" and d[\"per\"] == \"run\" and abs(t[\"difference\"] - 0.196) < 0.01
assert t[\"interval\"][0] < t[\"difference\"] < t[\"interval\"][1]"' sh "$U"
check 'with one recording each, shares are compared, and it says why' gives 0 'give 3 recordings of each side' o1.uniscope n1.uniscope
check 'so are they if a command failed' gives 0 'share of the guest' $olds -- n1.uniscope n2.uniscope failed.uniscope
check 'or if another one ran' gives 0 'share of the guest' $olds -- n1.uniscope n2.uniscope other.uniscope
check 'the user may say that all did the same' gives 4 '^slower: .* per run' --per run $olds -- n1.uniscope n2.uniscope other.uniscope
"$MKTRACE" t1.uniscope 20000 1 work 1 && "$MKTRACE" t2.uniscope 20000 1 work 2 || exit 1
calls() { "$U" trace report --json "$1" | python3 -c 'import json, sys
print(sum(f["calls"] for f in json.load(sys.stdin)["functions"] if f["function"] == sys.argv[1]))' "$2"; }
check 'traces are compared by the time in functions' gives 3 'of the time in traced\|100 %    the time in traced functions' t1.uniscope t2.uniscope
check 'or per call, of which there are as many as trace report has' gives 3 "$(calls t1.uniscope sort) times 'call of sort'" --per 'call sort' t1.uniscope t2.uniscope
check 'or by the number of calls' gives 3 'all calls of functions' --of calls t1.uniscope t2.uniscope
"$MKTRACE" t3.uniscope 20000 1 slow 3 || exit 1
check 'each function by its own calls: one became slower' gives 4 '^slower: a call of compare takes ' --per call t1.uniscope t3.uniscope
check 'it is said that the host is not known' grep -q '^note     it is not known how long the host ran something else' out
check 'only that one is listed' sh -c '[ "$(grep -c "[*] self" out)" = 1 ] && ! grep -q "[*] total" out'
check 'and faster the other way round' gives 0 '^faster: a call of compare takes ' --per call t3.uniscope t1.uniscope
check 'its time does not matter to numbers of calls' sh -c '"$1" diff --of calls t1.uniscope t3.uniscope >out; grep -q "^100 %" out && ! grep -q "the host" out' sh "$U"
hosted() { # TRACE ON-NS READY-NS NEW
	cp -r "$1" "$4" && sed -i "s/^        \"tsc_hz\"/        \"host_on_ns\": $2, \"host_ready_ns\": $3,\n&/" "$4/session.json"
}
hosted t1.uniscope 1000000000 0 q1.uniscope && hosted t3.uniscope 1000000000 100000 q3.uniscope &&
	hosted t1.uniscope 500000000 500000000 b1.uniscope && hosted t3.uniscope 700000000 300000000 b3.uniscope || exit 1
check 'on an idle host it became slower as well' gives 4 '^slower: a call of compare takes ' --per call q1.uniscope q3.uniscope
check 'and nothing is said of the host' sh -c '! grep -q "the host" out'
check 'on a busy host nobody can tell' gives 3 '^cannot tell: .*; the host was busy: trace on an idle one' --per call q1.uniscope b3.uniscope
check 'how busy it was is said' grep -q '^note     the host ran something else for 0.0 % of the guest.s time before, 30.0 % after: ' out
check 'nor the other way round' gives 3 '^cannot tell: .*; the host was busy' --per call b3.uniscope q1.uniscope
check 'a condition cannot tell either' gives 3 '^cannot tell: function comp. +20%: compare (self) +' --per call --fail-if 'function comp* +20%' q1.uniscope b3.uniscope
check 'nor shares' gives 3 '^cannot tell: .*; the host was busy' b1.uniscope b3.uniscope
check 'the ends are those of all of the time or none' sh -c '"$1" diff --json --max 0 --per call q1.uniscope q3.uniscope >q.json; "$1" diff --json --max 0 --per call b1.uniscope b3.uniscope >b.json
	python3 -c "
import json
q, b = (json.load(open(n)) for n in (\"q.json\", \"b.json\"))
assert q[\"before\"][\"stolen\"] == 0 and b[\"before\"][\"stolen\"] == 0.5 and b[\"after\"][\"stolen\"] == 0.3
quiet, busy = ([f[\"self\"] for f in d[\"functions\"] if f[\"name\"] == \"compare\"][0][\"interval\"] for d in (q, b))
print(quiet, busy)
assert abs((1 + busy[0]) - (1 + quiet[0]) * 0.7) < 0.001 and abs((1 + busy[1]) - (1 + quiet[1]) / 0.5) < 0.001"' sh "$U"
check 'times per call are those of trace report, as far as there are enough' sh -c '"$1" diff --per call --json --max 0 t1.uniscope t3.uniscope >d.json
	for side in 1 3; do "$1" trace report -n 0 --json t$side.uniscope >r$side.json; done; python3 -c "
import json
old, new = ({f[\"function\"]: f for f in json.load(open(n))[\"functions\"]} for n in (\"r1.json\", \"r3.json\"))
rows = {f[\"name\"]: f for f in json.load(open(\"d.json\"))[\"functions\"]}
for name in (\"fib\", \"sort\", \"compare\"):
    for side, of in (\"before\", old), (\"after\", new):
        assert abs(rows[name][\"self\"][side] * 1e9 - of[name][\"self_ns\"] / of[name][\"calls\"]) < 0.01, (name, rows[name], of[name])
s = rows[\"compare\"][\"self\"]
assert s[\"interval\"][0] < 6 / (s[\"before\"] * 1e9) < s[\"interval\"][1], s
assert not rows[\"array\"][\"self\"][\"tested\"], rows[\"array\"]"' sh "$U"
check 'a condition of a call is in percent' gives 4 '^failed: function comp. +20%: compare (self) +' --per call --fail-if 'function comp* +20%' t1.uniscope t3.uniscope
check 'another function does not matter to it' gives 0 '^passed: function fib +20%' --per call --fail-if 'function fib +20%' t1.uniscope t3.uniscope
check 'not in points' gives 2 'grows by +NUMBER%' --per call --fail-if 'function fib +20pp' t1.uniscope t3.uniscope
check 'nor shares in percent' gives 2 'shares grow by +NUMBERpp' --fail-if 'function a +20%' old new
check 'samples have no calls' gives 1 'needs a function trace' --per call s.uniscope s.uniscope
check 'only times go with it' gives 2 'not with --of calls' --per call --of calls t1.uniscope t3.uniscope
check 'a trace and samples are no pair' gives 1 'only like can be compared' t1.uniscope s.uniscope
sed 's/"status": 3/"status": -3/' failed.uniscope/session.json >bad && cp bad failed.uniscope/session.json
check 'work that makes no sense is refused' gives 1 'member "work" makes no sense' s.uniscope failed.uniscope
check '--per run needs several' gives 2 'at least 3 recordings of each side' --per run o1.uniscope n1.uniscope
check 'VM exits as work: as many times as there are' gives 3 "111,000 times 'exit io\*'" --per 'exit io*' s.uniscope s.uniscope
check 'no such exit is status 1' gives 1 "has no VM exit 'nothing'" --per 'exit nothing' s.uniscope s.uniscope
check 'work is of four kinds' gives 2 "it is 'run', 'call' " --per requests s.uniscope s.uniscope
check 'folded stacks have no rate' gives 1 'rate of samples' --per run old same alike -- alike same old
for condition in 'function a +2' 'function a 2pp' 'function +2pp' 'function a+2pp' 'a +2pp' 'function a +-2pp' 'function a +nanpp' ''; do
	check "the form of a condition is said for '$condition'" gives 2 "a condition is 'function GLOB" --fail-if "$condition" old new
done
check 'a limit below the threshold is refused' gives 2 'hides such changes' --fail-if 'function a +0.5pp' old new
check 'a limit above all is refused' gives 2 'no share grows by more than 100' --fail-if 'function * +200pp' old new
check 'of the total, too' gives 2 'hides such changes' --fail-if 'total +0.5%' old new
check 'the total has no points' gives 2 "a condition is 'function GLOB" --fail-if 'total +5pp' old new

check 'one side is a usage error' gives 2 'give OLD NEW' old
check 'three files without -- are one, too' gives 2 'give OLD NEW' old new same
check 'an unknown --of names those there are' gives 2 'time wall waiting exits calls' --of speed old new
check 'VM exits of a folded file: a usage error' gives 2 'for sessions' --of exits old new
check 'a file that is not there is status 1' gives 1 'nofile' old nofile
: >empty
check 'and so is one with nothing in it' gives 1 'empty' old empty
check 'a tolerance below the threshold makes no sense' gives 2 'at least --threshold' --tolerance 0.5 old new
echo "1..$n"
