#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# exchange.sh UNISCOPE SRCROOT MKSESSION: what is exported is read back by others' programs
# (protoc, callgrind_annotate, npm's pprof-format, speedscope's schema) and by the formats' own
# descriptions, with equal totals for each stack; and what we import gives the same again. TAP.
set -u
U=$(realpath "$1") SRC=$2 MKSESSION=$(realpath "$3")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
cd "$T" || exit 1
READ=$SRC/tests/e2e/exchange/read.py
export PYTHONDONTWRITEBYTECODE=1
n=0
check() { # DESCRIPTION COMMAND...: ok when the command succeeds
	what=$1
	shift
	n=$((n + 1))
	if "$@" >log 2>&1; then echo "ok $n - $what"; else
		echo "not ok $n - $what"
		cut -c1-160 log | sed 's/^/# /' | head -20
	fi
}
skip() { # DESCRIPTION REASON
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}
# sum FOLDED: stacks of the same names added up, three decimals, as read.py prints them.
sum() {
	awk '{ v = $NF; sub(/ [0-9.]+$/, ""); s[$0] += v }
		END { for (k in s) printf "%s %.3f\n", k, s[k] }' "$1" | LC_ALL=C sort
}
# back FORMAT SOURCE PERIOD_NS [OPTION...]: exported, then read by its description.
back() {
	format=$1 source=$2 period=$3
	shift 3
	rm -rf out
	"$U" export "$source" -f "$format" -o out "$@" 2>err || { cat err; return 1; }
	python3 "$READ" "$format" out "$period" >got || return 1
	LC_ALL=C sort got >got.sorted
	diff want got.sorted && [ -s want ]
}

"$MKSESSION" "$T/s.uniscope" 3000 2 || exit 1
"$U" export "$T/s.uniscope" -f folded -o s.folded 2>err
check "what folded stacks have no place for is said" grep -q 'not in the format folded: times' err
sum s.folded >want
for format in speedscope firefox perf chrome fxt; do
	check "a session as $format: every stack, every weight" back "$format" "$T/s.uniscope" 1000
done
if command -v protoc >/dev/null; then
	for format in pprof perfetto; do
		check "a session as $format, decoded by protoc" back "$format" "$T/s.uniscope" 1
	done
else
	skip "pprof and Perfetto" "no protoc on this machine"
fi
python3 "$READ" leaves s.folded >leaves
cp leaves want
if command -v callgrind_annotate >/dev/null; then
	check "a session as callgrind, by callgrind_annotate" back callgrind "$T/s.uniscope" 1
else
	skip "callgrind" "no callgrind_annotate on this machine"
fi

# Profiles without times: as much of them as a format holds.
printf '%s\n' 'main;work;leaf 30' 'main;work 10' 'main;std::map<int, T&>::find(int const&) 20' \
	'other;leaf 5' 'other;a (b);c [d] 35' '[idle] 7' >names.folded
sum names.folded >want
for format in speedscope perf firefox chrome; do
	check "folded stacks as $format" back "$format" names.folded \
		"$([ "$format" = chrome ] && echo 1000 || echo 1)"
done
command -v protoc >/dev/null && check "folded stacks as pprof" back pprof names.folded 1
command -v protoc >/dev/null && check "folded stacks as perfetto" back perfetto names.folded 1
"$U" export names.folded -f chrome -o out 2>err
check "made-up times are said to be that" grep -q 'there are no times' err


# npm's readers, kept where the next run finds them.
modules=${XDG_CACHE_HOME:-$HOME/.cache}/uniscope-tests/npm-1/node_modules
if [ ! -d "$modules" ] && command -v npm >/dev/null; then
	mkdir npm && (cd npm && timeout 180 npm install --no-audit --no-fund --ignore-scripts \
		pprof-format@2 speedscope@1 ajv@8 >npm.log 2>&1) &&
		mkdir -p "${modules%/npm-1/*}" && mv npm "${modules%/node_modules}" 2>/dev/null
fi
sum names.folded >want
npm_pprof() {
	"$U" export names.folded -f pprof -o out &&
		node "$SRC/tests/e2e/exchange/npm.js" "$modules" pprof out >got && LC_ALL=C sort got |
		diff want -
}
npm_schema() {
	"$U" export "$1" -f speedscope -o out &&
		node "$SRC/tests/e2e/exchange/npm.js" "$modules" speedscope out
}
if command -v node >/dev/null && [ -d "$modules" ]; then
	check "pprof, read by npm's pprof-format" npm_pprof
	check "speedscope's schema: a session" npm_schema "$T/s.uniscope"
	check "speedscope's schema: folded stacks" npm_schema names.folded
else
	skip "npm's pprof-format and speedscope's schema" "no node, or npm could not fetch them"
fi

# What we read: our own exports come back, and other tools' outputs.
again() { # FORMAT SED-SCRIPT
	"$U" export names.folded -f "$1" -o again 2>/dev/null && "$U" export again -f folded |
		sed "$2" >got && sum got | diff want -
}
check "folded stacks come back from pprof" again pprof ''
check "folded stacks come back from speedscope" again speedscope ''
check "folded stacks come back from perf script text" again perf 's/^profile;//'
session_again() {
	"$U" export "$T/s.uniscope" -f "$1" -o again 2>/dev/null && "$U" export again -f folded |
		sed 's/^[^;]*vcpu-made-up;//' >got &&
		awk -v by="$2" '{ s += $NF / by } END { printf "%d\n", s }' got >total.got &&
		awk '{ s += $NF } END { print s }' s.folded | diff - total.got
}
check "a session's weights come back from pprof, as ns" session_again pprof 1000
check "a session's weights come back from speedscope, as ns" session_again speedscope 1000
check "a session's weights come back from perf script text, as ns" session_again perf 1000
is() { # FILE: standard input, byte for byte
	cat >is.want
	diff -u is.want "$1"
}
cat >script <<'EOT'
# captured on: a machine
my prog 12/13 [001] 1.000000: 250000 cycles:u: 
	    4004f0 std::foo(int)+0x10 (/a/b)
	    4004e0 inner (inlined)
	    7f00 [unknown] (/usr/lib/libx.so)
	    7f01 [unknown] ([unknown])

swapper     0 [000] 2.500000:   1000 cycles:u: 
	ffffffff8106d200 idle+0x49 ([kernel.kallsyms])

swapper     0 [000] 2.600000: 1 page-faults: 
	ffffffff8106d200 idle+0x49 ([kernel.kallsyms])
EOT
perf_text() {
	"$U" export script -f folded >got 2>err && is got <<'EOT'
my_prog;[unknown];[libx.so];inner_[i];std::foo(int) 250000
swapper;idle 1000
EOT
}
check "perf script text: names, inlined, unknown, kernel" perf_text
check "samples of another event are told" grep -q '1 samples are of other events than the first' err
evented() {
	"$U" export "$SRC/fuzz/corpus/speedscope/evented" -f folded >got 2>err && is got <<'EOT'
a 7
a;b 3
EOT
}
check "speedscope's evented profiles: time with a stack open" evented
check "profiles in another unit are told" grep -q 'another unit' err
mirage() {
	"$U" export "$SRC/fuzz/corpus/mirage/two" -f folded >got 2>err && is got <<'EOT'
[gc] 3
[sleep] 16
tcp 14
thread 3
EOT
}
check "Mirage: what ran, and what paused" mirage
cat >graph <<'EOT'
# tracer: function_graph
 0)               |  main() {
 0)   0.071 us    |    leaf();
 0)               |    a() {
 0)   0.071 us    |      a();
 0) ! 208.173 us  |    } /* a */
 0) # 1000.000 us |  } /* main */
EOT
uftrace_back() {
	"$U" export graph -f uftrace -o d && "$U" export d -f folded >got && is got <<'EOT'
main 791756
main;a 208102
main;a;a 71
main;leaf 71
EOT
}
check "uftrace: a folder comes back" uftrace_back
uftrace_real() {
	printf '%s\n' '__attribute__((noinline)) int leaf(int n) { volatile int s = 0;' \
		'for (int i = 0; i < n; i++) s += i; return s; }' \
		'int main(void) { int s = 0; for (int i = 0; i < 20; i++) s += leaf(i * 99); return s & 1; }' \
		>p.c && gcc -O1 -pg p.c -o p && { timeout 60 uftrace record -d real --no-libcall ./p; true; } &&
		"$U" export real -f folded >got && uftrace report -d real -f self --sort-column=0 >report
	ours=$(awk '/;leaf /{ print $NF }' got) theirs=$(awk '$NF == "leaf" { print $1, $2 }' report)
	echo "ours $ours theirs $theirs"
	[ -n "$ours" ] && python3 -c "import sys
ours, value, unit = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
assert abs(ours / {'ns': 1, 'us': 1e3, 'ms': 1e6}[unit] - value) < 0.0011" "$ours" $theirs
}
if command -v uftrace >/dev/null && command -v gcc >/dev/null; then
	check "uftrace record's folder, with the times of uftrace report" uftrace_real
else
	skip "a folder of uftrace record" "no uftrace, or no gcc on this machine"
fi
slices() {
	"$U" export graph -f perfetto -o out && python3 "$READ" perfetto out >got && is got <<'EOT'
slice a 208244.000
slice leaf 71.000
slice main 1000000.000
EOT
}
command -v protoc >/dev/null && check "calls as Perfetto's slices" slices
one_line() { # FILE WORDS: export fails, with one line that has them
	! "$U" export "$1" -f folded >/dev/null 2>err && [ "$(wc -l <err)" = 1 ] && grep -q "$2" err
}
"$U" export names.folded -f pprof -o whole && head -c 60 whole >cut
check "a cut gzip" one_line cut 'gzip is damaged, cut short'
printf '\037\213garbage' >bad
check "no gzip at all" one_line bad 'gzip is damaged'
echo '{"$schema":"https://www.speedscope.app/file-format-schema.json"' >cut.json
check "cut JSON" one_line cut.json 'no JSON: line'
mkdir nothing
check "a folder that is nothing" one_line nothing 'is no session'
mkdir rec && cp d/* rec/ && printf 'xxxxxxxxxxxxxxxx' >>"$(ls rec/[0-9]*.dat | head -1)"
check "damaged records of uftrace" one_line rec 'no record that can be read at byte'

# Comparing, and everything at once.
printf 'main;a 10\nmain;b 10\n' >before.folded
printf 'main;a 30\nmain;c 10\n' >after.folded
compare() {
	"$U" export --before before.folded after.folded -f folded >got && is got <<'EOT' &&
main;a 10 30
main;b 10 0
main;c 0 10
EOT
		"$U" export --normalize --before before.folded after.folded -f folded >got && is got <<'EOT'
main;a 20 30
main;b 20 0
main;c 0 10
EOT
}
check "two files compared, their totals alike or not" compare
red_blue() {
	"$U" export --before before.folded after.folded -f svg >a.svg &&
		grep -q 'a (30 samples, 75.00%; +50.00%).*rgb(255,0,0)' a.svg &&
		"$U" export --before before.folded after.folded -f svg -O diffcolors=orangeblue >b.svg &&
		grep -q 'a (30 samples, 75.00%; +50.00%).*rgb(213,94,0)' b.svg
}
check "drawn in red and blue, or safe for the colour-blind" red_blue
all() {
	"$U" export --all all "$T/s.uniscope" 2>err && LC_ALL=C ls all >got && is got <<'EOT' &&
profile.callgrind
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
		grep -q 'csv is left out' err && ! "$U" export --all all "$T/s.uniscope" 2>/dev/null
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
check "no such file of attributes" sh -c "! '$U' export time.folded -f svg -O nameattr=none 2>&1 >/dev/null | grep -v none"

echo "1..$n"
