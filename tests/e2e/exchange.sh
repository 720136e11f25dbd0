#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# exchange.sh UNISCOPE SRCROOT MKSESSION MKTRACE: programs of others and the formats' own
# descriptions read our exports, with equal totals for each stack. The programs are protoc,
# callgrind_annotate, npm's pprof-format, and speedscope's schema. Files that we import give the
# same again. TAP.
set -u
U=$(realpath "$1") SRC=$2 MKSESSION=$(realpath "$3") MKTRACE=$(realpath "$4")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
cd "$T" || exit 1
. "$SRC/tests/support/can.sh"
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
"$MKTRACE" t1.uniscope 2000 1 work 1 && "$MKTRACE" t2.uniscope 9000 1 work 2 || exit 1
"$U" export "$T/s.uniscope" -f folded -o s.folded 2>err
check "what folded stacks have no place for is said" grep -q 'not in the format folded: times.*, VM exits' err
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
# VM exits go with the samples where the format has a place for them.
exits_of() { # FORMAT
	"$U" report --exits --json "$T/s.uniscope" >exits.json && "$U" export "$T/s.uniscope" -f "$1" -o out.exits &&
		python3 "$READ" "$1" out.exits 1 exits.json && rm out.exits
}
check "VM exits in firefox: markers of each vCPU, as many and as long" exits_of firefox
command -v protoc >/dev/null && check "VM exits in perfetto: slices of each vCPU" exits_of perfetto
# Two folded texts are compared in one tree, other formats in three.
compared() { # [OPTION]
	"$U" export --before names.folded other.folded -f folded -o got.two "$@" 2>/dev/null &&
		"$U" export names.folded -f speedscope -o a.speedscope.json && "$U" export other.folded -f speedscope -o b.speedscope.json &&
		"$U" export --before a.speedscope.json b.speedscope.json -f folded -o got.three "$@" 2>/dev/null &&
		"$U" export --before a.speedscope.json other.folded -f folded -o got.mixed "$@" 2>/dev/null &&
		diff got.two got.three && diff got.two got.mixed && [ "$(wc -l <got.two)" -eq 7 ]
}
printf '%s\n' 'main;work;leaf 3' 'other;leaf 50' 'new;one 4' 'main 1' >other.folded
printf '%s\n' 'main;work;leaf 30' 'main;work 10' 'other;leaf 5' 'other;a 35' '[idle] 7' >names.folded
check "a difference is the same by each way" compared
check "and with --normalize" compared --normalize
check "and without" compared --no-normalize
echo nothing >bad.folded
worse() {
	"$U" export --input-format folded --before bad.folded other.folded -f folded -o got.bad 2>err
	[ $? -eq 1 ] && [ "$(wc -l <err)" -eq 1 ]
}
check "a difference to what is no profile" worse
# Nothing was recorded: each format says that, or is an empty one of its kind.
"$MKSESSION" "$T/zero.uniscope" 0 1 || exit 1
zero() {
	"$U" export --all none "$T/zero.uniscope" >/dev/null && [ "$(ls none | wc -l)" -ge 10 ] || return 1
	for f in json speedscope.json firefox.json trace.json; do
		python3 -c 'import json, sys; json.load(open(sys.argv[1]))' none/profile.$f || return 1
	done
	for format in pprof:pb.gz perfetto:pftrace firefox:firefox.json speedscope:speedscope.json fxt:fxt chrome:trace.json perf:perf; do
		case $format in
		pprof:* | perfetto:*) command -v protoc >/dev/null || continue ;;
		esac
		python3 "$READ" ${format%%:*} none/profile.${format#*:} 1 >got && [ ! -s got ] || { echo "$format"; return 1; }
	done
	"$U" report --html none/page.html "$T/zero.uniscope"
}
check "no samples: every format, and the page" zero
nothing_to_compare() {
	! "$U" report --html two.html --before "$T/zero.uniscope" "$T/zero.uniscope" 2>err && grep -q 'holds samples to compare' err &&
		! "$U" export --before "$T/zero.uniscope" "$T/zero.uniscope" -f folded 2>err && grep -q 'holds samples to compare' err
}
check "two without samples are not compared" nothing_to_compare
# A session that was cut off: what is there is exported and is a page, and the rest is said.
cp -r "$T/s.uniscope" cut.uniscope
truncate -s "$(($(stat -c %s cut.uniscope/guest-0/samples-vcpu0) / 2 + 1))" cut.uniscope/guest-0/samples-vcpu0
cut_off() {
	"$U" report --html cut.html cut.uniscope 2>err && [ "$(wc -l <err)" -eq 1 ] && grep -q 'could not be read: the stream is damaged ([0-9]* torn packets)' err &&
		"$U" export --all cut.all cut.uniscope >/dev/null 2>err && [ "$(ls cut.all | wc -l)" -ge 12 ] &&
		grep -q 'could not be read: the stream is damaged' err
}
check "a session that was cut off: every format, and the page" cut_off
# Names that look like markup, formulas, terminal sequences or text from right to left.
hostile() {
	printf '%b 10\n' '<script>window.PWNED=1</script>;"><img src=x onerror=alert(1)>' ']]><svg onload=alert(1)>;</style>%s%n' \
		'-->;*/alert(1)/*' "' onclick='alert(5)" 'a\0342\0200\0256b\033[31m;&lt;b&gt;' >hostile.folded
	"$U" export --all hostile hostile.folded >/dev/null 2>&1 && [ "$(ls hostile | wc -l)" -ge 10 ] && python3 - hostile/* <<-'EOT'
		import gzip, json, sys, xml.dom.minidom
		for path in sys.argv[1:]:
		    data = open(path, "rb").read()
		    if path.endswith(".gz"):
		        data = gzip.decompress(data)
		    assert b"\xe2\x80\xae" not in data and b"\x1b[" not in data, path
		    if path.endswith(".json"):
		        json.loads(data)
		    if path.endswith(".svg"):
		        svg = xml.dom.minidom.parseString(data)
		        assert [len(svg.getElementsByTagName(n)) for n in ("script", "svg", "style", "img")] == [1, 2, 1, 0]
		        assert not any("onclick" in e.attributes.keys() for e in svg.getElementsByTagName("*"))
	EOT
}
check "hostile names in every format" hostile
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

# speedscope's own app: the numbers that it shows.
app() { # FORMAT SOURCE FOLDED
	"$U" export "$2" -f "$1" -o out 2>/dev/null && timeout 150 python3 "$SRC/tests/e2e/exchange/speedscope_app.py" "$modules" out "$3"
}
can browser
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -d "$modules" ] && [ -n "$browser" ]; then
	"$U" export --calls t2.uniscope -f folded -o t2.folded 2>/dev/null
	check "the speedscope app shows our speedscope file: total and self" app speedscope names.folded names.folded
	check "and one of calls, each with its times" app speedscope t2.uniscope t2.folded
	check "and our pprof file" app pprof names.folded names.folded
else
	skip "the speedscope app" "no chromium, or npm could not fetch speedscope"
fi

# Inputs: our own exports come back, and outputs of other tools.
again() { # FORMAT SED-SCRIPT
	"$U" export names.folded -f "$1" -o again 2>/dev/null && "$U" export again -f folded |
		sed "$2" >got && sum got | diff want -
}
check "folded stacks come back from pprof" again pprof ''
check "folded stacks come back from speedscope" again speedscope ''
check "folded stacks come back from perf script text" again perf 's/^profile;//'
blank_again() { # functions whose names are blanks
	printf ' ;c 3\n ;d 2\nmain;  ;c 3\nmain; ;b 5\n' >blank.folded
	for format in pprof speedscope perf; do
		"$U" export blank.folded -f "$format" -o again 2>err && "$U" export again -f folded 2>err | sed 's/^profile;//' >got &&
			LC_ALL=C sort got | diff blank.folded - && [ ! -s err ] || return 1
	done
}
check "names that are blanks come back" blank_again
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
swapper;idle_[k] 1000
EOT
}
check "perf script text: names, inlined, unknown, kernel" perf_text
check "samples of another event are told" grep -q '1 sample of other events than the first is left out' err
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
check "uftrace: a folder as a page" "$U" report --html d.html d
# A program that waits in its calls: in threads, in a child, and in one that never returns.
cat >waits.c <<'EOT'
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define CALL __attribute__((noinline))
CALL int leaf(int n) { volatile int s = 0; for (int i = 0; i < n; i++) s += i; return s; }
CALL int nap(int n) { int r = leaf(n); usleep(2000); return r + leaf(n); }
CALL void *worker(void *p) { for (int i = 0; i < 5; i++) nap(3000); return p; }
CALL int child(void) { return nap(100); }
CALL int forks(void) { int st; pid_t p = fork(); if (p == 0) { child(); _exit(0); } return waitpid(p, &st, 0) + 1; }
CALL void leave(int n) { leaf(n); usleep(1000); exit(0); }
int main(void)
{
	pthread_t t;
	if (pthread_create(&t, NULL, worker, NULL) != 0) return 1;
	for (int i = 0; i < 40; i++) leaf(i * 99);
	nap(100); forks(); pthread_join(t, NULL); leave(10000);
}
EOT
uftrace_same() { # FOLDER: its functions have the times that uftrace itself tells
	"$U" export "$1" -f folded >got && uftrace report -d "$1" -f total,self >report &&
		python3 "$SRC/tests/e2e/exchange/uftrace.py" got report
}
uftrace_real() {
	gcc -O1 -pg waits.c -o waits -lpthread && { timeout 60 uftrace record -d real --no-libcall ./waits; true; } &&
		uftrace_same real || return 1
	set -- real/perf-cpu*.dat # not there where the kernel does not let it
	[ ! -e "$1" ] || grep -q 'main;nap;linux:schedule ' got
}
uftrace_damaged() {
	rm -rf part && cp -r real part && rm -f part/perf-cpu*.dat && uftrace_same part || return 1
	for f in real/perf-cpu*.dat; do
		[ -s "$f" ] || continue
		head -c $(($(stat -c %s "$f") - 9)) "$f" >part/perf-cpu0.dat
		"$U" export part -f folded >got 2>err && grep -q '1 of its parts is damaged' err || return 1
		head -c 4000 /dev/zero >part/perf-cpu0.dat
		"$U" export part -f folded >got 2>err && grep -q '1 of its parts is damaged' err || return 1
	done
}
if command -v uftrace >/dev/null && command -v gcc >/dev/null; then
	check "uftrace record's folder, with the times of uftrace report" uftrace_real
	check "and without what the kernel said, or half of it" uftrace_damaged
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
# Threads and promises, where the format has spans, arrows and counters.
promised() { # FILE
	set -- "$1" chrome:trace.json fxt:fxt perfetto:pftrace
	file=$1
	shift
	command -v protoc >/dev/null || set -- "$1" "$2"
	for x in "$@"; do "$U" export "$file" -f "${x%:*}" -o "out.${x#*:}" 2>err || return 1; done
	"$U" trace threads --json --all "$file" >threads.json && set -- $(for x in "$@"; do echo "out.${x#*:}"; done) &&
		python3 "$SRC/tests/e2e/exchange/promises.py" "$@" threads.json
}
for x in two ring; do
	check "Mirage's $x: promises, waits, wake-ups and counters in chrome, fxt and perfetto" promised "$SRC/fuzz/corpus/mirage/$x"
done
# Calls in speedscope: each with its times, a profile a thread; added up they are what --calls has.
calls_evented() {
	"$U" export t2.uniscope -f speedscope -o out 2>err && grep -q '"type":"evented"' out &&
		"$U" export --calls t2.uniscope -f folded 2>/dev/null >calls.folded && sum calls.folded | grep -v ' 0.000$' >want.calls &&
		python3 "$READ" speedscope out | LC_ALL=C sort | diff - want.calls && [ -s want.calls ] &&
		"$U" export --calls=count t2.uniscope -f speedscope 2>/dev/null | grep -q '"type":"sampled"'
}
check "calls as speedscope: each call, the times of --calls" calls_evented
# The same for Firefox: read.py prints milliseconds with three decimals.
calls_firefox() {
	"$U" export t2.uniscope -f firefox -o out 2>err && ! grep -q 'there are no times' err && sum calls.folded >want.calls &&
		python3 "$READ" firefox out >got && python3 - <<'PY'
import json
def read(path):
    return {k: float(v) for k, v in (line.rstrip("\n").rsplit(" ", 1) for line in open(path))}
got, want = read("got"), read("want.calls")
assert sum(want.values()) > 1e5 and set(got) - {""} <= set(want), sorted(set(got) - set(want))[:5]
for stack, ns in want.items():
    assert abs(got.get(stack, 0) * 1e6 - ns) <= 600 + ns * 1e-3, (stack, got.get(stack), ns)
all_ns = sum(w for t in json.load(open("out"))["threads"] for w in t["samples"]["weight"]) * 1e6
assert abs(all_ns - sum(want.values())) < 1 + 1e-5 * all_ns, (all_ns, sum(want.values()))
PY
}
check "calls in Firefox: each thread's, with their times" calls_firefox
units() { # what traces are added up to are ns, and said to be that
	"$U" export t2.uniscope -f callgrind -o out 2>/dev/null && grep -qx 'events: ns' out &&
		"$U" export t2.uniscope -f svg -o out 2>/dev/null && grep -q 'all ([0-9,]* ns, 100%)' out &&
		"$U" export --calls=count t2.uniscope -f svg -o out 2>/dev/null && grep -q 'all ([0-9,]* calls, 100%)' out
}
check "the unit of added-up calls" units
one_line() { # FILE WORDS: export fails, with one line that has them
	! "$U" export "$1" -f folded >/dev/null 2>err && [ "$(wc -l <err)" = 1 ] && grep -q "$2" err
}
"$U" export names.folded -f pprof -o whole && head -c 60 whole >cut
check "a cut gzip" one_line cut 'gzip is damaged or cut short'
printf '\037\213garbage' >bad
check "no gzip at all" one_line bad 'gzip is damaged'
echo '{"$schema":"https://www.speedscope.app/file-format-schema.json"' >cut.json
check "cut JSON" one_line cut.json 'no JSON: line'
mkdir nothing
check "a folder that is nothing" one_line nothing 'is no session'
mkdir rec && cp d/* rec/ && printf 'xxxxxxxxxxxxxxxx' >>"$(ls rec/[0-9]*.dat | head -1)"
check "damaged records of uftrace" one_line rec 'no record that can be read at byte'

echo "1..$n"
