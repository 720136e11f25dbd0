#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# exchange_forms.sh UNISCOPE SRCROOT MKSESSION MKTRACE
# Exports of two profiles that are compared, of everything at once, and of samples and calls together. Tables of functions.
# Files and orders of a flame graph. TAP.
set -u
U=$(realpath "$1") SRC=$2 MKSESSION=$(realpath "$3") MKTRACE=$(realpath "$4")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
cd "$T" || exit 1
n=0
# shellcheck source=tests/support/tap.sh
. "$SRC/tests/support/tap.sh"
is() { # FILE: standard input, byte for byte
	cat >is.want
	diff -u is.want "$1"
}

"$MKSESSION" s.uniscope 3000 2 && "$MKTRACE" t1.uniscope 2000 1 work 1 && "$MKTRACE" t2.uniscope 9000 1 work 2 || exit 1
"$U" export s.uniscope -f folded -o s.folded 2>err
printf '%s\n' 'main;work;leaf 30' 'main;work 10' 'main;std::map<int, T&>::find(int const&) 20' \
	'other;leaf 5' 'other;a (b);c [d] 35' '[idle] 7' >names.folded

# Comparing, and everything at once.
printf 'main;a 10\nmain;b 10\n' >before.folded
printf 'main;a 30\nmain;c 10\n' >after.folded
compare() {
	"$U" export --no-normalize --before before.folded after.folded -f folded >got && is got <<'EOT' &&
main;a 10 30
main;b 10 0
main;c 0 10
EOT
		"$U" export --before before.folded after.folded -f svg >got && grep -q '>after.folded, compared with before.folded<' got &&
		"$U" export --before before.folded after.folded -f folded >got && is got <<'EOT'
main;a 20 30
main;b 20 0
main;c 0 10
EOT
}
check "two files compared, their totals alike or not" compare
# Two traces without samples: their calls, each column as it is alone.
columns() { # BY
	"$U" export --no-normalize --calls="$1" --before t1.uniscope t2.uniscope -f folded >two 2>/dev/null &&
		sed 's/ [0-9]*$//' two | grep -v ' 0$' >old && sed 's/ [0-9]* \([0-9]*\)$/ \1/' two | grep -v ' 0$' >new || return 1
	for x in t1:old t2:new; do
		"$U" export --calls="$1" "${x%:*}.uniscope" -f folded 2>/dev/null | grep -v ' 0$' | LC_ALL=C sort >want.calls
		LC_ALL=C sort "${x#*:}" | diff - want.calls && [ -s want.calls ] || return 1
	done
}
compare_traces() {
	"$U" export --no-normalize --before t1.uniscope t2.uniscope -f folded >unasked 2>err && grep -q 'functions of their traces are compared' err &&
		columns count && columns time && diff two unasked &&
		"$U" report --html two.html --before t1.uniscope t2.uniscope 2>err && grep -q 'functions of their traces' err
}
check "two traces of calls compared, asked or not" compare_traces
# Each function's row has what the two traces have by themselves, the old one first; the greatest change is at the top.
report_before() {
	"$U" trace report -n 0 --before t1.uniscope t2.uniscope >two && "$U" trace report --json -n 0 t1.uniscope >a.json &&
		"$U" trace report --json -n 0 t2.uniscope >b.json && python3 - <<'PY'
import json, re
old, new = ({f["function"]: f for f in json.load(open(name))["functions"]} for name in ("a.json", "b.json"))
unit = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
time = r"(-|[+-]?[0-9.]+ [num]?s)"
row = re.compile(r" *(\d+) +(\d+) +" + " +".join([time] * 5) + r"  (\S.*)$")
ns = lambda text: 0 if text == "-" else float(text.split()[0]) * unit[text.split()[1]]
near = lambda got, want: abs(got - want) <= 0.001 * abs(want) + 1
seen, last = set(), None
for line in open("two").read().splitlines()[1:]:
    m = row.match(line)
    assert m, line
    name = m[8]
    a, b = old.get(name, {"calls": 0, "self_ns": 0}), new.get(name, {"calls": 0, "self_ns": 0})
    assert (int(m[1]), int(m[2])) == (a["calls"], b["calls"]), (line, a, b)
    assert near(ns(m[3]), a["self_ns"]) and near(ns(m[4]), b["self_ns"]), (line, a, b)
    change = b["self_ns"] - a["self_ns"]
    assert near(ns(m[5]), change), (line, change)
    assert last is None or abs(change) <= last, line
    last = abs(change)
    seen.add(name)
assert seen == old.keys() | new.keys() and len(seen) > 3, (seen, old.keys(), new.keys())
PY
}
check "trace report of two traces, each as it is alone" report_before
refused() { # ARGUMENT...: with one line
	"$U" "$@" >out 2>err
	[ $? -eq 1 ] && [ ! -s out ] && [ "$(grep -v 'hold no samples' err | wc -l)" -eq 1 ]
}
compare_apart() {
	refused export --before "$T/s.uniscope" t2.uniscope -f folded && refused export --before t2.uniscope "$T/s.uniscope" -f svg &&
		refused export --calls --before "$T/s.uniscope" t2.uniscope -f folded &&
		refused export --before t1.uniscope t2.uniscope -f nanos &&
		refused report --html no.html --before "$T/s.uniscope" t2.uniscope && [ ! -e no.html ]
}
check "samples and calls are not compared, nor shown as single calls" compare_apart
# A table of functions where there are no calls.
table() {
	printf '%s\n' 'main;f,"1" 30' 'main;=cmd() 10' 'main;f,"1";main 2' >table.folded
	"$U" export table.folded -f csv | tr -d '\r' >got && is got <<'EOT' &&
function,image,self,total
"f,""1""",,30,32
"'=cmd()",,10,10
main,,2,42
EOT
		"$U" export --no-normalize --before before.folded after.folded -f csv | tr -d '\r' >got && is got <<'EOT' &&
function,image,self before,self after,total before,total after
a,,10,30,10,30
b,,10,0,10,0
main,,0,0,20,40
c,,0,10,0,10
EOT
		"$U" export "$T/s.uniscope" -o functions.csv 2>err && grep -q 'not in the format csv: who called whom' err &&
		[ "$(awk -F, 'NR > 1 { s += $(NF - 1) } END { print s }' functions.csv)" = "$(awk '{ s += $NF } END { print s }' s.folded)" ] &&
		"$U" export --exits "$T/s.uniscope" -f csv 2>/dev/null | grep -q '^\[exit ' && "$U" export t1.uniscope -f csv | head -n 1 | grep -q tid
}
check "functions in CSV, of samples, exits and a comparison" table
red_blue() {
	"$U" export --no-normalize --before before.folded after.folded -f svg >a.svg &&
		grep -q 'a (30 samples, 75.00%; +50.00%).*rgb(255,0,0)' a.svg &&
		"$U" export --no-normalize --before before.folded after.folded -f svg -O diffcolors=orangeblue >b.svg &&
		grep -q 'a (30 samples, 75.00%; +50.00%).*rgb(213,94,0)' b.svg
}
check "drawn in red and blue, or safe for the colour-blind" red_blue
all() {
	"$U" export --all all "$T/s.uniscope" 2>err && LC_ALL=C ls all >got && is got <<'EOT' &&
profile.callgrind
profile.csv
profile.firefox.json
profile.folded
profile.fxt
profile.json
profile.pb.gz
profile.perf
profile.pftrace
profile.speedscope.json
profile.stacktrace
profile.svg
profile.trace.json
EOT
		grep -q 'nanos is left out' err && ! "$U" export --all all "$T/s.uniscope" 2>/dev/null
}
check "every format at once" all
suffix() {
	for f in x.pb.gz x.speedscope.json x.firefox.json x.pftrace x.callgrind; do
		"$U" export names.folded -o "$f" 2>/dev/null && cmp -s "$f" "all.n/profile.${f#x.}" || return 1
	done
}
"$U" export --all all.n names.folded 2>/dev/null
check "the longest end of a name chooses the format" suffix

# The flame graph's files and orders.
printf 'a;b 10\na;c 5\na 3\na;b 7\nd 5\n' >time.folded
titles() {
	"$U" export "$@" -f svg 2>err | sed -n 's/.*<title>\([^<]*\)<.*fg:x="\([^"]*\)".*/\2 \1/p'
}
chart() {
	titles time.folded -O flamechart >got && is got <<'EOT'
0 all (30 samples, 100%)
0 a (25 samples, 83.33%)
0 b (10 samples, 33.33%)
10 c (5 samples, 16.67%)
18 b (7 samples, 23.33%)
25 d (5 samples, 16.67%)
EOT
}
check "a flame chart: in the order of time, own time where it was" chart
check "a session's flame chart begins with its first sample" sh -c \
	"'$U' export '$T/s.uniscope' -f svg -O flamechart -O minwidth=0 | grep -c '<rect' | grep -qE '[0-9]{3}'"
lines() {
	printf 'a 100\na-x;c 100\na;b 100.4\n' >lines.folded
	titles lines.folded -O compat >got && is got <<'EOT'
0 all (300 samples, 100%)
0 a (100 samples, 33.29%)
100 a-x (100 samples, 33.29%)
100 c (100 samples, 33.29%)
200 a (100 samples, 33.29%)
200 b (100 samples, 33.29%)
EOT
}
check "compat: lines sorted as text, values rounded before their share is taken" lines
palette() {
	rm -f pal
	"$U" export time.folded -f svg -O cp=pal >a.svg && sed -i 's/^b->.*/b->rgb(1,2,3)/' pal &&
		"$U" export before.folded -f svg -O cp=pal >b.svg && grep -q 'b (10 .*rgb(1,2,3)' b.svg &&
		cut -d- -f1 pal >got && printf '%s\n' a b c d main | is got &&
		echo 'b->red"/><script>' >pal && ! "$U" export time.folded -f svg -O cp=pal >/dev/null
}
check "cp keeps colours from graph to graph" palette
attrs() {
	printf 'b\ttitle=A <b>\thref=https://x/?a=1&b=2\tclass=k\tid=one\tg_extra=data-x="1"\nc\tg_extra=><script>\n' >attrs
	"$U" export time.folded -f svg -O nameattr=attrs >a.svg &&
		grep -q '<g class="k" id="one" data-x="1"><a href="https://x/?a=1&amp;b=2" target="_top"><title>A &lt;b&gt;</title>.*</a></g>' a.svg &&
		! grep -q '<g><script>\|><script><title' a.svg && python3 -c "import sys, xml.dom.minidom
xml.dom.minidom.parse('a.svg')"
}
check "nameattr: titles, links and classes, and no markup" attrs
attrs_run() { # each of them a script, which nothing that was drawn may be
	printf '%s\t%b\n' b 'href= JavaScript:alert(1)' c 'href=java\001script:alert(2)' d 'href=data:text/html,x' \
		main 'g_extra=class="k" onclick="alert(4)"' a "href=https://x/data:\ta_extra=xlink:href='javascript:alert(5)'" \
		e 'g_extra=data-x="onclick=1"' f 'href=VBScript:x' g 'a_extra=x="' >attrs
	printf '%s 10\n' main a b c d e f g >eight.folded
	"$U" export eight.folded -f svg -O nameattr=attrs >a.svg 2>err && grep -q ' 7 links and extras of attrs would run' err &&
		! grep -qi '<[ag] [^>]*\(script:\|onclick="\|"data:\)' a.svg && grep -q 'href="https://x/data:" target="_top">' a.svg &&
		grep -q 'data-x="onclick=1"' a.svg && python3 -c "import xml.dom.minidom
xml.dom.minidom.parse('a.svg')"
}
check "nameattr: what would run a script is left out, and said" attrs_run
no_attrs() {
	"$U" export time.folded -f svg -O nameattr=none >no 2>err
	[ $? -eq 1 ] && [ ! -s no ] && [ "$(wc -l <err)" -eq 1 ] && grep -q none err
}
check "no such file of attributes" no_attrs

# Both: what a format leaves out of them is said in a line.
"$MKTRACE" both.uniscope 2000 2 work 1 70 || exit 1
left() { # FORMAT TEXT
	rm -rf out
	"$U" export both.uniscope -f "$1" -o out 2>err && grep -q "^uniscope: $1: the $2" err
}
check "speedscope of samples and a trace: the calls are not in it" \
	left speedscope "calls of the trace are not in it: --calls"
check "folded of samples and a trace" left folded "calls of the trace are not in it: --calls"
check "nanos of samples and a trace: the samples are not in it" \
	left nanos "70 samples of both.uniscope are not in it"
both() {
	"$U" export both.uniscope -f chrome -o out 2>err && ! grep -q 'not in it' err &&
		"$U" export --calls both.uniscope -f speedscope -o out 2>err && ! grep -q 'not in it' err &&
		"$U" export t1.uniscope -f nanos -o out 2>err && ! grep -q 'not in it' err
}
check "nothing is said where nothing is left out" both
# The same lines as the text has, in the same order.
graph() { # OPTION...
	"$U" trace graph --min 0 "$@" t1.uniscope | awk '$1 ~ /^[0-9]+$/ { print $1, $NF }' >want &&
		"$U" trace graph --min 0 --json "$@" t1.uniscope | python3 -c "import json, sys
d = json.load(sys.stdin)
for n in d.get('tree', d.get('callees', []) + d.get('callers', [])):
    print(n['calls'], n['function'])" >got && [ -s want ] && cmp want got
}
check "trace graph --json is the tree" graph
check "trace graph --json --function: callees and callers" graph --function value --depth 3

echo "1..$n"
